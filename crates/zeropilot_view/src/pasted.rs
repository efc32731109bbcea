//! What a pasted text is and what was done to it, in words.

use std::num::NonZeroUsize;

use serde::Serialize;
use serde_json::{Map, Value};
use zeropilot_ask::ScriptArguments;
use zeropilot_config::front_end::FrontEnd;
use zeropilot_job::{Change, Pasted, PastedKind};
use zeropilot_text::{Language, Text, tr};

/// A pasted text, recognized.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PastedText {
    kind: &'static str,
    /// The DeepSpeed config in it.
    config: Option<String>,
    /// Whether the config is what was pasted, but for what pasting added.
    certain: bool,
    /// The config's file, where the text only names it.
    named_config: Option<String>,
    front_end: Option<&'static str>,
    world_size: Option<NonZeroUsize>,
    /// Training arguments that it says.
    script: Map<String, Value>,
}

/// A pasted text in words.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PastedWords {
    /// What it is.
    pub title: String,
    /// What to do with it.
    pub next: String,
    /// What was done to it.
    pub changes: Vec<String>,
}

impl From<&Pasted> for PastedText {
    fn from(pasted: &Pasted) -> Self {
        let said = |name: &str| pasted.arguments.iter().find(|(said, _)| said == name);
        Self {
            kind: pasted.kind.name(),
            config: pasted.config.clone(),
            certain: pasted.is_certain(),
            named_config: pasted.named_config.clone(),
            front_end: front_end(pasted.kind).map(FrontEnd::name),
            world_size: said("num_processes").and_then(|(_, count)| count.parse().ok()),
            script: script(&pasted.arguments),
        }
    }
}

/// Who reads the config, where the kind of file shows it.
fn front_end(kind: PastedKind) -> Option<FrontEnd> {
    match kind {
        PastedKind::Accelerate => Some(FrontEnd::Accelerate),
        PastedKind::LlamaFactory | PastedKind::Axolotl | PastedKind::Swift => {
            Some(FrontEnd::HfTrainer)
        }
        _ => None,
    }
}

/// Those settings that are arguments a check knows.
fn script(arguments: &[(String, String)]) -> Map<String, Value> {
    let mut script = Map::new();
    for (name, text) in arguments {
        let value = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()));
        let alone = Value::Object(Map::from_iter([(name.clone(), value.clone())]));
        if serde_json::from_value::<ScriptArguments>(alone).is_ok() {
            script.insert(name.clone(), value);
        }
    }
    script
}

/// What a pasted text is, what to do with it and what was done to it.
pub fn words(pasted: &Pasted, language: Language) -> PastedWords {
    let changes = pasted.changes.iter().map(|change| change_words(change, language));
    PastedWords {
        title: title(pasted.kind).get(language).to_owned(),
        next: next(pasted, language),
        changes: changes.collect(),
    }
}

fn title(kind: PastedKind) -> Text {
    match kind {
        PastedKind::Empty => Text::new("Nothing to check yet", "还没有内容"),
        PastedKind::Config => Text::new("This is a DeepSpeed config", "这是 DeepSpeed 配置"),
        PastedKind::ModelConfig => {
            Text::new("This is a model's config.json", "这是模型的 config.json")
        }
        PastedKind::BesideModel => Text::new(
            "This file belongs to a model or a checkpoint",
            "这是模型或 checkpoint 附带的文件",
        ),
        PastedKind::LaunchScript => Text::new("This is a launch script", "这是启动脚本"),
        PastedKind::TrainingScript => Text::new("This is a Python program", "这是 Python 程序"),
        PastedKind::Accelerate => {
            Text::new("This is an accelerate config", "这是 accelerate 的配置")
        }
        PastedKind::LlamaFactory => {
            Text::new("This is a LLaMA-Factory config", "这是 LLaMA-Factory 的配置")
        }
        PastedKind::Axolotl => Text::new("This is an axolotl config", "这是 axolotl 的配置"),
        PastedKind::Swift => Text::new("This is an ms-swift config", "这是 ms-swift 的配置"),
        PastedKind::Hostfile => Text::new("This is a hostfile", "这是 hostfile"),
        PastedKind::Log => Text::new("This is the log of a run", "这是训练日志"),
        PastedKind::Other => Text::new(
            "zeropilot finds no DeepSpeed config in this text",
            "这段文字里没有 DeepSpeed 配置",
        ),
    }
}

