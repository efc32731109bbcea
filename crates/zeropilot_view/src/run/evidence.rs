//! What a verdict rests on, in the language of the reader. Records hold it in English.

use zeropilot_lint::Language;

/// Templates of evidence; `{}` is a number, a rank or a line of a log.
const CHINESE: [(&str, &str); 11] = [
    ("the command exited with {}", "命令以退出码 {} 结束"),
    ("the command was ended by signal {}", "命令被信号 {} 终止"),
    ("nobody saw how the command ended", "没有看到命令是怎样结束的"),
    ("ranks {} still ran when the command had ended", "命令结束时 rank {} 仍在运行"),
    ("{} of {} ranks reported to have ended as they should", "{}/{} 个 rank 报告正常结束"),
    ("the kernel killed {} for memory", "内核因内存不足杀死了 {} 个进程"),
    ("rank {} ended by signal {}", "rank {} 被信号 {} 终止"),
    ("a rank ended by signal {}", "有一个 rank 被信号 {} 终止"),
    ("rank {} failed first", "最先失败的是 rank {}"),
    ("the loss is not a number", "loss 不是有限的数"),
    ("log: {}", "日志：{}"),
];

/// Evidence as a person reads it; what is not known stays as it is.
pub(super) fn words(evidence: &str, language: Language) -> String {
    if language == Language::English {
        return evidence.to_owned();
    }
    let translated = CHINESE.iter().find_map(|(en, zh)| {
        let mut text = (*zh).to_owned();
        for value in values(en, evidence)? {
            text = text.replacen("{}", value, 1);
        }
        Some(text)
    });
    translated.unwrap_or_else(|| evidence.to_owned())
}

/// What stands for each `{}` of a template, if the text is one of it.
fn values<'t>(template: &str, text: &'t str) -> Option<Vec<&'t str>> {
    let mut parts = template.split("{}");
    let mut rest = text.strip_prefix(parts.next()?)?;
    let mut values = Vec::new();
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        let end = if is_last { rest.strip_suffix(part)?.len() } else { rest.find(part)? };
        values.push(&rest[..end]);
        rest = &rest[end + part.len()..];
    }
    rest.is_empty().then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_told_in_chinese_with_its_numbers() {
        let zh = |text: &str| words(text, Language::Chinese);
        assert_eq!(zh("the command exited with 1"), "命令以退出码 1 结束");
        assert_eq!(zh("rank 3 ended by signal 9"), "rank 3 被信号 9 终止");
        assert_eq!(
            zh("1 of 2 ranks reported to have ended as they should"),
            "1/2 个 rank 报告正常结束"
        );
        assert_eq!(zh("log: {} of {}"), "日志：{} of {}");
        assert_eq!(zh("something new"), "something new");
        assert_eq!(words("log: x", Language::English), "log: x");
    }

    #[test]
    fn both_sides_of_a_template_have_the_same_gaps() {
        for (en, zh) in CHINESE {
            assert_eq!(en.matches("{}").count(), zh.matches("{}").count(), "{en}");
        }
    }
}
