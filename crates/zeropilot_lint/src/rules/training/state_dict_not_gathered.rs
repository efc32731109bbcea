use zeropilot_config::python::PyValue;

use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::report::Report;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::Call;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "S09",
    name: "state-dict-not-gathered",
    group: Group::Saving,
    severity: Severity::Error,
    summary: Text::new(
        "`get_state_dict` in stage 3 without weight gathering",
        "stage 3 下调用 `get_state_dict`，但没有开启权重聚合",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::job("accelerate launch --use_deepspeed --deepspeed_config_file ds.json --num_processes 2 t.py").files(&[("t.py", "accelerator = Accelerator()\nmodel = accelerator.prepare(model)\naccelerator.unwrap_model(model).save_pretrained('out', state_dict=accelerator.get_state_dict(model))\n"), ("ds.json", r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "gradient_clipping": 1.0, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3}}"#)])],
    good: &[Example::job("accelerate launch --use_deepspeed --deepspeed_config_file ds.json --num_processes 2 t.py").files(&[("t.py", "accelerator = Accelerator()\nmodel = accelerator.prepare(model)\naccelerator.unwrap_model(model).save_pretrained('out', state_dict=accelerator.get_state_dict(model))\n"), ("ds.json", r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "gradient_clipping": 1.0, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": true}}"#)])],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{call}` needs `stage3_gather_16bit_weights_on_model_save` in ZeRO stage 3",
        "在 ZeRO stage 3 下，`{call}` 需要 `stage3_gather_16bit_weights_on_model_save`",
    ),
    why: Text::new(
        "DeepSpeed gathers the weights for accelerate only if `stage3_gather_16bit_weights_on_model_save` is true. Otherwise, `{call}` raises a `ValueError` after training has finished.",
        "只有打开 `stage3_gather_16bit_weights_on_model_save`，DeepSpeed 才会为 accelerate 聚合权重；否则训练结束后 `{call}` 会抛出 `ValueError`。",
    ),
    help: Text::new(
        "set `stage3_gather_16bit_weights_on_model_save` to true in `zero_optimization`",
        "在 `zero_optimization` 里把 `stage3_gather_16bit_weights_on_model_save` 设为 true",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings().filter(|training| training.stage() == Some(3)) {
        let Some(accelerator) = training.script.accelerator() else { continue };
        let name = format!("{accelerator}.get_state_dict");
        let resolved = training.config.and_then(Report::values);
        let gathers = resolved.and_then(|resolved| {
            resolved.zero_optimization.get("gather_16bit_weights_on_model_save").cloned()
        });
        let is_whole = |call: &&Call| {
            call.callee == name && call.keyword("unwrap").is_none() && call.questions.is_empty()
        };
        if gathers == Some(PyValue::Bool(false))
            && let Some(call) = training.script.calls.iter().find(is_whole)
        {
            let diagnostic = Diagnostic::new(&RULE, &WORDING, "", call.span);
            found.at(&training.place(call.span), diagnostic.with("call", name.as_str()));
        }
    }
}
