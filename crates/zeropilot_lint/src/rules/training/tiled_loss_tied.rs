use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Call, PythonScript, Value};
use zeropilot_text::Text;

use super::{STAGE_2, STAGE_3};

const TIED: &str = "model.lm_head.weight = model.embedding.weight\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nloss = TiledFusedLogitsLoss.apply(loss_fn, model, hidden, labels, None, 4, [model.lm_head.weight], 'mean')\n";

pub(crate) static RULE: Rule = Rule {
    code: "G28",
    name: "tiled-loss-shared-weight",
    group: Group::Gradients,
    severity: Severity::Error,
    summary: Text::new(
        "a tiled loss whose output layer shares the embedding's weight",
        "分块 loss 的输出层与词嵌入共享权重",
    ),
    wordings: &[&WORDING],
    sources: &[
        "deepspeedai/DeepSpeed deepspeed/runtime/sequence_parallel/ulysses_sp.py, TiledFusedLogitsLoss",
    ],
    examples: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json")
            .files(&[("t.py", TIED), ("ds.json", STAGE_2)]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "config = LlamaConfig(vocab_size=64, tie_word_embeddings=True)\nengine, _, _, _ = deepspeed.initialize(args=args, model=LlamaForCausalLM(config))\nloss = sequence_tiled_compute(loss_fn, 64, 4, shard, more, 'x', [engine.module.lm_head.weight], 0, 'mean')\n"),
            ("ds.json", STAGE_3),
        ]),
    ],
    good: &[Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
        ("t.py", "config = LlamaConfig(vocab_size=64, tie_word_embeddings=False)\nengine, _, _, _ = deepspeed.initialize(args=args, model=LlamaForCausalLM(config))\nloss = sequence_tiled_compute(loss_fn, 64, 4, shard, more, 'x', [engine.module.lm_head.weight], 0, 'mean')\n"),
        ("ds.json", STAGE_3),
    ])],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{call}` fails in ZeRO stage {stage}: the output layer shares the embedding's weight",
        "在 ZeRO stage {stage} 下 `{call}` 会失败：输出层与词嵌入共享权重",
    ),
    why: Text::new(
        "The tiled loss reduces the gradient of the weights that you pass to it, and the embedding then produces a second gradient. DeepSpeed reduces each gradient only once and exits with an `AssertionError`.",
        "分块 loss 会自行规约传入权重的梯度，之后词嵌入又产生一次同一权重的梯度。DeepSpeed 对每个梯度只规约一次，因此以 `AssertionError` 退出。",
    ),
    help: Text::new(
        "give the output layer its own weight (`tie_word_embeddings=False`), or use stage 1 or a fused loss such as Liger Kernel's",
        "让输出层使用独立的权重（`tie_word_embeddings=False`）、改用 stage 1，或使用 Liger Kernel 等的融合 loss",
    ),
};

/// Whether the script says that two layers share a weight.
fn shares_weight(script: &PythonScript) -> bool {
    let by_option = script.calls.iter().any(|call| {
        let said = call.keyword("tie_word_embeddings").map(|(value, _)| value);
        matches!(said, Some(Value::Literal(text)) if text.eq_ignore_ascii_case("true"))
    });
    let is_weight = |name: &str| name.ends_with(".weight") && name.split('.').count() > 2;
    by_option
        || script.assignments.iter().any(|set| {
            is_weight(&set.target) && is_weight(&set.value) && set.target != set.value && !set.adds
        })
}

/// Whether a loss in tiles is handed the weights of the output layer.
fn is_tiled_loss(call: &Call) -> bool {
    call.callee.ends_with("TiledFusedLogitsLoss.apply") || {
        let dimension = call.argument(7, "output_unshard_dimension");
        call.name() == "sequence_tiled_compute"
            && call.argument(6, "compute_params").is_some()
            && matches!(dimension, Some((Value::Literal(text), _)) if text == "0")
    }
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings() {
        let Some(stage @ 2..=3) = training.stage() else { continue };
        if !shares_weight(training.script) {
            continue;
        }
        for call in training.script.calls.iter().filter(|call| is_tiled_loss(call)) {
            let diagnostic = Diagnostic::new(&RULE, &WORDING, "", call.span)
                .with("call", call.callee.as_str())
                .with("stage", usize::from(stage));
            found.at(&training.place(call.span), diagnostic);
        }
    }
}
