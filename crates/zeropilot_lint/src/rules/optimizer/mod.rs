//! O: optimizer, scheduler, gradients.

pub(crate) mod adam_means_adamw;
pub(crate) mod client_optimizer;
pub(crate) mod client_optimizer_offloaded;
pub(crate) mod compressed_with_zero;
pub(crate) mod in_config_and_code;
pub(crate) mod lamb_scale;
pub(crate) mod logarithmic_warmup;
pub(crate) mod max_grad_norm;
pub(crate) mod muon_scatter;
pub(crate) mod no_type;
pub(crate) mod optimizer_of_the_script;
pub(crate) mod parameter_value;
pub(crate) mod predivide;
pub(crate) mod quoted_parameter;
pub(crate) mod rate_of_the_scheduler;
pub(crate) mod scheduler_of_the_script;
pub(crate) mod scheduler_parameters;
pub(crate) mod scheduler_without_type;
pub(crate) mod summed_gradients;
pub(crate) mod torch_scheduler;
pub(crate) mod unknown_optimizer;
pub(crate) mod unknown_parameter;
pub(crate) mod unknown_scheduler;
pub(crate) mod untested;
pub(crate) mod warmup_too_long;
pub(crate) mod warmup_type;
