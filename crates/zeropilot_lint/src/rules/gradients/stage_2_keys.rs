use zeropilot_config::syntax::Member;
use zeropilot_config::syntax::Value;

use crate::argument::Argument;
use crate::diagnostic::Diagnostic;
use crate::reading::ZERO;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "G10",
    name: "stage-2-keys",
    group: Group::Gradients,
    severity: Severity::Note,
    summary: Text::new("stage-1 and stage-2 keys in stage 3", "stage 3 里写了 stage 1/2 的键"),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed#6420", "deepspeedai/DeepSpeed#2864"],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "allgather_bucket_size": 2e8}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "load_from_fp32_weights": false}}"#,
        ),
    ],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "allgather_bucket_size": 2e8}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "round_robin_gradients": false}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "load_from_fp32_weights": true}}"#,
        ),
    ],
    is_no_op: true,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "only ZeRO stages 1 and 2 use {idle}, but the stage is 3",
        "{idle} 只在 ZeRO stage 1/2 下有效，而现在是 stage 3",
    ),
    why: Text::new(
        "The stage-3 optimizer does not use these keys. The `stage3_` keys set how much it gathers at once.",
        "stage 3 的优化器不使用这些键；一次聚合多少由 `stage3_` 开头的键决定。",
    ),
    help: Text::new(
        "remove {idle}; to save GPU memory in stage 3, lower `stage3_prefetch_bucket_size`, `stage3_max_live_parameters` and `stage3_max_reuse_distance`",
        "删掉 {idle}；想在 stage 3 下省显存，应调小 `stage3_prefetch_bucket_size`、`stage3_max_live_parameters` 和 `stage3_max_reuse_distance`",
    ),
};

const NOT_STAGE_3: [&str; 4] = [
    "allgather_bucket_size",
    "round_robin_gradients",
    "use_multi_rank_bucket_allreduce",
    "parameter_alignment",
];

#[cfg(test)]
#[test]
fn the_text_of_every_key_says_that_it_needs_stage_1_or_2() {
    for key in NOT_STAGE_3 {
        let text = zeropilot_config::keys::text(&format!("{ZERO}.{key}")).expect(key);
        assert_eq!(text.needs["zero_optimization.stage"], [1, 2], "{key}");
    }
}

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let (Some(3), Some(zero)) = (subject.stage(), subject.zero()) else { return };
    let Value::Object(members) = &zero.value else { return };
    // A universal checkpoint is what stage 3 asks it for.
    let is_universal = subject.is_on(["checkpoint", "load_universal"]);
    let is_idle = |member: &&Member| match member.key.as_str() {
        "load_from_fp32_weights" => member.value.value == Value::Bool(false) && !is_universal,
        key => NOT_STAGE_3.contains(&key) && member.value.value != Value::Bool(false),
    };
    let idle: Vec<&Member> = members.iter().filter(is_idle).collect();
    let Some(first) = idle.first() else { return };
    let names = idle.iter().map(|member| member.key.clone()).collect();
    found.push(
        Diagnostic::new(&RULE, &WORDING, ZERO, first.key_span).with("idle", Argument::Words(names)),
    );
}
