use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView, Training};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Call, PythonScript, Value};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "T07",
    name: "same-samples-on-every-rank",
    group: Group::TrainingCode,
    severity: Severity::Warning,
    summary: Text::new(
        "every rank trains on the same samples",
        "每个 rank 训练的是同样的样本",
    ),
    wordings: &[&WORDING],
    sources: &["pytorch/pytorch torch/utils/data/distributed.py, DistributedSampler"],
    examples: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "data = load_dataset('json', data_files='train.json', split='train')\nloader = DataLoader(data, batch_size=4)\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    engine.backward(engine(batch))\n    engine.step()\n"),
            ("ds.json", CONFIG),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "torch.manual_seed(42)\ndata = load_dataset('json', data_files='train.json', split='train')\nloader = DataLoader(data, batch_size=4, shuffle=True)\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor step, batch in enumerate(loader):\n    engine.backward(engine(batch))\n    engine.step()\n    if torch.distributed.get_rank() == 0:\n        print(step)\n"),
            ("ds.json", CONFIG),
        ]),
    ],
    good: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "data = load_dataset('json', data_files='train.json', split='train')\nloader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data))\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    engine.backward(engine(batch))\n    engine.step()\n"),
            ("ds.json", CONFIG),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "data = load_dataset('json', data_files='train.json', split='train')\ndata = data.shard(torch.distributed.get_world_size(), torch.distributed.get_rank())\nloader = DataLoader(data, batch_size=4)\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    engine.backward(engine(batch))\n    engine.step()\n"),
            ("ds.json", CONFIG),
        ]),
        // Each rank shuffles for itself.
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "torch.manual_seed(42 + rank)\ndata = load_dataset('json', data_files='train.json', split='train')\nloader = DataLoader(data, batch_size=4, shuffle=True)\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    engine.backward(engine(batch))\n    engine.step()\n"),
            ("ds.json", CONFIG),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "data = load_dataset('json', data_files='train.json', split='train')\nengine, _, loader, _ = deepspeed.initialize(args=args, model=model, training_data=data)\nfor batch in loader:\n    engine.backward(engine(batch))\n    engine.step()\n"),
            ("ds.json", CONFIG),
        ]),
    ],
    is_no_op: false,
};

const CONFIG: &str = r#"{"train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}"#;

static WORDING: Wording = Wording {
    message: Text::new(
        "`{loader}` gives every rank the same samples",
        "`{loader}` 给每个 rank 的样本都一样",
    ),
    why: Text::new(
        "DeepSpeed distributes only data that it loads itself (`training_data`). `{loader}` has no sampler, and its order does not depend on the rank, so more GPUs do not train on more samples.",
        "DeepSpeed 只会把自己加载的数据（`training_data`）分给各 rank。`{loader}` 没有 sampler，顺序也与 rank 无关，加再多的卡，训练的样本也不会增加。",
    ),
    help: Text::new(
        "pass `sampler=DistributedSampler(…)` to the `DataLoader`, or pass the dataset to `deepspeed.initialize(training_data=…)`",
        "给 `DataLoader` 传入 `sampler=DistributedSampler(…)`；或者把数据集交给 `deepspeed.initialize(training_data=…)`",
    ),
};

/// Words of scripts that divide samples, or whose ranks share them on purpose.
const DIVIDING: [&str; 13] = [
    "Sampler",
    "shard",
    "split_dataset",
    "num_replicas",
    "Iterable",
    "world_size",
    "mpu",
    "Pipeline",
    "parallel",
    "deepspeed_io",
    "skip(",
    "worker_init",
    "generator",
];

/// Questions for the rank that have nothing to do with samples.
const HARMLESS: [&str; 12] = [
    "local_rank",
    "get_rank() == 0",
    "rank == 0",
    "global_rank",
    "is_rank_0",
    "rank = ",
    "torch.distributed.get_rank()\n",
    "dist.get_rank()\n",
    "int(os.environ[\"rank\"])",
    "int(os.environ['rank'])",
    "rank != 0",
    "[\"rank\"]",
];

/// What fills a dataset with numbers of a generator.
const RANDOM: [&str; 4] = ["torch.rand", "np.random", "numpy.random", "random."];

