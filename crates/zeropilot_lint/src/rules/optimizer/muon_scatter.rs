use zeropilot_config::constructors::Constructors;
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::diagnostic::Fix;
use crate::edit::Edit;
use crate::edit::insert_members;
use crate::reading::at_value;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "O25",
    name: "muon-needs-all-reduce",
    group: Group::Optimizer,
    severity: Severity::Error,
    summary: Text::new(
        "`Muon` before DeepSpeed 0.17.6; in stage 3, before 0.18.9 or with `reduce_scatter`",
        "在 DeepSpeed 0.17.6 之前使用 `Muon`；stage 3 下，在 0.18.9 之前使用，或同时开启 `reduce_scatter`",
    ),
    wordings: &[&WORDING, &STAGE_3, &OF_PYTORCH],
    sources: &[],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "Muon", "params": {"lr": 1e-3}}, "zero_optimization": {"stage": 3}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "Muon", "params": {"lr": 1e-3}}, "zero_allow_untested_optimizer": true, "zero_optimization": {"stage": 3, "reduce_scatter": false}}"#,
        )
        .version("0.17.6"),
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "Muon", "params": {"lr": 1e-3}}}"#,
        )
        .version("0.16.9"),
    ],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "Muon", "params": {"lr": 1e-3}}, "zero_optimization": {"stage": 3, "reduce_scatter": false}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "Muon", "params": {"lr": 1e-3}}, "zero_optimization": {"stage": 2}}"#,
        ),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`Muon` in stage 3 needs `\"reduce_scatter\": false`",
        "stage 3 下使用 `Muon` 需要 `\"reduce_scatter\": false`",
    ),
    why: Text::new(
        "Muon orthogonalizes whole gradients, but after a reduce-scatter, no rank has a whole gradient. DeepSpeed raises an error at startup.",
        "Muon 要对完整的梯度做正交化，而 reduce-scatter 之后没有哪个 rank 有完整的梯度，DeepSpeed 启动时会报错。",
    ),
    help: Text::new(
        "add `\"reduce_scatter\": false` to `zero_optimization`, or use stage 1 or 2",
        "在 `zero_optimization` 里加上 `\"reduce_scatter\": false`，或改用 stage 1/2",
    ),
};

static STAGE_3: Wording = Wording {
    message: Text::new(
        "DeepSpeed {version} does not support `Muon` in ZeRO stage 3",
        "DeepSpeed {version} 不支持在 ZeRO stage 3 下使用 `Muon`",
    ),
    why: Text::new(
        "Before 0.18.9, Muon works only up to stage 2. DeepSpeed checks this when it creates the optimizer and exits with an error.",
        "在 0.18.9 之前，Muon 最高只支持 stage 2；DeepSpeed 创建优化器时检查，不满足就报错退出。",
    ),
    help: Text::new(
        "use stage 1 or 2, or DeepSpeed 0.18.9 or later",
        "改用 stage 1/2，或升级到 DeepSpeed 0.18.9 及以上",
    ),
};

static OF_PYTORCH: Wording = Wording {
    message: Text::new(
        "DeepSpeed {version} uses PyTorch's `Muon`, which accepts only matrices",
        "DeepSpeed {version} 用的是 PyTorch 的 `Muon`，它只接受矩阵",
    ),
    why: Text::new(
        "Norms and biases are vectors: the run exits with `Muon only supports 2D parameters`. Since 0.17.6, DeepSpeed has its own Muon, which trains vectors with Adam.",
        "norm 和 bias 是向量，训练会以 `Muon only supports 2D parameters` 退出。从 0.17.6 起，DeepSpeed 有自己的 Muon，会用 Adam 训练这些参数。",
    ),
    help: Text::new(
        "use DeepSpeed 0.18 or later, or another optimizer",
        "升级到 DeepSpeed 0.18 及以上，或换一个优化器",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some((name, node)) = subject.optimizer_type() else { return };
    if !name.eq_ignore_ascii_case("muon") {
        return;
    }
    let constructors = Constructors::of(subject.version);
    if constructors.builds_optimizer(name) && subject.version < EngineVersion::V0_17 {
        let title = Text::new("use `AdamW`", "改用 `AdamW`");
        let fix = Fix::guess(title, vec![Edit::new(node.span, "\"AdamW\"")]);
        found.push(
            at_value(&RULE, &OF_PYTORCH, &["optimizer", "type"], node)
                .with("version", subject.version.name())
                .fix(Some(fix)),
        );
        return;
    }
    if subject.stage() != Some(3) {
        return;
    }
    let is_known = constructors.knows_optimizer(name);
    if is_known && subject.version < EngineVersion::V0_18 {
        let title = Text::new("use stage 2", "改为 stage 2");
        let stage = subject.zero_member("stage").map(|member| Edit::new(member.value.span, "2"));
        found.push(
            at_value(&RULE, &STAGE_3, &["optimizer", "type"], node)
                .with("version", subject.version.name())
                .fix(stage.map(|edit| Fix::guess(title, vec![edit]))),
        );
        return;
    }
    let scatters = match subject.zero_member("reduce_scatter") {
        None => true,
        Some(member) => member.value.value == Value::Bool(true),
    };
    if is_known && scatters {
        let title =
            Text::new("add `\"reduce_scatter\": false`", "加上 `\"reduce_scatter\": false`");
        let edit = match (subject.zero_member("reduce_scatter"), subject.zero()) {
            (Some(member), _) => Some(Edit::new(member.value.span, "false")),
            (None, Some(zero)) => insert_members(subject, zero, &[("reduce_scatter", "false")]),
            (None, None) => None,
        };
        found.push(
            at_value(&RULE, &WORDING, &["optimizer", "type"], node)
                .fix(edit.map(|edit| Fix::guess(title, vec![edit]))),
        );
    }
}
