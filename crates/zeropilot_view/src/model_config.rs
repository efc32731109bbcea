//! Why a `config.json` gives no model, in Chinese; the error itself says it in English.

use zeropilot_model::ConfigError;
use zeropilot_model::config::ValueKind;

use crate::escaped;

/// What is wrong with it.
pub(crate) fn chinese(error: &ConfigError) -> String {
    let text = match error {
        ConfigError::NotJson { message } => format!("不是合法的 JSON：{message}"),
        ConfigError::NotAnObject { found } => format!("应为对象，却是{}", kind(*found)),
        ConfigError::NoModelType => "缺少 `model_type`，不知道是哪一类模型".to_owned(),
        ConfigError::UnknownFamily { model_type, nearest, missing } => {
            let meant = nearest.map_or_else(String::new, |name| format!("（最接近的是 `{name}`）"));
            let keys: Vec<String> = missing.iter().map(|key| format!("`{key}`")).collect();
            let keys = keys.join("、");
            format!(
                "不支持 `{model_type}` 这类模型{meant}，又缺少 {keys}，无法用相近的模型代替；请在 config.json 里补上，\
                 或用 `--like` 指定相近的模型类型，或给出 `--params`、`--layers` 和 `--hidden`"
            )
        }
        ConfigError::TooFewParameters { params, least } => format!(
            "{params} 个参数太少：按这个宽度和层数，仅词嵌入和注意力就有 {least} 个参数；请减少层数、宽度或词表"
        ),
        ConfigError::UnknownPart { key, model_type } => {
            format!("`{key}` 的 `model_type` 是 `{model_type}`，目前不支持")
        }
        ConfigError::UnknownArchitecture { architecture, model_type } => {
            format!("不支持 `{model_type}` 的类 `{architecture}`")
        }
        ConfigError::MissingKey { key } => format!("缺少 `{key}`"),
        ConfigError::WrongKind { key, expected, found } => {
            format!("`{key}` 应为{}，却是{}", kind(*expected), kind(*found))
        }
        ConfigError::OutOfRange { key, value, least, most } => {
            format!("`{key}` 是 {value}，应在 {least} 到 {most} 之间")
        }
        ConfigError::NotAMultiple { key, value, of, divisor } => {
            format!("`{key}`（{value}）不是 `{of}`（{divisor}）的整数倍")
        }
        ConfigError::WrongLength { key, expected, found } => {
            format!("`{key}` 有 {found} 项，模型却有 {expected} 层")
        }
        ConfigError::UnknownWord { key, value } => format!("`{key}` 不能是 `{value}`"),
        ConfigError::NotModelled { key } => format!("`{key}` 改变了模型结构，目前还不支持"),
        ConfigError::TooLarge => "模型的元素个数超出 64 位整数".to_owned(),
    };
    escaped(&text).into_owned()
}

fn kind(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::Null => " null",
        ValueKind::Bool => " true 或 false",
        ValueKind::Integer => "整数",
        ValueKind::Number => "数字",
        ValueKind::Text => "字符串",
        ValueKind::List => "数组",
        ValueKind::ListOfIntegers => "整数数组",
        ValueKind::Object => "对象",
    }
}
