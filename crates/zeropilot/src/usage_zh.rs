//! What is wrong with the arguments, in Chinese; clap says it in English alone.

use std::error::Error as _;
use std::io::{self, Write as _};

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Says what is wrong, or lets clap say what is not known here.
pub(crate) fn print(error: &clap::Error) -> io::Result<()> {
    match words(error) {
        Some(words) => anstream::stderr().write_all(words.as_bytes()),
        None => error.print(),
    }
}

fn words(error: &clap::Error) -> Option<String> {
    let mut text = format!("错误：{}\n", problem(error)?);
    if let Some(values) = list(error, ContextKind::ValidValue).filter(|values| !values.is_empty()) {
        text.push_str(&format!("  可用的值：{}\n", values.join("、")));
    }
    let suggestions =
        [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue];
    for suggested in suggestions.into_iter().filter_map(|kind| list(error, kind)) {
        text.push_str(&format!("  建议：是不是想写 {}？\n", quoted(&suggested)));
    }
    if let Some(usage) = error.get(ContextKind::Usage) {
        let usage = usage.to_string();
        let usage = usage.trim_start_matches("Usage: ").trim_end();
        text.push_str(&format!("\n用法：{}\n", usage.replace("[OPTIONS]", "[选项]")));
    }
    text.push_str("\n用 --help 查看全部说明。\n");
    Some(text)
}

fn problem(error: &clap::Error) -> Option<String> {
    let one = |kind| list(error, kind).map(|words| quoted(&words));
    let argument = || one(ContextKind::InvalidArg);
    let value = || one(ContextKind::InvalidValue);
    Some(match error.kind() {
        ErrorKind::UnknownArgument => format!("没有 {} 这个参数", argument()?),
        ErrorKind::InvalidSubcommand => {
            format!("没有 {} 这个命令", one(ContextKind::InvalidSubcommand)?)
        }
        ErrorKind::InvalidValue if value()? == quoted(&[String::new()]) => {
            format!("{} 需要一个值", argument()?)
        }
        ErrorKind::InvalidValue => format!("{} 不能取 {}", argument()?, value()?),
        ErrorKind::ValueValidation => {
            let reason =
                error.source().map(|reason| format!("：{}", reason_words(&reason.to_string())));
            format!("{} 不接受 {}{}", argument()?, value()?, reason.unwrap_or_default())
        }
        ErrorKind::MissingRequiredArgument => format!("缺少必需的参数 {}", argument()?),
        ErrorKind::MissingSubcommand => "缺少命令".to_owned(),
        ErrorKind::ArgumentConflict => match one(ContextKind::PriorArg) {
            Some(prior) if prior != argument()? => {
                format!("{} 不能与 {prior} 同时使用", argument()?)
            }
            Some(_) => format!("{} 只能写一次", argument()?),
            None => format!("{} 与其他参数冲突", argument()?),
        },
        ErrorKind::NoEquals => format!("{} 的值要用等号连接", argument()?),
        ErrorKind::TooManyValues => format!("{} 的值太多：{}", argument()?, value()?),
        ErrorKind::TooFewValues | ErrorKind::WrongNumberOfValues => {
            format!("{} 的值的个数不对", argument()?)
        }
        ErrorKind::InvalidUtf8 => "参数不是 UTF-8".to_owned(),
        _ => return None,
    })
}

/// Why a value is refused; what is not known here stays as it is.
fn reason_words(reason: &str) -> String {
    if let Some((least, most)) =
        reason.split_once(" is not in ").and_then(|(_, range)| range.split_once("..="))
    {
        return format!("应在 {least} 到 {most} 之间");
    }
    if let Some((_, nearest)) = reason.split_once("there is no such rule; did you mean ") {
        return format!("没有这条规则，是不是想写 {}？", nearest.trim_end_matches('?'));
    }
    let known = [
        ("invalid digit found in string", "应为正整数，只能写数字，例如 4096"),
        ("cannot parse integer from empty string", "应为正整数，例如 4096"),
        ("number too large to fit in target type", "数值太大"),
        ("invalid float literal", "不是数字"),
        ("was not `true` or `false`", "只能是 `true` 或 `false`"),
        ("is not a unit", "单位不对，可用的有 `GB`、`GiB`、`TB`、`TiB` 等"),
        ("is not a whole number of units", "超出范围"),
        ("a time cannot be negative", "时间不能是负数"),
        ("not two numbers", "应为用逗号隔开的两个数"),
        (
            "`--offload` takes no value here",
            "这里的 `--offload` 不带值，表示全部卸载；只卸载优化器状态用 `--offload-optimizer cpu`",
        ),
        ("would be zero for non-zero type", "必须大于 0"),
        ("not a number", "不是数字"),
        ("does not start with a number", "应以数字开头，例如 `512GiB`"),
        ("not a time", "不是时间，请写成 `90s`、`10m` 或 `1h`"),
        ("there is no such rule", "没有这条规则，`zeropilot rule --all` 可列出全部"),
    ];
    let found = known.iter().find(|(english, _)| reason.contains(english));
    found.map_or_else(|| reason.to_owned(), |(_, chinese)| (*chinese).to_owned())
}