fn is_seeded(script: &PythonScript) -> bool {
    let seeds = ["manual_seed", "set_seed", "seed_everything", "seed_all"];
    script.calls.iter().any(|call| {
        let constant =
            matches!(call.positional.first(), Some((Value::Literal(_) | Value::Argument(_), _)));
        seeds.contains(&call.name()) && constant
    })
}

/// Whether the rank decides anything about the samples, as far as words tell.
fn depends_on_rank(text: &str) -> bool {
    let plain = text.to_lowercase();
    let plain = HARMLESS.iter().fold(plain, |plain, word| plain.replace(word, ""));
    plain.contains("rank") || DIVIDING.iter().any(|word| text.contains(word))
}

/// Whether it is known where the samples come from, so that nothing elsewhere divides them.
fn is_known(script: &PythonScript, loader: &Call) -> bool {
    let is_own = |callee: &str| {
        let known = ["load_dataset", "TensorDataset", "load_from_disk"];
        let name = callee.rsplit('.').next().unwrap_or(callee);
        let is_class = script
            .functions
            .iter()
            .any(|function| function.class.as_ref().is_some_and(|(class, _)| class == callee));
        known.contains(&name) || is_class
    };
    match (loader.argument(0, "dataset"), loader.handed(0, "dataset")) {
        (Some((Value::Call(callee), _)), None) => is_own(callee),
        (_, Some(name)) => {
            let mut assigned = script.assignments.iter().filter(|it| it.target == name).peekable();
            assigned.peek().is_some()
                && assigned.all(|it| {
                    let callee = it.value.split_once('(').map_or("", |(callee, _)| callee);
                    is_own(callee)
                        || callee == format!("{name}.map")
                        || callee == format!("{name}.with_format")
                })
        }
        _ => false,
    }
}

fn has_same_order(script: &PythonScript, loader: &Call) -> bool {
    let is_plain = ["sampler", "batch_sampler"].iter().all(|name| loader.keyword(name).is_none())
        && loader.positional.len() <= 2
        && !loader.has_more;
    match loader.keyword("shuffle") {
        None => is_plain,
        Some((Value::Literal(shuffle), _)) => is_plain && (shuffle == "False" || is_seeded(script)),
        Some(_) => false,
    }
}

/// The loader whose batches are trained on.
pub(super) fn trained_loader<'a>(training: &Training<'a>) -> Option<&'a Call> {
    let script = training.script;
    let (_, engine) = script.engine()?;
    let backward = format!("{engine}.backward");
    let backward = script.call(&backward).filter(|call| script.is_on_engine(call))?;
    let within = script.loop_around(backward.span)?;
    let over: Vec<&str> = super::local_values::names(&within.over).collect();
    let mut loaders = script.calls.iter().filter(|call| {
        let bound = call.bound_to.as_deref();
        // What `deepspeed.initialize` gives back under the same name is another loader.
        let is_assigned_once =
            |name: &str| script.assignments.iter().filter(|it| it.target == name).count() == 1;
        call.name() == "DataLoader"
            && bound.is_some_and(|name| over.contains(&name) && is_assigned_once(name))
    });
    loaders.next().filter(|_| loaders.next().is_none())
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings().filter(|training| training.launch.world != Some(1)) {
        let script = training.script;
        let (Some(text), Some(config)) = ((job.files)(training.name), training.config_text(job))
        else {
            continue;
        };
        let Some(loader) = trained_loader(&training) else { continue };
        let resolved = training.config.and_then(|report| report.resolved.as_ref());
        let is_shared =
            resolved.is_none_or(|resolved| resolved.shares_samples) || config.contains("parallel");
        let is_random = RANDOM.iter().any(|word| text.contains(word)) && !is_seeded(script);
        if is_shared || is_random || depends_on_rank(&text) || !is_known(script, loader) {
            continue;
        }
        if has_same_order(script, loader) {
            let name = loader.bound_to.as_deref().unwrap_or("DataLoader");
            let diagnostic = Diagnostic::new(&RULE, &WORDING, "", loader.span).with("loader", name);
            found.at(&training.place(loader.span), diagnostic);
        }
    }
}
