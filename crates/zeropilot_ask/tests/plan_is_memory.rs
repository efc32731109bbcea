//! What `plan` shows of a strategy is what `memory` says about the config that it writes, to the byte.

use serde_json::Value;
use zeropilot_ask::memory::WrittenConfig;
use zeropilot_ask::{
    FusedLoss, Machines, MemoryRequest, MethodName, PlanRequest, Training, memory, plan,
};
use zeropilot_model::catalogue::{Entry, entries};
use zeropilot_oracle::part_of;
use zeropilot_plan::Fitting;

/// One in so many questions is asked in a build.
const EVERY: usize = 160;

fn asked_again(entry: &Entry, training: &Training, gpus: &str, shown: &Fitting) {
    let config = Value::Object(shown.recipe.config()).to_string();
    let work = shown.way.work;
    let request = MemoryRequest {
        machines: Machines::with_gpus(gpus),
        config: Some(WrittenConfig { name: "ds.json".to_owned(), bytes: config.into_bytes() }),
        training: Training {
            grad_checkpointing: Some(work.checkpointing),
            fused_loss: Some(if work.fused_loss { FusedLoss::Yes } else { FusedLoss::No }),
            ..training.clone()
        },
        ..MemoryRequest::default()
    };
    let model = entry.model().expect("a model of the catalogue");
    let answer = memory(&entry.id, model, &request).expect("an answer").answer;
    let of = |answer: &zeropilot_step::memory::Answer| (answer.device(), answer.node());
    assert_eq!(of(&answer), of(&shown.answer), "{} {:?}", entry.id, shown.way);
}

#[test]
fn plan_and_memory_agree_about_every_model_of_the_catalogue_and_every_method() {
    let methods = [MethodName::Full, MethodName::Lora, MethodName::Qlora];
    let questions = entries().iter().flat_map(|entry| methods.map(|method| (entry, method)));
    let mut shown = 0;
    for (entry, method) in part_of(questions.collect(), EVERY) {
        let training = Training { seq_len: Some(512), method: Some(method), ..Training::default() };
        // The speed of the one is known, of the other only the memory.
        for gpus in ["2x8x80GB", "8xA100-80G"] {
            let request = PlanRequest {
                machines: Machines::with_gpus(gpus),
                training: training.clone(),
                ..PlanRequest::default()
            };
            let model = entry.model().expect("a model of the catalogue");
            let Ok(planned) = plan(&entry.id, &model, &request) else { continue };
            for fitting in planned.plan.fitting.iter().chain(&planned.plan.fallbacks) {
                asked_again(entry, &training, gpus, fitting);
                shown += 1;
            }
        }
    }
    assert!(shown > 0, "no model fits");
}
