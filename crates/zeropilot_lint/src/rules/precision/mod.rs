//! P: precision and loss scale.

pub(crate) mod accumulation_type;
pub(crate) mod amp;
pub(crate) mod autocast_and_16_bit;
pub(crate) mod autocast_and_quantized;
pub(crate) mod autocast_modules;
pub(crate) mod both_precisions;
pub(crate) mod buffer_type;
pub(crate) mod communication_type;
pub(crate) mod dynamic_loss_scale;
pub(crate) mod hysteresis;
pub(crate) mod master_weights;
pub(crate) mod master_weights_need_offload;
pub(crate) mod missing_at_load;
pub(crate) mod not_enabled;
pub(crate) mod parameter_type;
pub(crate) mod quantization_needs_fp16;
pub(crate) mod static_scale;
