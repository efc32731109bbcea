//! Advisories: what goes wrong in which versions, when, and what to do. As a page for people, a line and a shape.

use serde::Serialize;
use serde_json::Value as Json;
use zeropilot_lint::advisory::{Advisory, Affected, Condition, Test};
use zeropilot_text::{Language, Text, tr};

use crate::Layout;
use crate::explain::Page;
use crate::listing::Listed;

/// An advisory: a known defect of some versions.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AdvisoryEntry {
    id: &'static str,
    title: &'static str,
    kind: &'static str,
    what: &'static str,
    workaround: &'static str,
    affects: Vec<AffectedVersions>,
    when: Vec<String>,
    evidence: Vec<String>,
    rule: Option<&'static str>,
    reproduced: Option<ReproducedOn>,
}

/// Versions of a package: from the first one with the defect to before the one with the fix.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AffectedVersions {
    package: &'static str,
    from: Option<&'static str>,
    fixed: Option<&'static str>,
}

/// Engines on which a test shows the defect and its end.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReproducedOn {
    affected: &'static str,
    fixed: &'static str,
}

/// An advisory with everything that is known.
pub fn human(advisory: &'static Advisory, layout: &Layout) -> String {
    let language = layout.language;
    let label = |en, zh| Text::new(en, zh).get(language);
    let mut page = Page::new(layout);
    page.title(&format!("{}{}{}", advisory.id, label(": ", "："), advisory.title().get(language)));
    let mut rows = vec![
        (label("kind", "类型"), advisory.kind.words().get(language).to_owned()),
        (label("affected", "受影响的版本"), versions(advisory, language)),
        (label("when", "条件"), conditions(advisory, language).join(label("; ", "；"))),
        (label("effect", "后果"), advisory.what().get(language).to_owned()),
        (label("fix", "修复"), fix(advisory, language)),
        (label("workaround", "变通办法"), advisory.workaround().get(language).to_owned()),
        (label("evidence", "依据"), links(advisory).join(label(", ", "，"))),
    ];
    if let Some(rule) = &advisory.rule {
        let words = tr!(language, "rule {rule} reports this defect", "规则 {rule} 会报告这个缺陷");
        rows.push((label("check", "检查"), words));
    }
    if let Some(pair) = &advisory.reproduced {
        let (affected, fixed) = (&pair.affected, &pair.fixed);
        let words = tr!(
            language,
            "a test shows the defect on DeepSpeed {affected} but not on {fixed}",
            "测试在 DeepSpeed {affected} 上能复现这个缺陷，在 {fixed} 上不再出现"
        );
        rows.push((label("test", "测试"), words));
    }
    page.rows(2, &rows);
    page.into_text()
}

/// `deepspeed ≥ 0.15.2, < 0.19.0`.
pub fn versions(advisory: &Advisory, language: Language) -> String {
    let one = |affected: &Affected| {
        let Affected { package, from, fixed } = affected;
        match (from, fixed) {
            (Some(from), Some(fixed)) => format!("{package} ≥ {from}, < {fixed}"),
            (Some(from), None) => format!("{package} ≥ {from}"),
            (None, Some(fixed)) => format!("{package} < {fixed}"),
            (None, None) => package.clone(),
        }
    };
    let with = Text::new(" with ", " 搭配 ").get(language);
    advisory.affects.iter().map(one).collect::<Vec<_>>().join(with)
}

fn fix(advisory: &Advisory, language: Language) -> String {
    let (package, fixed) = advisory.fixed().unwrap_or_default();
    tr!(language, "upgrade to {package} {fixed} or newer", "升级到 {package} {fixed} 或更新版本")
}

/// The addresses of the evidence.
pub fn links(advisory: &Advisory) -> Vec<String> {
    let link = |source: &String| {
        let (repository, number) = source.split_once('#').unwrap_or((source, ""));
        format!("https://github.com/{repository}/issues/{number}")
    };
    advisory.evidence.iter().map(link).collect()
}

/// What must hold, one entry each.
pub fn conditions(advisory: &'static Advisory, language: Language) -> Vec<String> {
    advisory.when.iter().map(|condition| words(condition, language)).collect()
}

