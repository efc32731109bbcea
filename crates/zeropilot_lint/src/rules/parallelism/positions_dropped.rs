use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::ulysses;
use zeropilot_job::{Call, PythonScript};
use zeropilot_text::Text;

use super::STAGE_3;

pub(crate) static RULE: Rule = Rule {
    code: "G25",
    name: "sequence-parallel-positions",
    group: Group::Gradients,
    severity: Severity::Warning,
    summary: Text::new(
        "with Ulysses and no `position_ids` passed to the model, positions start at 0 on every rank",
        "使用 Ulysses 时，如果不给模型传入 `position_ids`，每个 rank 上的位置都从 0 开始",
    ),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed deepspeed/runtime/sequence_parallel/ulysses_sp.py, UlyssesSPDataLoaderAdapter"],
    examples: &[Example::job("torchrun --nproc_per_node 2 t.py").files(&[
        ("t.py", "mpu = UlyssesSPAttentionHF.register_with_transformers(model_name_or_path=model, core_attn_implementation='sdpa', sequence_parallel_size=2, micro_batch_size=1)\nengine, _, _, _ = deepspeed.initialize(model=model, config='ds.json', mpu=mpu)\nlogits = engine(input_ids=batch['input_ids']).logits\n"),
        ("ds.json", STAGE_3),
    ])],
    good: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "mpu = UlyssesSPAttentionHF.register_with_transformers(model_name_or_path=model, core_attn_implementation='sdpa', sequence_parallel_size=2, micro_batch_size=1)\nengine, _, _, _ = deepspeed.initialize(model=model, config='ds.json', mpu=mpu)\nlogits = engine(input_ids=batch['input_ids'], position_ids=batch['position_ids']).logits\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "mpu = UlyssesSPAttentionHF.register_with_transformers(model_name_or_path=model, core_attn_implementation='sdpa', sequence_parallel_size=2, micro_batch_size=1)\nengine, _, _, _ = deepspeed.initialize(model=model, config='ds.json', mpu=mpu)\nlogits = engine(**batch).logits\n"),
            ("ds.json", STAGE_3),
        ]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{callee}` gets part of the sequence without `position_ids`: positions start at 0 on every rank",
        "`{callee}` 只收到序列的一段，却没有 `position_ids`：每个 rank 的位置都从 0 开始",
    ),
    why: Text::new(
        "Each rank has its own part of the sequence, and the model numbers its tokens from 0. Rotary embeddings are then silently wrong except on the first rank: on two ranks, the loss was 4.98461 instead of 4.97937.",
        "每个 rank 只有序列的一段，模型会把收到的 token 从 0 开始编号。除第一个 rank 以外，旋转位置编码都是错的，而且不会报错：两个 rank 的 loss 是 4.98461，而不是 4.97937。",
    ),
    help: Text::new(
        "pass the batch's `position_ids` to the model; `UlyssesSPDataLoaderAdapter` shards them with the tokens",
        "把 batch 里的 `position_ids` 也传给模型；`UlyssesSPDataLoaderAdapter` 会把它与 token 一起切分",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings() {
        let Some(ulysses) = ulysses::of_launch(training.launch) else { continue };
        // What accelerate's Trainer calls is not in the script.
        if ulysses.by_accelerate && training.script.accelerator().is_none() {
            continue;
        }
        for call in training.script.calls.iter().filter(|call| drops(call, training.script)) {
            let place = training.place(call.span);
            let told = Diagnostic::new(&RULE, &WORDING, "", place.span);
            found.at(&place, told.with("callee", call.callee.as_str()));
        }
    }
}

/// Whether a call of the trained model hands it tokens, and nothing that could hold their positions.
fn drops(call: &Call, script: &PythonScript) -> bool {
    let is_engine = script.engine().is_some_and(|(_, name)| call.callee == name);
    let prepares =
        |made: &Call| made.name() == "prepare" && made.bound_names.contains(&call.callee);
    (is_engine || script.calls.iter().any(prepares))
        && call.keyword("input_ids").is_some()
        && call.keyword("position_ids").is_none()
        && !call.has_more
}
