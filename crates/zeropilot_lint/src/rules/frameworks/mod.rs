//! What LLaMA-Factory and ms-swift make of DeepSpeed, found in their arguments.
//!
//! Both refuse or change things before the engine is asked. What is said here was read in their sources of August 2026.

pub(crate) mod llamafactory_optimizers;
pub(crate) mod llamafactory_quantization;
pub(crate) mod llamafactory_stage_3;
pub(crate) mod swift_gathering;
pub(crate) mod swift_hpz;

use crate::job_view::JobView;
use crate::report::Report;
use zeropilot_job::{Launch, Launcher, Said};

/// Runs of LLaMA-Factory that use DeepSpeed and whose arguments are all known, with what became of their configs.
fn llamafactory<'a>(job: &JobView<'a>) -> impl Iterator<Item = (&'a Launch, Option<&'a Report>)> {
    let all = job.job;
    job.launches().filter(move |(launch, _)| {
        // Megatron takes other ways.
        let is_other = ["USE_MCA", "USE_MEGATRON_BRIDGE"]
            .iter()
            .any(|name| all.variable(launch, name).is_some());
        launch.launcher == Launcher::LlamaFactory
            && launch.given.config.is_some()
            && launch.words.iter().all(|word| word.text.is_some())
            && !is_other
    })
}

fn stage(report: Option<&Report>) -> Option<u8> {
    report?.values()?.known_stage()
}

/// An argument that is switched on.
fn switched_on<'a>(launch: &'a Launch, name: &str) -> Option<&'a Said> {
    launch.given.said(name).filter(|_| launch.given.switch(name) == Some(true))
}

/// A config of LLaMA-Factory's in stage 3.
const STAGE_3: &str = r#"{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "gradient_clipping": "auto", "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": true}}"#;

/// A config of LLaMA-Factory's in stage 2.
const STAGE_2: &str = r#"{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "gradient_clipping": "auto", "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 2}}"#;