fn words(condition: &'static Condition, language: Language) -> String {
    let or = Text::new(" or ", " 或 ").get(language);
    let ticked = |names: &[String]| {
        names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(or)
    };
    match condition {
        Condition::Stage(stages) => {
            let stages: Vec<String> = stages.iter().map(u8::to_string).collect();
            let stages = stages.join(or);
            tr!(language, "ZeRO stage {stages}", "ZeRO stage {stages}")
        }
        Condition::Key { path, test } => tested(&format!("`{path}`"), test, language),
        Condition::Argument { name, test } => {
            let name = tr!(language, "argument `{name}`", "参数 `{name}`");
            tested(&name, test, language)
        }
        Condition::FrontEnd(names) => {
            let names = ticked(names);
            tr!(language, "read by {names}", "由 {names} 读取")
        }
        Condition::Calls(names) => {
            let names = ticked(names);
            tr!(language, "the script calls {names}", "脚本调用 {names}")
        }
        Condition::Adapters(true) => {
            tr!(language, "PEFT adapters are trained", "训练 PEFT 适配器")
        }
        Condition::Adapters(false) => {
            tr!(language, "no PEFT adapters are trained", "不训练 PEFT 适配器")
        }
        Condition::Any(all) => {
            all.iter().map(|one| words(one, language)).collect::<Vec<_>>().join(or)
        }
        Condition::Other(other) => other.text().get(language).to_owned(),
    }
}

fn tested(name: &str, test: &Test, language: Language) -> String {
    let or = Text::new(" or ", " 或 ").get(language);
    let listed = |all: &[Json]| {
        let value = |value: &Json| match value {
            Json::String(text) => format!("`{text}`"),
            other => format!("`{other}`"),
        };
        all.iter().map(value).collect::<Vec<_>>().join(or)
    };
    match test {
        Test::Is(all) => {
            let all = listed(all);
            tr!(language, "{name} is {all}", "{name} 是 {all}")
        }
        Test::IsNot(all) => {
            let all = listed(all);
            tr!(language, "{name} is not {all}", "{name} 不是 {all}")
        }
        Test::Above(limit) => tr!(language, "{name} is above {limit}", "{name} 大于 {limit}"),
        Test::Written(true) => tr!(language, "{name} is set", "设置了 {name}"),
        Test::Written(false) => tr!(language, "{name} is not set", "没有设置 {name}"),
        Test::Auto(true) => tr!(language, "{name} is `\"auto\"`", "{name} 是 `\"auto\"`"),
        Test::Auto(false) => tr!(language, "{name} is not `\"auto\"`", "{name} 不是 `\"auto\"`"),
    }
}

impl Listed for &'static Advisory {
    const HEADS: &'static [Text] = &[
        Text::new("advisory", "编号"),
        Text::new("kind", "类型"),
        Text::new("fixed in", "修复版本"),
        Text::new("problem", "问题"),
    ];

    fn contains(&self, word: &str) -> bool {
        let texts = [self.title(), self.what(), self.kind.words()];
        let has = |text: &Text| text.en.to_lowercase().contains(word) || text.zh.contains(word);
        self.id.contains(word) || self.kind.name() == word || texts.iter().any(has)
    }

    fn cells(&self, language: Language) -> Vec<String> {
        let fixed = self.fixed().map(|(package, fixed)| format!("{package} {fixed}"));
        vec![
            self.id.clone(),
            self.kind.words().get(language).to_owned(),
            fixed.unwrap_or_default(),
            self.title().get(language).to_owned(),
        ]
    }

    type Shape<'a> = AdvisoryEntry;

    fn shape(&self, language: Language) -> AdvisoryEntry {
        let own: &'static Advisory = self;
        let affected = |one: &'static Affected| AffectedVersions {
            package: &one.package,
            from: one.from.as_deref(),
            fixed: one.fixed.as_deref(),
        };
        AdvisoryEntry {
            id: &own.id,
            title: own.title().get(language),
            kind: own.kind.name(),
            what: own.what().get(language),
            workaround: own.workaround().get(language),
            affects: own.affects.iter().map(affected).collect(),
            when: conditions(own, language),
            evidence: links(own),
            rule: own.rule.as_deref(),
            reproduced: own
                .reproduced
                .as_ref()
                .map(|pair| ReproducedOn { affected: &pair.affected, fixed: &pair.fixed }),
        }
    }
}
