//! O: optimizer, scheduler, gradients.

pub(crate) mod in_config_and_code;
pub(crate) mod summed_gradients;
