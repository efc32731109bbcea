use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView, Training};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Call, PythonScript, Value};
use zeropilot_text::Text;

use super::{STAGE_3, asks_for_the_stage};

pub(crate) static RULE: Rule = Rule {
    code: "Z06",
    name: "weights-saved-empty",
    group: Group::Construction,
    severity: Severity::Warning,
    summary: Text::new("the script saves empty weights", "脚本保存的权重是空的"),
    wordings: &[&ENGINE, &ACCELERATE],
    sources: &[
        "huggingface/peft#2450",
        "huggingface/peft#460",
        "huggingface/accelerate#3508",
        "ymcui/Chinese-LLaMA-Alpaca#711",
    ],
    examples: &[
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\nengine.module.save_pretrained('out')\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\ntorch.save(engine.module.state_dict(), 'out.pt')\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\ntorch.save(model.state_dict(), 'out.pt')\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("accelerate launch --num_processes 2 --use_deepspeed --deepspeed_config_file ds.json t.py").files(&[
            ("t.py", "accelerator = Accelerator()\nmodel, optimizer, loader = accelerator.prepare(model, optimizer, loader)\nunwrapped = accelerator.unwrap_model(model)\nunwrapped.save_pretrained('out', is_main_process=accelerator.is_main_process)\n"),
            ("ds.json", ACCELERATED),
        ]),
    ],
    good: &[
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "torch.save(model.state_dict(), 'before.pt')\nengine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\nengine.save_16bit_model('out')\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("accelerate launch --num_processes 2 --use_deepspeed --deepspeed_config_file ds.json t.py").files(&[
            ("t.py", "accelerator = Accelerator()\nmodel, optimizer, loader = accelerator.prepare(model, optimizer, loader)\nunwrapped = accelerator.unwrap_model(model)\nunwrapped.save_pretrained('out', state_dict=accelerator.get_state_dict(model))\n"),
            ("ds.json", ACCELERATED),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\nwith deepspeed.zero.GatheredParameters(list(engine.parameters()), modifier_rank=0):\n    engine.module.save_pretrained('out')\n"),
            ("ds.json", STAGE_3),
        ]),
    ],
    is_no_op: false,
};

const ACCELERATED: &str = r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "gradient_clipping": 1.0, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": true}}"#;

static ENGINE: Wording = Wording {
    message: Text::new(
        "`{call}` saves empty weights under ZeRO stage 3",
        "ZeRO stage 3 下，`{call}` 保存的权重是空的",
    ),
    why: Text::new(
        "Outside a forward pass, partitioned parameters have no elements and are saved with size 0, except small parameters that every rank keeps in full. No error appears until you load the files.",
        "切分后的参数在前向之外没有任何元素；除了每个 rank 都完整保留的小参数，其余参数保存下来的大小都是 0。保存时不报错，加载时才会发现。",
    ),
    help: Text::new(
        "turn on `stage3_gather_16bit_weights_on_model_save` and call `{engine}.save_16bit_model(…)` on all ranks, or call `{engine}.save_checkpoint(…)` and convert the checkpoint with `zero_to_fp32.py`",
        "打开 `stage3_gather_16bit_weights_on_model_save`，在所有 rank 上调用 `{engine}.save_16bit_model(…)`；或用 `{engine}.save_checkpoint(…)` 保存后再用 `zero_to_fp32.py` 转换",
    ),
};

static ACCELERATE: Wording = Wording {
    message: ENGINE.message,
    why: Text::new(
        "Unwrapping returns the module, not its weights: outside a forward pass, a partitioned parameter has no elements and is saved with size 0. No error appears until you load the files.",
        "unwrap 得到的只是 module，没有权重：切分后的参数在前向之外没有任何元素，保存下来的大小是 0。保存时不报错，加载时才会发现。",
    ),
    help: Text::new(
        "call `{engine}.get_state_dict(model)` on all ranks to gather the weights, and pass the result as `state_dict=`",
        "在所有 rank 上调用 `{engine}.get_state_dict(model)` 聚合权重，再用 `state_dict=` 传入",
    ),
};

/// Whether a call saves something that it asks for its own weights: what it is called on, or what is written.
fn saved<'c>(script: &'c PythonScript, call: &'c Call) -> Option<&'c str> {
    if call.name() == "save_pretrained" {
        let is_whole = call.has_more || call.keyword("state_dict").is_some();
        return (!is_whole).then(|| call.object());
    }
    match (call.callee.as_str(), call.positional.first()) {
        ("torch.save", Some((Value::Call(written), _))) => {
            let object = written.strip_suffix(".state_dict")?;
            let is_called = script.calls.iter().any(|other| other.callee == *written);
            is_called.then_some(object)
        }
        _ => None,
    }
}

fn wording<'t>(training: &Training<'t>, call: &Call) -> Option<(&'static Wording, &'t str)> {
    let script = training.script;
    let object = saved(script, call)?;
    if let Some((made, engine)) = script.engine() {
        let is_own = object == engine || object.strip_suffix(".module") == Some(engine);
        // The engine partitions the parameters of the very model that it is handed.
        let is_handed = Some(object) == made.handed(1, "model") && call.follows(made);
        let is_empty = is_handed || is_own && script.is_on_engine(call);
        return is_empty.then_some((&ENGINE, engine));
    }
    let accelerator = script.accelerator().filter(|_| training.launch.by_accelerate)?;
    let unwrap = format!("{accelerator}.unwrap_model");
    let by_name = matches!(script.bound(object), Some(Value::Call(callee)) if *callee == unwrap);
    let is_unwrapped = by_name || object.starts_with(&format!("{unwrap}("));
    is_unwrapped.then_some((&ACCELERATE, accelerator))
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings().filter(|training| training.stage() == Some(3)) {
        let script = training.script;
        if script.calls("GatheredParameters") {
            continue;
        }
        for call in script.calls.iter().filter(|call| !asks_for_the_stage(call)) {
            if let Some((wording, engine)) = wording(&training, call) {
                let shown = match call.name() {
                    "save_pretrained" => call.callee.as_str(),
                    _ => "torch.save",
                };
                let diagnostic = Diagnostic::new(&RULE, wording, "", call.span)
                    .with("call", shown)
                    .with("engine", engine);
                found.at(&training.place(call.span), diagnostic);
            }
        }
    }
}