fn next(pasted: &Pasted, language: Language) -> String {
    let in_terminal = |file: &str| {
        tr!(
            language,
            "Run `zeropilot check {file}` in a terminal: zeropilot finds the config that the file uses and checks it together with the training arguments.",
            "在终端里运行 `zeropilot check {file}`：zeropilot 会根据这个文件找到配置，并连同训练参数一起检查。"
        )
    };
    let named = pasted.named_config.as_deref().map(|name| {
        tr!(
            language,
            "This file uses the DeepSpeed config `{name}`. Drop both files here together to check the config with these arguments.",
            "这个文件使用的 DeepSpeed 配置是 `{name}`。把两个文件一起拖到这里，就能连同这些参数一起检查。"
        )
    });
    match pasted.kind {
        PastedKind::Empty => tr!(
            language,
            "Paste or drop a DeepSpeed config, a framework's YAML or a log.",
            "粘贴或拖入 DeepSpeed 配置、训练框架的 YAML 或训练日志。"
        ),
        PastedKind::Config => String::new(),
        PastedKind::ModelConfig => {
            tr!(language, "Use this file as the model under Plan.", "在“规划”里把这个文件用作模型。")
        }
        PastedKind::BesideModel => tr!(
            language,
            "DeepSpeed reads no settings from this file. Paste the DeepSpeed config instead.",
            "DeepSpeed 不从这个文件读取设置。请粘贴 DeepSpeed 配置。"
        ),
        PastedKind::LaunchScript => match &pasted.config {
            Some(_) => tr!(
                language,
                "The script contains a DeepSpeed config, which you can check here. Run `zeropilot check train.sh` in a terminal to check it with the arguments of the script.",
                "脚本里写有 DeepSpeed 配置，可以在这里检查。要连同脚本参数一起检查，请在终端里运行 `zeropilot check train.sh`。"
            ),
            None => {
                let named = named.map(|_| {
                    let name = pasted.named_config.as_deref().unwrap_or_default();
                    tr!(
                        language,
                        " This file uses the DeepSpeed config `{name}`; paste that config here to check it alone.",
                        "这个文件使用的 DeepSpeed 配置是 `{name}`；只检查配置时，把该配置粘贴到这里。"
                    )
                });
                in_terminal("train.sh") + &named.unwrap_or_default()
            }
        },
        PastedKind::TrainingScript => match &pasted.config {
            Some(_) => tr!(
                language,
                "The program contains a DeepSpeed config, which you can check here. Run `zeropilot check train.py` in a terminal to check it with the rest of the program.",
                "程序里写有 DeepSpeed 配置，可以在这里检查。要连同程序其余部分一起检查，请在终端里运行 `zeropilot check train.py`。"
            ),
            None => in_terminal("train.py"),
        },
        PastedKind::Accelerate => match &pasted.config {
            Some(_) => tr!(
                language,
                "accelerate builds a DeepSpeed config from its section `deepspeed_config`. You can check the DeepSpeed config here.",
                "accelerate 会用配置段 `deepspeed_config` 生成 DeepSpeed 配置，可以在这里检查。"
            ),
            None => named.unwrap_or_else(|| {
                tr!(
                    language,
                    "This config does not turn on DeepSpeed: `distributed_type` is not `DEEPSPEED`.",
                    "这份配置没有启用 DeepSpeed：`distributed_type` 不是 `DEEPSPEED`。"
                )
            }),
        },
        PastedKind::LlamaFactory | PastedKind::Axolotl | PastedKind::Swift => {
            named.unwrap_or_else(|| {
                tr!(
                    language,
                    "This config has no key `deepspeed`, so it does not use a DeepSpeed config.",
                    "这份配置没有 `deepspeed` 键，因此没有使用 DeepSpeed 配置。"
                )
            })
        }
        PastedKind::Hostfile => tr!(
            language,
            "A hostfile lists hosts and their GPUs for the `deepspeed` launcher but has no DeepSpeed settings. Paste the DeepSpeed config instead.",
            "hostfile 为 `deepspeed` 启动器列出主机和卡数，不含 DeepSpeed 设置。请粘贴 DeepSpeed 配置。"
        ),
        PastedKind::Log => tr!(
            language,
            "This log has no out-of-memory error. zeropilot explains logs of runs that ran out of GPU memory or host memory.",
            "日志里没有显存或主机内存不足的报错。zeropilot 解释的是因显存或主机内存不足（OOM）而失败的训练日志。"
        ),
        PastedKind::Other => tr!(
            language,
            "zeropilot reads DeepSpeed configs (JSON, Hjson, Python dict, YAML), YAML files for accelerate, LLaMA-Factory, axolotl and ms-swift, and logs.",
            "zeropilot 能读取 DeepSpeed 配置（JSON、Hjson、Python 字典、YAML），accelerate、LLaMA-Factory、axolotl、ms-swift 的 YAML，以及训练日志。"
        ),
    }
}

fn change_words(change: &Change, language: Language) -> String {
    match change {
        Change::Fence => tr!(language, "code fence removed", "去掉了代码块标记"),
        Change::Around => {
            tr!(language, "text around the config removed", "去掉了配置前后的文字")
        }
        Change::LinePrefix => {
            tr!(language, "prefix removed from each line", "去掉了每行开头的标记")
        }
        Change::Escapes => tr!(language, r#"`\"` turned into `"`"#, r#"把 `\"` 还原为 `"`"#),
        Change::Entities => {
            tr!(language, r#"`&quot;` turned into `"`"#, r#"把 `&quot;` 还原为 `"`"#)
        }
        Change::Quotes(count) => tr!(
            language,
            "{count} strings put in straight double quotes",
            "{count} 处引号改为英文双引号"
        ),
        Change::Punctuation(count) => tr!(
            language,
            "{count} full-width punctuation marks replaced",
            "{count} 个全角标点改为半角"
        ),
        Change::Invisible(count) => tr!(
            language,
            "{count} invisible characters or unusual spaces removed",
            "去掉了 {count} 个不可见字符或特殊空格"
        ),
        Change::Python(count) => tr!(
            language,
            "{count} Python values written as JSON, such as `True` as `true`",
            "{count} 个 Python 值改写为 JSON，如 `True` 改为 `true`"
        ),
        Change::Yaml => tr!(language, "YAML written as JSON", "YAML 改写为 JSON"),
        Change::Expression(text) => tr!(
            language,
            "`{text}` is a Python expression: replace it with its value",
            "`{text}` 是 Python 表达式：请改成它的值"
        ),
        Change::Braces => tr!(language, "missing outer braces added", "补上了缺少的外层花括号"),
        Change::Closed(count) => tr!(
            language,
            "the end is missing: {count} brackets closed",
            "结尾不完整：补上了 {count} 个括号"
        ),
        Change::Built => tr!(
            language,
            "DeepSpeed config built from the fields, as accelerate does",
            "按 accelerate 的方式由各字段生成 DeepSpeed 配置"
        ),
    }
}
