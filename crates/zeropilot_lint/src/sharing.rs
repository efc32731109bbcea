//! Ranks that work on the same samples, as a training script arranges them: a pipeline, a unit for model parallelism
//! (`mpu`) or a mesh.

use zeropilot_job::{Call, Launch, PythonScript, Value};

use crate::script::Sharing;

/// Options by which Megatron and programs like it are told how many ranks share a model.
const OPTIONS: [&str; 9] = [
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "context_parallel_size",
    "ds_sequence_parallel_size",
    "model_parallel_size",
    "pipe_parallel_size",
    "pipeline_parallel_size",
    "tensor_parallel_size",
    "num_stages",
];

/// What a launch says about ranks that share samples; `None` if every rank has its own.
pub(crate) fn of_launch(launch: &Launch) -> Option<Sharing> {
    let script = launch.script.as_ref();
    let engine = script.and_then(|script| script.call("deepspeed.initialize"));
    if let Some(script) = script {
        let found = pipeline(script, launch)
            .or_else(|| unit(script, engine?))
            .or_else(|| mesh(engine?))
            .or_else(|| parallelism_config(script));
        if found.is_some() {
            return found;
        }
    }
    // An engine that is made without a unit has none, whatever options there are.
    if engine.is_some_and(|call| !call.has_more) {
        return None;
    }
    let is_sharing = |name: &&str| {
        launch.given.unknown.iter().any(|unknown| unknown == name)
            || launch.given.value(name).is_some_and(|value| value != "1")
    };
    OPTIONS.iter().any(is_sharing).then_some(Sharing::Unknown)
}

/// The stages of a pipeline.
fn pipeline(script: &PythonScript, launch: &Launch) -> Option<Sharing> {
    let Some(call) = script.calls.iter().find(|call| call.name() == "PipelineModule") else {
        // Only the engine of a pipeline has this method.
        let (_, engine) = script.engine()?;
        return script.call(&format!("{engine}.train_batch")).map(|_| Sharing::Unknown);
    };
    let stages = match call.keyword("num_stages").map(|(value, _)| value) {
        _ if call.keyword("topology").is_some() => None,
        Some(Value::Literal(stages)) => Some(stages.as_str()),
        Some(Value::Argument(option)) => option_value(option, script, launch),
        _ => None,
    };
    Some(known(stages))
}

fn option_value<'a>(option: &str, script: &'a PythonScript, launch: &'a Launch) -> Option<&'a str> {
    if script.sets("args", option) || launch.given.unknown.iter().any(|name| name == option) {
        return None;
    }
    launch.given.value(option).or_else(|| match script.option_default(option)? {
        (Value::Literal(text), _) => Some(text),
        _ => None,
    })
}

/// A unit that the engine is handed.
fn unit(script: &PythonScript, engine: &Call) -> Option<Sharing> {
    let (value, _) = engine.keyword("mpu")?;
    if *value == Value::None {
        return None;
    }
    let ulysses = script.calls.iter().find(|call| call.name() == "register_with_transformers");
    let size = ulysses.and_then(|call| match call.keyword("sequence_parallel_size")?.0 {
        Value::Literal(size) => Some(size.as_str()),
        _ => None,
    });
    Some(known(size))
}

/// `mesh_param`: data-parallel ranks, then ranks that share a sequence.
fn mesh(engine: &Call) -> Option<Sharing> {
    match engine.keyword("mesh_param")?.0 {
        Value::None => None,
        Value::List(sizes) => match sizes.as_slice() {
            [_, Value::Literal(sequence)] => Some(known(Some(sequence))),
            _ => Some(Sharing::Unknown),
        },
        _ => Some(Sharing::Unknown),
    }
}

/// accelerate's own arrangement.
fn parallelism_config(script: &PythonScript) -> Option<Sharing> {
    script.calls("ParallelismConfig").then_some(Sharing::Unknown)
}

fn known(size: Option<&str>) -> Sharing {
    match size.and_then(|size| size.parse().ok()) {
        Some(ranks @ 1..) => Sharing::Ranks(ranks),
        _ => Sharing::Unknown,
    }
}