fn list(error: &clap::Error, kind: ContextKind) -> Option<Vec<String>> {
    match error.get(kind)? {
        ContextValue::String(word) => Some(vec![word.clone()]),
        ContextValue::Strings(words) => Some(words.clone()),
        ContextValue::StyledStr(text) => Some(vec![text.to_string()]),
        ContextValue::StyledStrs(texts) => Some(texts.iter().map(ToString::to_string).collect()),
        _ => None,
    }
}

fn quoted(words: &[String]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join("、")
}

#[cfg(test)]
mod tests {
    use zeropilot_lint::Language;

    use super::*;
    use crate::cli;

    fn said(arguments: &str) -> String {
        let arguments = arguments.split_whitespace().map(Into::into).collect();
        words(&cli::parse(arguments, Language::Chinese).expect_err("wrong")).expect("words")
    }

    #[test]
    fn wrong_arguments_are_named_with_what_was_meant() {
        let text = said("zeropilot plan --modle gpt2");
        assert!(text.contains("没有 `--modle` 这个参数") && text.contains("`--model`"), "{text}");
        let text = said("zeropilot chek ds.json");
        assert!(text.contains("没有 `chek` 这个命令") && text.contains("`check`"), "{text}");
        let text = said("zeropilot new zero4");
        assert!(text.contains("`zero4`") && text.contains("zero3_nvme"), "{text}");
        let text = said("zeropilot plan");
        assert!(text.contains("缺少必需的参数 `--model <MODEL>`"), "{text}");
        assert!(text.contains("用法：zeropilot plan --model <MODEL>"), "{text}");
        let text = said("zeropilot check a.json --fix --diff");
        assert!(text.contains("不能与"), "{text}");
        assert!(said("zeropilot check a.json --world-size").contains("需要一个值"));
        assert!(said("zeropilot check a.json --world-size 0").contains("不接受 `0`：必须大于 0"));
    }

    #[test]
    fn reasons_of_every_reader_of_values_are_told_in_chinese() {
        let values = [
            "check a.json --world-size x",
            "check a.json --select Z9",
            "check a.json --learning-rate fast",
            "memory --model gpt2 --stage 4",
            "memory --model gpt2 --seq-len 0",
            "memory --model gpt2 --host-ram lots",
            "run --hang-after soon -- true",
            "new --micro-batch 0",
            "new --loss-scale high",
            "new --betas 0.9",
            "new --pin-memory maybe",
            "new --stage 2 --offload all",
            "check a.json --world-size -1",
            "check a.json --world-size 99999999999999999999",
            "memory --model gpt2 --seq-len 4k",
            "memory --model gpt2 --host-ram 5XB",
            "memory --model gpt2 --host-ram -1GiB",
            "run --grace -1s -- true",
        ];
        for wrong in values {
            let text = said(&format!("zeropilot {wrong}"));
            let reason = text.lines().next().and_then(|line| line.rsplit('：').next());
            assert!(reason.is_some_and(|reason| !reason.is_ascii()), "{text}");
        }
    }

    #[test]
    fn every_kind_of_mistake_is_told_in_chinese() {
        for wrong in ["check", "memory --model", "new --stage 9", "rule --all B03", "simulate --x"]
        {
            let text = said(&format!("zeropilot {wrong}"));
            assert!(text.starts_with("错误：") && !text.contains("error"), "{text}");
        }
    }
}
