use num_traits::ToPrimitive as _;
use zeropilot_config::python::PyValue;

use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::Value;
use zeropilot_text::Text;

use super::same_samples::trained_loader;

pub(crate) static RULE: Rule = Rule {
    code: "B17",
    name: "loader-batch",
    group: Group::Batch,
    severity: Severity::Warning,
    summary: Text::new(
        "the loader's batch size differs from the config",
        "脚本加载的 batch 与配置不一致",
    ),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed deepspeed/runtime/engine.py, train_micro_batch_size_per_gpu"],
    examples: &[Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
        ("t.py", "loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    engine.backward(engine(batch))\n    engine.step()\n"),
        ("ds.json", CONFIG),
    ])],
    good: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "loader = DataLoader(data, batch_size=2, sampler=DistributedSampler(data))\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    engine.backward(engine(batch))\n    engine.step()\n"),
            ("ds.json", CONFIG),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    for part in batch.split(2):\n        engine.backward(engine(part))\n        engine.step()\n"),
            ("ds.json", CONFIG),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "loader = DataLoader(data, batch_size=8)\nengine, _, loader, _ = deepspeed.initialize(args=args, model=model, training_data=data)\nfor batch in loader:\n    engine.backward(engine(batch))\n    engine.step()\n"),
            ("ds.json", CONFIG),
        ]),
    ],
    is_no_op: false,
};

const CONFIG: &str = r#"{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}}"#;

static WORDING: Wording = Wording {
    message: Text::new(
        "`{loader}` has batches of {loaded} samples, but the config sets {micro}",
        "`{loader}` 的 batch 是 {loaded} 个样本，配置里写的是 {micro}",
    ),
    why: Text::new(
        "DeepSpeed does not compare the loader's batch size with the config. The run trains on {loaded} samples per micro-step, while the global batch size, samples per second and all estimates from the config assume {micro}.",
        "DeepSpeed 不会核对 loader 的 batch 大小与配置是否一致。实际每个 micro step 训练 {loaded} 个样本，而全局 batch、每秒样本数和按配置做的估算都按 {micro} 个计算。",
    ),
    help: Text::new(
        "create the loader after `deepspeed.initialize`, with `batch_size={engine}.train_micro_batch_size_per_gpu()`; or set `train_micro_batch_size_per_gpu` to {loaded}, and change or remove `train_batch_size` if the config sets it",
        "在 `deepspeed.initialize` 之后再创建 loader，用 `batch_size={engine}.train_micro_batch_size_per_gpu()`；或者把 `train_micro_batch_size_per_gpu` 设为 {loaded}，配置里写了 `train_batch_size` 时要一并改掉或删掉",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings() {
        let resolved = training.config.and_then(|report| report.resolved.as_ref());
        let micro = match resolved.and_then(|resolved| resolved.micro_batch_size.as_ref()) {
            Some(PyValue::Int(micro)) => micro.to_i64(),
            _ => None,
        };
        let (Some(micro), Some(loader)) = (micro, trained_loader(&training)) else { continue };
        let Some((Value::Literal(loaded), _)) = loader.argument(1, "batch_size") else { continue };
        let loaded = loaded.parse::<i64>().ok().filter(|loaded| *loaded != micro);
        let engine = training.script.engine().map(|(_, engine)| engine);
        if let (Some(loaded), Some(engine)) = (loaded, engine) {
            let name = loader.bound_to.as_deref().unwrap_or("DataLoader");
            let diagnostic = Diagnostic::new(&RULE, &WORDING, "", loader.span)
                .with("loader", name)
                .with("engine", engine)
                .with("loaded", i128::from(loaded))
                .with("micro", i128::from(micro));
            found.at(&training.place(loader.span), diagnostic);
        }
    }
}
