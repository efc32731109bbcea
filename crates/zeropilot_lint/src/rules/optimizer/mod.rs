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

use crate::reading::Device;
use crate::subject::Subject;

/// Whether the optimizer computes with the `lr` of the config: a scheduler overwrites it before the first step, but PyTorch's
/// Adam and the one on the CPU read it when they are created.
fn optimizer_reads_rate(subject: &Subject<'_>) -> bool {
    subject.text_at(["scheduler", "type"]).is_none()
        || subject.is_on(["optimizer", "params", "torch_adam"])
        || matches!(subject.device("offload_optimizer"), Some(Device::Cpu | Device::Nvme))
}
