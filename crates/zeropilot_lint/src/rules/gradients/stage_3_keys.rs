use zeropilot_config::syntax::Member;
use zeropilot_config::syntax::Value;

use crate::argument::Argument;
use crate::diagnostic::Diagnostic;
use crate::reading::ZERO;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "G05",
    name: "stage-3-keys",
    group: Group::Gradients,
    severity: Severity::Note,
    summary: Text::new("stage-3 keys in another stage", "其他 stage 里写了 stage 3 的键"),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed#2864", "deepspeedai/DeepSpeed#2869"],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "stage3_max_live_parameters": 1e9, "sub_group_size": 1e9}}"#,
    )],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "stage3_max_live_parameters": 1e9, "sub_group_size": 1e9}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "stage3_gather_16bit_weights_on_model_save": false}}"#,
        ),
    ],
    is_no_op: true,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "only ZeRO stage 3 uses {idle}, but the stage is {stage}",
        "{idle} 只在 ZeRO stage 3 下有效，而现在是 stage {stage}",
    ),
    why: Text::new(
        "These keys control how DeepSpeed gathers and releases partitioned parameters, which stages below 3 do not have.",
        "这些键控制切分后参数的聚合和释放，stage 低于 3 时没有这个过程。",
    ),
    help: Text::new(
        "remove {idle}, or set `stage` to 3 if you intended to use stage 3",
        "删掉 {idle}；如果本意是使用 stage 3，请把 `stage` 设为 3",
    ),
};

const ONLY_STAGE_3: [&str; 11] = [
    "sub_group_size",
    "prefetch_bucket_size",
    "param_persistence_threshold",
    "model_persistence_threshold",
    "max_live_parameters",
    "max_reuse_distance",
    "gather_16bit_weights_on_model_save",
    "module_granularity_threshold",
    "use_all_reduce_for_fetch_params",
    "allgather_sequential",
    "log_trace_cache_warnings",
];

#[cfg(test)]
#[test]
fn the_text_of_every_key_says_that_it_needs_stage_3() {
    let model = zeropilot_config::schema::EngineVersion::NEWEST.schema().section_model(ZERO);
    for name in ONLY_STAGE_3 {
        let field = model.and_then(|model| model.field(name)).expect("a field");
        let key = field.key();
        let text = zeropilot_config::keys::text(&format!("{ZERO}.{key}")).expect(key);
        assert_eq!(text.needs["zero_optimization.stage"], [3], "{key}");
    }
}

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(stage @ 1..=2) = subject.stage() else { return };
    let Some(zero) = subject.zero() else { return };
    let Some(model) = subject.schema().section_model(ZERO) else { return };
    let is_idle = |member: &&Member| {
        let field = model.field_for_key(&member.key);
        field.is_some_and(|field| ONLY_STAGE_3.contains(&field.name.as_str()))
            && member.value.value != Value::Bool(false)
    };
    let Value::Object(members) = &zero.value else { return };
    let idle: Vec<&Member> = members.iter().filter(is_idle).collect();
    let Some(first) = idle.first() else { return };
    let names = idle.iter().map(|member| member.key.clone()).collect();
    found.push(
        Diagnostic::new(&RULE, &WORDING, ZERO, first.key_span)
            .with("idle", Argument::Words(names))
            .with("stage", usize::from(stage)),
    );
}
