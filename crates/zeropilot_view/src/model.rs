//! Why a model was not found or not understood, and what its config says against a request.

use std::error::Error;

use zeropilot_model::catalogue::UnknownModel;
#[cfg(feature = "model_files")]
use zeropilot_model::hub::HubError;
#[cfg(feature = "model_files")]
use zeropilot_model::local::{LocalError, LocalErrorKind};
#[cfg(feature = "model_files")]
use zeropilot_model::source::ModelProblem;
use zeropilot_model::{ConfigError, Family, Model};
use zeropilot_text::{Language, Text, tr};

#[cfg(feature = "model_files")]
use crate::system;
use crate::{escaped, model_config};

/// That sequences are longer than what the model's config names.
pub fn length_note(model: &Model, tokens: u64, language: Language) -> Option<String> {
    let most = model.dimensions()?.max_positions.filter(|most| *most < tokens)?;
    Some(tr!(
        language,
        "note: the model's config allows {most} positions. Sequences of {tokens} tokens fail, or exceed the lengths that the model was trained on; use at most `--seq-len {most}`",
        "提示：模型 config 里的最大位置数是 {most}：{tokens} 个 token 的序列会报错，或超出模型训练过的长度；最长用 `--seq-len {most}`"
    ))
}

/// That a family to stand in for a model is not known.
pub fn no_family(name: &str, language: Language) -> String {
    let name = escaped(name);
    let known: Vec<&str> = Family::ALL.iter().map(|family| family.model_type()).collect();
    let known = known.join(", ");
    tr!(
        language,
        "error: --like `{name}`: unknown model family\n  help: use one of {known}",
        "错误：--like `{name}`：没有这个模型家族\n  建议：从 {known} 中选一个"
    )
}

/// That sizes give no model.
pub fn bad_sizes(error: &ConfigError, language: Language) -> String {
    let cause = tr!(language, ("{}", chain(error)), ("{}", model_config::chinese(error)));
    tr!(
        language,
        "error: --params, --layers and --hidden do not describe a possible model: {cause}\n  help: change one of these options",
        "错误：--params、--layers 和 --hidden 无法构成模型：{cause}\n  建议：修改其中一个选项"
    )
}

/// That `--like` needs a config.json that is here.
pub fn not_a_config(name: &str, error: &std::io::Error, language: Language) -> String {
    let (name, cause) = (escaped(name), crate::system::failure(error, language));
    tr!(
        language,
        "error: --like reads the sizes of `{name}` from its config.json: {cause}\n  help: download the config.json and give its path as --model",
        "错误：--like 要从 `{name}` 的 config.json 读取尺寸：{cause}\n  建议：下载 config.json，用 --model 给出它的路径"
    )
}

/// Why a front without files has no such model.
pub fn not_in_catalogue(unknown: &UnknownModel, language: Language) -> String {
    let name = escaped(&unknown.name);
    let meant = nearest(unknown, Text::new(" or ", " 或 ").get(language))
        .map_or_else(String::new, |names| {
            tr!(language, "did you mean {names}? Or ", "是不是想写 {names}？也可以")
        });
    tr!(
        language,
        "error: model `{name}`: not a built-in model\n  help: {meant}paste the config.json of the model",
        "错误：模型 `{name}`：不是内置的模型\n  建议：{meant}粘贴它的 config.json"
    )
}

/// What is wrong with a config.json that was handed over as text.
pub fn bad_config(name: &str, error: &ConfigError, language: Language) -> String {
    let name = escaped(name);
    let cause = tr!(language, ("{}", chain(error)), ("{}", model_config::chinese(error)));
    tr!(
        language,
        "error: model `{name}`: {cause}\n  help: pass the config.json that transformers would load",
        "错误：模型 `{name}`：config.json 有问题：{cause}\n  建议：请给出 transformers 能加载的 config.json"
    )
}

/// The problem in words, with a remedy.
#[cfg(feature = "model_files")]
pub fn words(name: &str, problem: &ModelProblem, language: Language) -> String {
    let name = escaped(name);
    let (cause, remedy) = (cause(problem, language), remedy(problem, language));
    tr!(
        language,
        "error: model `{name}`: {cause}\n  help: {remedy}",
        "错误：模型 `{name}`：{cause}\n  建议：{remedy}"
    )
}

/// An error and what caused it, in one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    escaped(&text).into_owned()
}

fn nearest(unknown: &UnknownModel, or: &str) -> Option<String> {
    let names: Vec<String> = unknown.nearest.iter().map(|name| format!("`{name}`")).collect();
    (!names.is_empty()).then(|| names.join(or))
}

