use crate::job_view::{Findings, JobView};
use crate::one_rank::alone;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::rules::launch::model_first::STAGE_2;
use crate::rules::launch::one_rank_saves::{tell, trainer};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "H10",
    name: "forward-on-one-rank",
    group: Group::Hangs,
    severity: Severity::Warning,
    summary: Text::new(
        "only one rank runs the model in stage 3",
        "stage 3 下只在一个 rank 上运行模型",
    ),
    wordings: &[&WORDING, &THROUGH, &EVALUATES],
    sources: &[],
    examples: &[Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    engine.backward(engine(batch))\n    engine.step()\nif torch.distributed.get_rank() == 0:\n    print(engine(test))\n"), ("ds.json", super::STAGE_3)]), Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[("t.py", "def evaluate(model, loader):\n    with torch.no_grad():\n        return sum(model(batch).item() for batch in loader)\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nif step % 100 == 0 and rank == 0:\n    print(evaluate(engine, loader))\n"), ("ds.json", super::STAGE_3)]), Example::job("torchrun --nproc_per_node 2 t.py").files(&[("t.py", "args = TrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nmodel = AutoModelForCausalLM.from_pretrained('m')\ntrainer = Trainer(model, args)\ntrainer.train()\nif trainer.is_world_process_zero():\n    print(trainer.evaluate())\n"), ("ds.json", STAGE_2)])],
    good: &[Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nloss = engine(test)\nif torch.distributed.get_rank() == 0:\n    print(loss)\n"), ("ds.json", super::STAGE_3)]), Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nif torch.distributed.get_rank() == 0:\n    print(engine(test))\n"), ("ds.json", super::STAGE_2)])],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{call}` runs the model only if `{condition}`: the run hangs in ZeRO stage 3",
        "`{call}` 只在 `{condition}` 时运行模型，ZeRO stage 3 下训练会卡住",
    ),
    why: Text::new(
        "Before a layer runs, DeepSpeed gathers its weights from all ranks. A single rank waits for the others until the collective times out.",
        "DeepSpeed 运行每一层之前都要从所有 rank 聚合权重。只有一个 rank 运行时，它会一直等其他 rank，直到通信超时。",
    ),
    help: Text::new(
        "run the model on all ranks, and print or save on one rank",
        "让所有 rank 都运行模型，只在一个 rank 上打印或保存",
    ),
};

static THROUGH: Wording = Wording {
    message: Text::new(
        "`{site}`, which runs the model, is called only if `{condition}`: ZeRO stage 3 hangs",
        "`{site}` 里运行了模型，却只在 `{condition}` 时执行，ZeRO stage 3 下训练会卡住",
    ),
    why: WORDING.why,
    help: Text::new(
        "call `{site}` on all ranks, and print or save its result on one rank",
        "让所有 rank 都调用 `{site}`，只在一个 rank 上打印或保存结果",
    ),
};

static EVALUATES: Wording = Wording {
    message: Text::new(
        "`{call}` runs only if `{condition}`: the run hangs",
        "`{call}` 只在 `{condition}` 时调用，训练会卡住",
    ),
    why: Text::new(
        "The HF Trainer distributes the evaluation over all ranks and gathers the results. A single rank waits for the others until the collective times out.",
        "HF Trainer 会把评估分给所有 rank，再汇总结果。只有一个 rank 调用时，它会一直等其他 rank，直到通信超时。",
    ),
    help: Text::new(
        "call `{call}` on all ranks, and print its result on one rank",
        "让所有 rank 都调用 `{call}`，只在一个 rank 上打印结果",
    ),
};

/// What runs an engine's model: nothing behind its name calls it.
const RUNS: [&str; 5] = ["", ".forward", ".module", ".generate", ".module.generate"];

/// What makes weights whole, so that one rank can run the model by itself.
const WHOLE: [&str; 2] = ["GatheredParameters", "summon_full_params"];

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings().filter(|training| training.launch.world != Some(1)) {
        let script = training.script;
        if let Some(trainer) = trainer(script).filter(|_| training.stage().is_some()) {
            let calls = alone(script, trainer).into_iter().filter(|alone| {
                let method = alone.call.callee.strip_prefix(alone.object);
                alone.site.span == alone.call.span
                    && matches!(method, Some(".evaluate" | ".predict"))
            });
            tell(&training, calls, &RULE, [&EVALUATES, &EVALUATES], found);
        }
        let Some((_, engine)) = script.engine().filter(|_| training.stage() == Some(3)) else {
            continue;
        };
        if WHOLE.iter().any(|name| script.calls(name)) {
            continue;
        }
        let calls = alone(script, engine).into_iter().filter(|alone| {
            let method = alone.call.callee.strip_prefix(alone.object);
            method.is_some_and(|method| RUNS.contains(&method)) && script.is_on_engine(alone.site)
        });
        tell(&training, calls, &RULE, [&WORDING, &THROUGH], found);
    }
}
