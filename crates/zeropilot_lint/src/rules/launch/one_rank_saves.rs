use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView, Training};
use crate::one_rank::{Alone, alone};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::rules::training::clipping_call::accelerates;
use zeropilot_job::{Call, PythonScript};
use zeropilot_text::Text;

use super::model_first::{STAGE_2, STAGE_3};

pub(crate) static RULE: Rule = Rule {
    code: "H08",
    name: "saved-by-one-rank",
    group: Group::Hangs,
    severity: Severity::Warning,
    summary: Text::new("saving on one rank only", "只在一个 rank 上保存"),
    wordings: &[&WORDING, &THROUGH],
    sources: &["deepspeedai/DeepSpeed#4247"],
    examples: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config $C").files(&[(
            "t.py",
            "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nif args.local_rank == 0:\n    engine.save_checkpoint('out')\n",
        )]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config $C").files(&[(
            "t.py",
            "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nif torch.distributed.get_rank() == 0:\n    engine.save_checkpoint('out')\n",
        )]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config $C").files(&[(
            "t.py",
            "def save(model, step):\n    model.save_checkpoint('out', tag=str(step))\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nis_main = not dist.get_rank()\nif is_main and step % 100 == 0:\n    save(engine, step)\n",
        )]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = TrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nmodel = AutoModelForCausalLM.from_pretrained('m')\ntrainer = Trainer(model, args)\ntrainer.train()\nif not trainer.is_world_process_zero():\n    sys.exit(0)\ntrainer.save_model('out')\n"),
            ("ds.json", STAGE_3),
        ]),
    ],
    good: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config $C").files(&[(
            "t.py",
            "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nif step % 100 == 0:\n    engine.save_checkpoint('out')\n",
        )]),
        Example::job("deepspeed --num_gpus 1 t.py --deepspeed_config $C").files(&[(
            "t.py",
            "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nif rank == 0:\n    engine.save_checkpoint('out')\n",
        )]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config $C").files(&[(
            "t.py",
            "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nengine.save_checkpoint('out')\nif rank == 0:\n    tokenizer.save_pretrained('out')\n",
        )]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = TrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nmodel = AutoModelForCausalLM.from_pretrained('m')\ntrainer = Trainer(model, args)\ntrainer.train()\nif trainer.is_world_process_zero():\n    trainer.save_model('out')\n"),
            ("ds.json", STAGE_2),
        ]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{call}` runs only if `{condition}`: the run hangs",
        "`{call}` 只在 `{condition}` 时调用，训练会卡住",
    ),
    why: Text::new(
        "All ranks must call `{call}`, because each rank has a shard of the model states. A single rank waits for the others until the collective times out.",
        "每个 rank 都保存模型状态的一个分片，所以都必须调用 `{call}`；只有一个 rank 调用时，它会一直等其他 rank，直到通信超时。",
    ),
    help: Text::new("call `{call}` on all ranks", "让所有 rank 都调用 `{call}`"),
};

static THROUGH: Wording = Wording {
    message: Text::new(
        "`{site}`, which calls `{call}`, runs only if `{condition}`: the run hangs",
        "`{site}` 里调用了 `{call}`，却只在 `{condition}` 时执行，训练会卡住",
    ),
    why: WORDING.why,
    help: Text::new("call `{site}` on all ranks", "让所有 rank 都调用 `{site}`"),
};

/// What all ranks must call on an engine.
const OF_ENGINES: [&str; 4] =
    ["save_checkpoint", "save_16bit_model", "load_checkpoint", "save_fp16_model"];

/// What all ranks must call on an accelerator that runs DeepSpeed.
const OF_ACCELERATORS: [&str; 2] = ["save_state", "load_state"];

/// What all ranks must call on an accelerator in stage 3, since it gathers.
const GATHERING: [&str; 2] = ["get_state_dict", "save_model"];

/// Objects of a script with what all ranks must call on them.
fn owners<'a>(training: &Training<'a>) -> Vec<(&'a str, Vec<&'static str>)> {
    let script = training.script;
    let mut owners = Vec::new();
    let engine = script.call("deepspeed.initialize").and_then(|call| call.bound_to.as_deref());
    owners.extend(engine.map(|engine| (engine, OF_ENGINES.to_vec())));
    let accelerator = script.accelerator().filter(|_| accelerates(training));
    owners.extend(accelerator.map(|accelerator| {
        let gathering = GATHERING.iter().filter(|_| training.stage() == Some(3));
        (accelerator, OF_ACCELERATORS.iter().chain(gathering).copied().collect())
    }));
    if training.stage() == Some(3) {
        owners.extend(trainer(script).map(|trainer| (trainer, vec!["save_model"])));
    }
    owners
}

/// The one trainer of a script, by its name.
pub(crate) fn trainer(script: &PythonScript) -> Option<&str> {
    let is_trainer = |call: &&Call| call.name().ends_with("Trainer") && call.bound_to.is_some();
    let mut trainers = script.calls.iter().filter(is_trainer);
    trainers.next().filter(|_| trainers.next().is_none())?.bound_to.as_deref()
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings().filter(|training| training.launch.world != Some(1)) {
        for (owner, names) in owners(&training) {
            let calls = alone(training.script, owner).into_iter().filter(|alone| {
                let method = alone.call.callee.strip_prefix(alone.object);
                let method = method.and_then(|method| method.strip_prefix('.'));
                method.is_some_and(|method| names.contains(&method))
            });
            tell(&training, calls, &RULE, [&WORDING, &THROUGH], found);
        }
    }
}

/// Reports calls that one rank alone makes, directly or through a function, each place once.
pub(crate) fn tell<'s>(
    training: &Training<'_>,
    calls: impl Iterator<Item = Alone<'s>>,
    rule: &'static Rule,
    [direct, through]: [&'static Wording; 2],
    found: &mut Findings,
) {
    let mut told = Vec::new();
    for Alone { site, condition, call, .. } in calls {
        if told.contains(&site.span) {
            continue;
        }
        told.push(site.span);
        let wording = if site.span == call.span { direct } else { through };
        let diagnostic = Diagnostic::new(rule, wording, "", site.span)
            .with("site", site.callee.as_str())
            .with("call", call.callee.as_str())
            .with("condition", condition.as_str());
        found.at(&training.place(site.span), diagnostic);
    }
}