#[cfg(feature = "model_files")]
fn cause(problem: &ModelProblem, language: Language) -> String {
    match problem {
        ModelProblem::Unknown(_) => tr!(
            language,
            "neither a local path nor a built-in model",
            "既不是本地路径，也不是内置的模型"
        ),
        ModelProblem::Hub(error, _) => {
            tr!(language, ("{}", chain(error.as_ref())), ("{}", hub_zh(error)))
        }
        ModelProblem::Local(error) => {
            tr!(language, ("{}", chain(error.as_ref())), ("{}", local_zh(error)))
        }
        ModelProblem::Unreadable(error) if is_binary(error) => tr!(
            language,
            ("the file is not UTF-8 text, so it is not a config.json"),
            ("文件无法读取：{}", system::failure(error, language))
        ),
        ModelProblem::Unreadable(error) => tr!(
            language,
            ("the file cannot be read: {}", chain(error)),
            ("文件无法读取：{}", system::failure(error, language))
        ),
        ModelProblem::Config(error) => tr!(
            language,
            ("{}", chain(error)),
            ("config.json 有问题：{}", model_config::chinese(error))
        ),
    }
}

#[cfg(feature = "model_files")]
fn hub_zh(error: &HubError) -> String {
    match error {
        HubError::NotAnId(_) => "不是 Hub 上的模型名（应形如 `Qwen/Qwen3-8B`）".to_owned(),
        HubError::NotCached(_) => "本地缓存里没有，且设置了 HF_HUB_OFFLINE".to_owned(),
        HubError::NotFound { url } => format!("`{}` 不存在", escaped(url)),
        HubError::NotAllowed { url } => format!("`{}` 需要 token（受限或私有模型）", escaped(url)),
        HubError::Status { url, status } => format!("`{}` 返回状态码 {status}", escaped(url)),
        HubError::Network { url, .. } => format!("无法连接 `{}`", escaped(url)),
        HubError::Read { url, .. } => format!("读取 `{}` 失败", escaped(url)),
        HubError::Local(error) => format!("缓存文件有问题：{}", local_zh(error)),
        HubError::Model { cause, .. } => format!("模型文件有问题：{}", chain(cause)),
    }
}

/// What is wrong with a file of a model, with its name.
#[cfg(feature = "model_files")]
fn local_zh(error: &LocalError) -> String {
    let path = error.path.display().to_string();
    let cause = match &error.kind {
        LocalErrorKind::Io(error) => {
            format!("无法读取：{}", system::failure(error, Language::Chinese))
        }
        LocalErrorKind::TooLarge => "文件过大，不会是配置或索引文件".to_owned(),
        LocalErrorKind::NotText => "内容不是 UTF-8 文本".to_owned(),
        LocalErrorKind::NoModel => "目录里既没有 `config.json`，也没有 safetensors 文件".to_owned(),
        LocalErrorKind::Config(error) => {
            format!("config.json 有问题：{}", model_config::chinese(error))
        }
        LocalErrorKind::Index(error) => format!("safetensors 索引有问题：{}", chain(error)),
        LocalErrorKind::Header(error) => format!("safetensors 文件头有问题：{}", chain(error)),
        LocalErrorKind::TooManyElements(error) => format!("张量过大：{}", chain(error)),
    };
    format!("`{}`：{cause}", escaped(&path))
}

/// Whether a file was read and is no text.
#[cfg(feature = "model_files")]
fn is_binary(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::InvalidData
}

#[cfg(feature = "model_files")]
fn remedy(problem: &ModelProblem, language: Language) -> String {
    match problem {
        ModelProblem::Unknown(unknown) => {
            match nearest(unknown, Text::new(" or ", " 或 ").get(language)) {
                None => tr!(
                    language,
                    "pass a directory with config.json, or a hub id such as `Qwen/Qwen3-8B`",
                    "请给出含 config.json 的目录，或 Hub 上的模型名，如 `Qwen/Qwen3-8B`"
                ),
                Some(names) => tr!(language, "did you mean {names}?", "是不是想写 {names}？"),
            }
        }
        ModelProblem::Hub(_, unknown) => {
            match nearest(unknown, Text::new(" or ", "、").get(language)) {
                None => tr!(
                    language,
                    "download its config.json and pass the path",
                    "请下载它的 config.json，然后给出路径"
                ),
                Some(names) => tr!(
                    language,
                    "built-in models are {names}; or download its config.json and pass the path",
                    "内置的模型有 {names}；也可以下载它的 config.json 后给出路径"
                ),
            }
        }
        ModelProblem::Unreadable(error) if !is_binary(error) => {
            tr!(language, "check that you have permission to read the file", "请检查文件权限")
        }
        ModelProblem::Local(_) | ModelProblem::Config(_) | ModelProblem::Unreadable(_) => tr!(
            language,
            "pass the config.json that transformers would load, or its directory",
            "请给出 transformers 能加载的 config.json，或它所在的目录"
        ),
    }
}
