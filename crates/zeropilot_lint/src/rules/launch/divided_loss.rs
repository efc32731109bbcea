use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Division, Place, PythonScript, Value};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "B07",
    name: "loss-divided-twice",
    group: Group::Batch,
    severity: Severity::Warning,
    summary: Text::new(
        "the loss is divided by the gradient accumulation steps twice",
        "loss 重复除以梯度累积步数",
    ),
    wordings: &[&WORDING],
    sources: &[
        "huggingface/accelerate#3533",
        "deepspeedai/DeepSpeed#1107",
        "huggingface/transformers#11919",
    ],
    examples: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "import deepspeed\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nloss = engine(batch)\nloss = loss / args.gradient_accumulation_steps\nengine.backward(loss)\nengine.step()\n"),
            ("ds.json", r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 8}"#),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "import deepspeed\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\ngas = engine.gradient_accumulation_steps()\nloss = engine(batch)\nloss = loss / gas\nengine.backward(loss)\nengine.step()\n"),
            ("ds.json", r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 8}"#),
        ]),
        Example::job("accelerate launch --use_deepspeed --deepspeed_config_file ds.json --num_processes 2 t.py").files(&[
            ("t.py", "accelerator = Accelerator(gradient_accumulation_steps=4)\nmodel = AutoModelForCausalLM.from_pretrained('gpt2')\noptimizer = torch.optim.AdamW(model.parameters())\nloader = DataLoader(data, batch_size=2)\nmodel, optimizer, loader = accelerator.prepare(model, optimizer, loader)\naccelerator.backward(loss / 4)\n"),
            ("ds.json", r#"{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "gradient_clipping": 1.0, "zero_optimization": {"stage": 2}}"#),
        ]),
    ],
    good: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "import deepspeed\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nloss = (one + other) / 2\nengine.backward(loss)\nengine.step()\n"),
            ("ds.json", r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 2}"#),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "import deepspeed\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nloss = engine(batch)\nengine.backward(loss)\nengine.step()\n"),
            ("ds.json", r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 8}"#),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "import deepspeed\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nloss = engine(batch)\nloss = loss / args.gradient_accumulation_steps\nengine.backward(loss, scale_wrt_gas=False)\nengine.step()\n"),
            ("ds.json", r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 8}"#),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "import deepspeed\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nloss = engine(batch) / accumulation\nengine.backward(loss)\nengine.step()\n"),
            ("ds.json", r#"{"train_micro_batch_size_per_gpu": 1}"#),
        ]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{target}` is divided by `{divisor}`, and `backward` divides it again",
        "`{target}` 已经除以 `{divisor}`，`backward` 还会再除一次",
    ),
    why: Text::new(
        "DeepSpeed divides the loss by `gradient_accumulation_steps` from its config ({steps}) before it computes gradients. With the division in the script, gradients are 1/{steps} of the correct size.",
        "DeepSpeed 在求梯度之前会把 loss 除以配置里的 `gradient_accumulation_steps`（{steps}）。脚本里又除一次，梯度就只有应有的 1/{steps}。",
    ),
    help: Text::new("do not divide the loss in the script", "脚本里不要再对 loss 做除法"),
};

/// Whether a loss is divided by the accumulation steps: by something of that name, or by their number.
fn is_accumulation(division: &Division, script: &PythonScript, steps: i64) -> bool {
    let is_number = |text: &str| text.parse() == Ok(steps);
    // A mean of so many losses is not meant.
    let is_mean = division.dividend.contains(['+', '-']);
    let by_value = || match script.bound(&division.divisor) {
        Some(Value::Call(name) | Value::Argument(name)) => name.contains("accum"),
        Some(Value::Literal(number)) => is_number(number) && !is_mean,
        _ => false,
    };
    division.divisor.contains("accum") || (is_number(&division.divisor) && !is_mean) || by_value()
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for (launch, config) in job.job.launches.iter().zip(job.configs) {
        let (Some(script), Some(name)) = (&launch.script, &launch.program) else { continue };
        let Some(steps) = config
            .as_ref()
            .and_then(|config| config.values()?.accumulation())
            .filter(|steps| *steps > 1)
        else {
            continue;
        };
        let owners: Vec<&str> = script
            .calls
            .iter()
            .filter(|call| call.callee == "deepspeed.initialize" || call.name() == "Accelerator")
            .filter_map(|call| call.bound_to.as_deref())
            .collect();
        for call in script.calls.iter().filter(|call| call.name() == "backward") {
            let owner = call.callee.strip_suffix(".backward").unwrap_or("");
            if !owners.contains(&owner) || call.keyword("scale_wrt_gas").is_some() {
                continue;
            }
            let Some((_, loss)) = call.positional.first() else { continue };
            let divided = script.divisions.iter().find(|division| {
                let is_inside = loss.start <= division.span.start && division.span.end <= loss.end;
                let is_before = division.scope == call.scope
                    && division.span.end <= call.span.start
                    && call.argument_name() == Some(division.target.as_str());
                (is_inside || is_before) && is_accumulation(division, script, steps)
            });
            if let Some(division) = divided {
                let diagnostic = Diagnostic::new(&RULE, &WORDING, "", division.span)
                    .with("target", division.target.as_str())
                    .with("divisor", division.divisor.as_str())
                    .with("steps", steps.to_string());
                found.at(&Place::in_file(name, division.span), diagnostic);
            }
        }
    }
}
