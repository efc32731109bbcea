//! P: precision and loss scale.

pub(crate) mod both_precisions;
pub(crate) mod communication_type;
pub(crate) mod dynamic_loss_scale;
pub(crate) mod master_weights;
