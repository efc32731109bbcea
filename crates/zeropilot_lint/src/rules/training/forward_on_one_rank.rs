use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::rules::launch::one_rank_saves::holds_on_one_rank;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "H10",
    name: "forward-on-one-rank",
    group: Group::Hangs,
    severity: Severity::Warning,
    summary: Text::new(
        "the model runs on one rank only in stage 3",
        "stage 3 下只在一个进程上运行模型",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    engine.backward(engine(batch))\n    engine.step()\nif torch.distributed.get_rank() == 0:\n    print(engine(test))\n"), ("ds.json", super::STAGE_3)])],
    good: &[Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nloss = engine(test)\nif torch.distributed.get_rank() == 0:\n    print(loss)\n"), ("ds.json", super::STAGE_3)]), Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nif torch.distributed.get_rank() == 0:\n    print(engine(test))\n"), ("ds.json", super::STAGE_2)])],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{call}` runs the model only where `{condition}`: the run hangs in ZeRO stage 3",
        "`{call}` 只在 `{condition}` 时运行模型，ZeRO stage 3 会卡住",
    ),
    why: Text::new(
        "Every layer is gathered from all ranks before it runs. The one rank waits for the others until the collectives time out.",
        "每一层运行前都要从所有进程聚合权重。只有一个进程运行时，它会一直等其他进程，直到通信超时。",
    ),
    help: Text::new(
        "run the model on all ranks, and print or save on one",
        "让所有进程都运行模型，只在一个进程上打印或保存",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings().filter(|training| training.stage() == Some(3)) {
        if training.launch.world == Some(1) {
            continue;
        }
        let Some((_, engine)) = training.script.engine() else { continue };
        let runs = [engine.to_owned(), format!("{engine}.forward"), format!("{engine}.module")];
        for call in training.script.calls.iter().filter(|call| runs.contains(&call.callee)) {
            let guard = call.condition.as_deref().filter(|text| holds_on_one_rank(text));
            if let Some(condition) = guard.filter(|_| training.script.is_on_engine(call)) {
                let diagnostic = Diagnostic::new(&RULE, &WORDING, "", call.span)
                    .with("call", call.callee.as_str())
                    .with("condition", condition);
                found.at(&training.place(call.span), diagnostic);
            }
        }
    }
}
