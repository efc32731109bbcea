use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

use super::clipping_call::{accelerates, asks_for_deepspeed};

pub(crate) static RULE: Rule = Rule {
    code: "O28",
    name: "clip-by-value",
    group: Group::Optimizer,
    severity: Severity::Error,
    summary: Text::new("the script clips gradients by value", "脚本按值裁剪梯度"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[
        Example::job("accelerate launch --num_processes 2 --use_deepspeed --deepspeed_config_file ds.json t.py").files(&[
            ("t.py", "accelerator = Accelerator()\naccelerator.backward(loss)\naccelerator.clip_grad_value_(model.parameters(), 0.5)\n"),
            ("ds.json", CONFIG),
        ]),
    ],
    good: &[
        Example::job("accelerate launch --num_processes 2 --use_deepspeed --deepspeed_config_file ds.json t.py").files(&[
            ("t.py", "accelerator = Accelerator()\naccelerator.backward(loss)\nif accelerator.distributed_type != DistributedType.DEEPSPEED:\n    accelerator.clip_grad_value_(model.parameters(), 0.5)\n"),
            ("ds.json", CONFIG),
        ]),
    ],
    is_no_op: false,
};

const CONFIG: &str = r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "gradient_clipping": 1.0, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}}"#;

static WORDING: Wording = Wording {
    message: Text::new(
        "`{call}` does not work under DeepSpeed",
        "在 DeepSpeed 下不能调用 `{call}`",
    ),
    why: Text::new(
        "DeepSpeed only clips by the norm of all gradients, so accelerate raises an exception.",
        "DeepSpeed 只按全部梯度的范数裁剪，accelerate 遇到这个调用会抛异常。",
    ),
    help: Text::new(
        "set `gradient_clipping` in the config instead",
        "改为在配置里写 `gradient_clipping`",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings().filter(accelerates) {
        let Some(accelerator) = training.script.accelerator() else { continue };
        let name = format!("{accelerator}.clip_grad_value_");
        let calls = training.script.calls.iter().filter(|call| call.callee == name);
        for call in calls.filter(|call| !asks_for_deepspeed(call)) {
            let diagnostic =
                Diagnostic::new(&RULE, &WORDING, "", call.span).with("call", name.as_str());
            found.at(&training.place(call.span), diagnostic);
        }
    }
}
