//! What is wrong with the arguments. clap reports it in English alone, and quotes Rust's own words on numbers.

use std::error::Error as _;
use std::io::{self, Write as _};

use clap::builder::Styles;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use zeropilot_text::{Language, tr};

use crate::value_error::ValueError;

/// Reports what is wrong.
pub(crate) fn print(error: &clap::Error, language: Language) -> io::Result<()> {
    let words = match language {
        Language::English => rejected(error),
        Language::Chinese => chinese(error),
    };
    match words {
        Some(words) => anstream::stderr().write_all(words.as_bytes()),
        None => error.print(),
    }
}

/// As clap writes of a rejected value, with the reason for people.
fn rejected(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::ValueValidation {
        return None;
    }
    let reason = words(&reason(error)?, Language::English);
    let one = |kind| list(error, kind)?.pop();
    let (argument, value) = (one(ContextKind::InvalidArg)?, one(ContextKind::InvalidValue)?);
    let styles = Styles::styled();
    let (bad, invalid, literal) = (styles.get_error(), styles.get_invalid(), styles.get_literal());
    Some(format!(
        "{bad}error:{bad:#} invalid value '{invalid}{value}{invalid:#}' for '{literal}{argument}{literal:#}': {reason}\n\nFor more information, try '{literal}--help{literal:#}'.\n"
    ))
}

fn chinese(error: &clap::Error) -> Option<String> {
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
            let reason = match (reason(error), error.source()) {
                (Some(reason), _) => format!("：{}", words(&reason, Language::Chinese)),
                (None, Some(source)) => format!("：{source}"),
                (None, None) => String::new(),
            };
            format!("{} 不接受 {}{reason}", argument()?, value()?)
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
            format!("{} 的值个数不对", argument()?)
        }
        ErrorKind::InvalidUtf8 => "参数不是 UTF-8".to_owned(),
        _ => return None,
    })
}

/// Why a value is rejected. clap reports a range as text alone.
fn reason(error: &clap::Error) -> Option<ValueError> {
    let source = error.source()?;
    ValueError::of(source).or_else(|| {
        let text = source.to_string();
        let range = text.rsplit(' ').next().filter(|word| word.contains(".."))?;
        Some(ValueError::OutOfRange { range: range.to_owned() })
    })
}

/// A reason in words. The bounds of a range are said as people say them.
fn words(reason: &ValueError, language: Language) -> String {
    let bounds = match reason {
        ValueError::OutOfRange { range } => range.split_once("..="),
        _ => None,
    };
    match bounds {
        Some((least, most)) => {
            tr!(language, "the value must be from {least} to {most}", "应在 {least} 到 {most} 之间")
        }
        None => reason.words(language),
    }
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
    use super::*;
    use crate::parse;

    fn error(arguments: &str, language: Language) -> clap::Error {
        let arguments = arguments.split_whitespace().map(Into::into).collect();
        parse::parse(arguments, language).expect_err("wrong")
    }

    fn said(arguments: &str) -> String {
        chinese(&error(arguments, Language::Chinese)).expect("words")
    }

    #[test]
    fn only_the_reason_differs_from_what_clap_writes() {
        let error = error("zeropilot check a.json --world-size 0", Language::English);
        let clap = error.render().ansi().to_string();
        let source = error.source().expect("a reason").to_string();
        assert_eq!(
            rejected(&error).expect("words"),
            clap.replace(&source, "the value must be greater than 0")
        );
    }

    #[test]
    fn ranges_are_said_as_people_say_them() {
        for (line, english, chinese) in [
            ("memory --model gpt2 --stage 4", "must be from 0 to 3", "应在 0 到 3 之间"),
            ("memory --model gpt2 --seq-len 0", "must be from 1 to ", "应在 1 到 "),
        ] {
            let error = error(&format!("zeropilot {line}"), Language::English);
            let words = rejected(&error).expect("words");
            assert!(words.contains(english) && !words.contains(".."), "{words}");
            let words = said(&format!("zeropilot {line}"));
            assert!(words.contains(chinese) && !words.contains(".."), "{words}");
        }
    }

    #[test]
    fn options_are_suggested_as_the_help_spells_them() {
        for wrong in ["check a.json --frontend x", "memory --model gpt2 --gradcheckpointing"] {
            let line = format!("zeropilot {wrong}");
            let english = error(&line, Language::English).render().to_string();
            for words in [english, said(&line)] {
                assert!(words.contains("front-end") || words.contains("grad-check"), "{words}");
                assert!(!words.contains("front_end") && !words.contains("grad_check"), "{words}");
            }
        }
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
        assert!(text.contains("缺少必需的参数 `<JOB>`"), "{text}");
        assert!(text.contains("用法：zeropilot plan"), "{text}");
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
            "check a.json --world-size -1",
            "check a.json --world-size 99999999999999999999",
            "memory --model gpt2 --seq-len 4kb",
            "memory --model gpt2 --host-ram 5XB",
            "memory --model gpt2 --host-ram -1GiB",
            "run --grace -1s -- true",
        ];
        for wrong in values {
            let error = error(&format!("zeropilot {wrong}"), Language::Chinese);
            let has_reason = error.kind() != ErrorKind::ValueValidation || reason(&error).is_some();
            assert!(has_reason, "{wrong}: {error}");
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
