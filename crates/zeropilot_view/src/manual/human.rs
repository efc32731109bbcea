//! A page as text: what the rule is about, what its examples yield, where it holds.

use zeropilot_config::front_end::{Arguments, FrontEnd};
use zeropilot_config::schema::EngineVersion;
use zeropilot_lint::{Case, Diagnostic, Example, Group, Page, Rule, Safety, Script, Severity};
use zeropilot_text::{Language, Text, tr};

use crate::Layout;
use crate::wrap::wrap;

/// Columns where there is no terminal to ask.
const WIDTH: usize = 100;

pub(crate) fn page(page: &Page, layout: &Layout) -> String {
    let language = layout.language;
    let rule = page.rule;
    let mut text = format!("{}\n{}\n", head(rule, layout), rule.summary.get(language));
    for case in &page.cases {
        text.push('\n');
        text.push_str(&bad(case, layout));
    }
    if !rule.good.is_empty() {
        let heading = Text::new("Examples without this finding", "这样写就没有问题");
        text.push_str(&format!("\n{}\n", heading.get(language)));
        for example in rule.good {
            text.push_str(&config(example, language));
        }
    }
    text.push('\n');
    for (name, value) in facts(page, language) {
        let colon = Text::new(": ", "：").get(language);
        text.push_str(&labelled(&format!("{name}{colon}"), &value, "", layout));
    }
    text
}

fn head(rule: &Rule, layout: &Layout) -> String {
    let severity = severity_name(rule.severity).get(layout.language);
    let group = group_name(rule.group).get(layout.language);
    let name = format!("{} {}", rule.code, rule.name);
    let name = if layout.color { format!("\u{1b}[1m{name}\u{1b}[0m") } else { name };
    tr!(layout.language, "{name} ({severity}, {group})", "{name}（{severity}，{group}）")
}

fn bad(case: &Case, layout: &Layout) -> String {
    let language = layout.language;
    let mut text = format!("{}\n", Text::new("Example", "示例").get(language));
    text.push_str(&config(case.example, language));
    for found in &case.findings {
        text.push_str(&finding(found, layout));
    }
    text
}

/// The file, indented, and what must be known beside it.
fn config(example: &Example, language: Language) -> String {
    let mut text: String = example.config.lines().map(|line| format!("    {line}\n")).collect();
    for (name, content) in example.files {
        text.push_str(&format!("    {name}:\n"));
        text.extend(content.lines().map(|line| format!("        {line}\n")));
    }
    let beside = surroundings(example, language);
    if !beside.is_empty() {
        let beside = beside.join(Text::new(", ", "，").get(language));
        text.push_str(&tr!(language, "    ({beside})\n", "    （{beside}）\n"));
    }
    text
}

fn surroundings(example: &Example, language: Language) -> Vec<String> {
    let mut beside = Vec::new();
    if example.front_end != FrontEnd::DeepSpeed {
        let name = front_end_name(example.front_end).get(language);
        beside.push(tr!(language, "read by {name}", "由 {name} 读取"));
    }
    if example.is_reader_guessed {
        beside.push(tr!(
            language,
            "the program that reads the config is not given",
            "没有指定读取配置的程序"
        ));
    }
    match example.world_size {
        None | Some(2) => {}
        Some(1) => beside.push(tr!(language, "1 rank", "1 个 rank")),
        Some(ranks) => beside.push(tr!(language, "{ranks} ranks", "{ranks} 个 rank")),
    }
    if (example.arguments)() != Arguments::default() || (example.script)() != Script::default() {
        beside.push(tr!(language, "with training arguments", "带训练参数"));
    }
    if let Some(version) = example.version {
        beside.push(format!("DeepSpeed {version}"));
    }
    beside
}

fn finding(found: &Diagnostic, layout: &Layout) -> String {
    let language = layout.language;
    let colon = Text::new(": ", "：").get(language);
    let severity = severity_name(found.severity).get(language);
    let mut text = labelled(&format!("{severity}{colon}"), &found.message(language), "  ", layout);
    let why = Text::new("why", "原因").get(language);
    let help = Text::new("help", "建议").get(language);
    text.push_str(&labelled(&format!("{why}{colon}"), &found.why(language), "  ", layout));
    text.push_str(&labelled(&format!("{help}{colon}"), &found.help(language), "  ", layout));
    if let (Some(fix), Some(title)) = (&found.fix, found.fix_title(language)) {
        let name = Text::new("fix", "修复").get(language);
        let title =
            tr!(language, "{title} ({})", "{title}（{}）", safety_name(fix.safety).get(language));
        text.push_str(&labelled(&format!("{name}{colon}"), &title, "  ", layout));
    }
    text
}

/// Where the rule holds and where it comes from.
fn facts(page: &Page, language: Language) -> Vec<(&'static str, String)> {
    let comma = Text::new(", ", "、").get(language);
    let mut facts = Vec::new();
    let safeties: Vec<_> =
        page.safeties().into_iter().map(|safety| safety_name(safety).get(language)).collect();
    let fix = match safeties.as_slice() {
        [] => tr!(language, "none", "无"),
        names => names.join(comma),
    };
    facts.push((Text::new("fix", "修复").get(language), fix));
    facts.push((Text::new("DeepSpeed", "DeepSpeed 版本").get(language), versions(page, language)));
    let names: Vec<_> =
        page.front_ends.iter().map(|end| front_end_name(*end).get(language)).collect();
    if !names.is_empty() {
        facts.push((Text::new("read by", "读取方").get(language), names.join(comma)));
    }
    if !page.rule.sources.is_empty() {
        facts.push((Text::new("sources", "来源").get(language), page.rule.sources.join(comma)));
    }
    facts
}

fn versions(page: &Page, language: Language) -> String {
    let comma = Text::new(", ", "、").get(language);
    if page.versions.is_empty() || page.versions.len() == EngineVersion::all().count() {
        return tr!(language, "every known version", "所有已知版本");
    }
    let names: Vec<_> = page.versions.iter().map(|version| version.name()).collect();
    names.join(comma)
}

/// A label and its text, wrapped, with the following lines below the text.
fn labelled(label: &str, text: &str, indent: &str, layout: &Layout) -> String {
    use unicode_width::UnicodeWidthStr as _;

    let margin = indent.len() + label.width();
    let width = layout.width.unwrap_or(WIDTH).clamp(60, 140);
    let wrapped = wrap(text, width.saturating_sub(margin).max(40));
    let continued = format!("\n{}", " ".repeat(margin));
    format!("{indent}{label}{}\n", wrapped.replace('\n', &continued))
}

pub(crate) fn severity_name(severity: Severity) -> Text {
    match severity {
        Severity::Error => Text::new("error", "错误"),
        Severity::Warning => Text::new("warning", "警告"),
        Severity::Note => Text::new("note", "提示"),
    }
}

fn safety_name(safety: Safety) -> Text {
    match safety {
        Safety::Safe => Text::new("safe", "可放心应用"),
        Safety::Unsafe => Text::new("unsafe", "不安全，需确认"),
    }
}

pub(crate) fn front_end_name(front_end: FrontEnd) -> Text {
    match front_end {
        FrontEnd::DeepSpeed => Text::new("DeepSpeed itself", "DeepSpeed 自身"),
        FrontEnd::HfTrainer => Text::new("the HF Trainer", "HF Trainer"),
        FrontEnd::Accelerate => Text::new("accelerate", "accelerate"),
    }
}

pub(crate) fn group_name(group: Group) -> Text {
    match group {
        Group::Batch => Text::new("batch arithmetic", "batch 换算"),
        Group::Auto => Text::new("\"auto\" values", "\"auto\" 占位符"),
        Group::Keys => Text::new("keys and file format", "键与文件格式"),
        Group::Versions => Text::new("DeepSpeed versions", "版本差异"),
        Group::Precision => Text::new("precision", "精度"),
        Group::Optimizer => Text::new("optimizer and scheduler", "优化器与学习率调度"),
        Group::Offload => Text::new("offload", "offload"),
        Group::Gradients => Text::new("buckets and gradients", "通信桶与梯度"),
        Group::Checkpointing => Text::new("gradient checkpointing", "梯度检查点"),
        Group::ZeroPlusPlus => Text::new("ZeRO++", "ZeRO++"),
        Group::Saving => Text::new("saving and resuming", "保存与续训"),
        Group::Integrations => Text::new("integrations", "框架集成"),
        Group::Launch => Text::new("launching", "启动"),
        Group::Hangs => Text::new("hangs", "卡住"),
        Group::TrainingCode => Text::new("training code", "训练代码"),
        Group::Construction => {
            Text::new("building models under ZeRO stage 3", "ZeRO stage 3 下的模型构建")
        }
    }
}
