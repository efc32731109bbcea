//! The help in Chinese: the English definition with its texts replaced.

mod options;

use clap::Command;

use self::options::{HEADINGS, OPTIONS};
use crate::new;

const ABOUT: &str = "DeepSpeed ZeRO 训练的规划、预测、检查与监督运行";
const CHECK: &str = "检查 DeepSpeed 配置：DeepSpeed 是否接受，各项设置是否生效";
const PLAN: &str = "规划训练：求出在这些卡上放得下的 stage、卸载方式和 batch，并给出降级方案";
const MEMORY: &str = "预测显存和主机内存：各部分占用、峰值，以及是否放得下";
const SIMULATE: &str = "预测一个训练步的耗时，并指出瓶颈";
const RULE: &str = "说明一条规则：查出什么问题、原因、如何修复，附示例";
const RULES: &str = "列出全部规则，或只列出包含某个词的规则";
const ADVISORIES: &str =
    "列出 DeepSpeed、PyTorch 和 Hugging Face 各版本的已知缺陷；写出名称则显示全文";
const MODELS: &str = "列出全部内置模型，或只列出包含某个词的模型";
const GPUS: &str = "列出全部已知 GPU（或只列出包含某个词的 GPU）及其在 --gpus 中的写法";
#[cfg(target_os = "linux")]
const RUN: &str =
    "运行并监督训练命令：先检查，报告结束原因，必要时重启，显存不足（OOM）时尝试降级方案";
#[cfg(target_os = "linux")]
const WATCH: &str = "观察一次运行或本机：步数、loss、速度、各 rank 和 GPU 的显存与主机内存、事件";
#[cfg(target_os = "linux")]
const RUNS: &str = "列出运行记录";
#[cfg(target_os = "linux")]
const REPORT: &str = "生成一次运行的 HTML 报告：事件、loss、显存和主机内存，以及修改建议";
const EXPLAIN: &str = "解释配置键、概念和整份配置：各项设置的作用和代价";
const DOCTOR: &str = "检查本机是否具备配置所需的一切：软件包、编译器、GPU、主机内存、磁盘";
const CALIBRATE: &str = "用你的 PyTorch 和 DeepSpeed 实测本机，让预测采用本机的实测速度";
const DIAGNOSE: &str = "诊断日志：训练为什么显存或主机内存不足（CUDA OOM），应先修改什么";
const LSP: &str = "启动编辑器用的语言服务（LSP）：问题、说明、补全和快速修复";
const MCP: &str =
    "启动供智能体使用的 MCP（Model Context Protocol）服务：以 check、plan、memory 等命令为工具";
const COMPLETIONS: &str = "输出 shell 的命令补全脚本";
const MAN: &str = "把手册页（man page）写进一个目录";
const SCHEMA: &str = "输出 DeepSpeed 配置的 JSON Schema，供编辑器使用";

#[cfg(target_os = "linux")]
const ACCURACY: &str = "把预测的显存和每步用时与自己的运行记录比较";
#[cfg(target_os = "linux")]
const ACCURACY_EXAMPLES: &str = "\
示例：
  zeropilot accuracy
  zeropilot accuracy --json
  zeropilot accuracy --export > rows.jsonl

退出码：0 已完成，2 目录无法读取";

const EXAMPLES: &str = "\
示例：
  zeropilot check ds_config.json --world-size 8
  zeropilot check configs/ --front-end hf-trainer --output-format concise
  zeropilot check zero3.json --per-device-train-batch-size 2 --bf16 --hidden-size 4096
  zeropilot check ds_config.json --diff --unsafe-fixes
  zeropilot check . --write-baseline zeropilot-baseline.json
  zeropilot check . --baseline zeropilot-baseline.json --fail-on error
  cat ds_config.json | zeropilot check - --lang zh

退出码：0 没有问题，1 发现错误或警告（由 --fail-on 决定；用 --diff 时：有可应用的修复），2 无法完成检查";

const CALIBRATE_EXAMPLES: &str = "\
示例：
  zeropilot calibrate
  zeropilot calibrate --python ~/envs/train --output a100-node.json
  DS_ACCELERATOR=cpu zeropilot calibrate --ranks 2 --ranks 4
  zeropilot calibrate --show-program

已在 CPU rank 上测试，尚未在 GPU 上测试。

退出码：0 已实测并写入，2 无法实测";

const PLAN_EXAMPLES: &str = "\
示例：
  zeropilot plan --model Qwen/Qwen3-8B --gpus 5x44GB --seq-len 4096
  zeropilot plan --model llama-3.1-70b --gpus 8xA100-80G --host-ram 2TiB --global-batch 64
  zeropilot plan --model Qwen3-30B-A3B --gpus 5x44GB --method lora --for hf-trainer -o ds.json
  zeropilot plan --model llama-3.1-8b --gpus 8xH100 --max-seq-len
  zeropilot plan train.sh --gpus A100-80G --diff > strategy.patch
  zeropilot plan --model qwen3-8b --gpus 4x8xH100 --objective cost --tokens 10B --cost 2.5/gpu-hour

退出码：0 有放得下的方案，1 没有放得下的方案，2 无法回答：选项或文件无效";

const MEMORY_EXAMPLES: &str = "\
示例：
  zeropilot memory --model Qwen/Qwen3-8B --gpus 5x44GB --stage 3 --seq-len 4096
  zeropilot memory --model llama-3.1-8b --gpus 8xA100-80G --config ds_config.json
  zeropilot memory --model Qwen3-30B-A3B --gpus 5x44GB --method lora --compare
  zeropilot memory --model t5-3b --gpus 1x24GB --stage 3 --offload --timeline

退出码：0 放得下或显存大小未知，1 放不下或可能放不下，2 无法回答：选项或文件无效";

const SIMULATE_EXAMPLES: &str = "\
示例：
  zeropilot simulate --model Qwen/Qwen3-8B --gpus 8xA100-80G --stage 3 --seq-len 4096
  zeropilot simulate --model llama-3.1-70b --gpus 4x8xH100 --network 8xNDR --timeline
  zeropilot simulate --model llama-3.1-8b --gpus 8xH100 --scale 8..1024 --grad-checkpointing
  zeropilot simulate --model qwen3-8b --gpus 2x8xA100-80G --tokens 10B --cost 2.5/gpu-hour

退出码：0 已回答，1 放不下或可能放不下，2 无法回答：选项或文件无效";
#[cfg(target_os = "linux")]
const RUN_EXAMPLES: &str = "\
示例：
  zeropilot run -- torchrun --nproc-per-node 4 train.py --deepspeed ds.json
  zeropilot run --fallback --hang-after 10m -- deepspeed --num_gpus 8 train.py --deepspeed ds.json
  zeropilot run --fallback -- bash train.sh
  zeropilot run --fallback --checkpoints ckpt --resume-with '--resume {}' -- torchrun --nproc-per-node 2 train.py --deepspeed ds.json --save ckpt

退出码：
  0      已完成
  2      无法启动
  3      启动前检查未通过
  10     显存或主机内存不足，且没有降级方案了
  11     训练程序出错
  12     rank 或启动器被杀死
  13     集合通信超时，或与其他机器断开
  14     卡住
  15     发散
  16     配置被拒绝
  17     磁盘已满
  18     checkpoint 无法读取
  19     没有证据表明训练已完成，或在最后一步之前结束
  20     GPU 硬件故障
  21     各 rank 无法建立连接
  22     共享内存已满：/dev/shm 太小
  23     NVIDIA 驱动太旧，不支持当前的 PyTorch
  24     模型仓库（Hub）拒绝请求或发生故障
  128+N  被信号 N 停止";

const EXPLAIN_EXAMPLES: &str = "\
示例：
  zeropilot explain
  zeropilot explain stage3_max_live_parameters
  zeropilot explain zero3 offload loss-scale
  zeropilot explain ds_config.json --world-size 8
  zeropilot explain train.sh
  zeropilot explain diff zero2.json zero3.json

退出码：0 已解释，1 文件里有错误或警告，2 有内容无法解释";

const DOCTOR_EXAMPLES: &str = "\
示例：
  zeropilot doctor
  zeropilot doctor ds_config.json --python ~/envs/train
  zeropilot doctor ds_config.json --model qwen3-8b

退出码：0 没有缺失，1 有错误或警告，2 配置无法读取";

const DIAGNOSE_EXAMPLES: &str = "\
示例：
  zeropilot diagnose train.log
  zeropilot diagnose - < train.log
  zeropilot diagnose train.log --model Qwen/Qwen3-8B --gpus 8xA100-80G --config ds_config.json
  zeropilot diagnose slurm-4711.out --job train.sh --json

退出码：0 找到显存或主机内存不足的报错并说明了原因，1 日志里没有这类报错，2 日志、文件或选项无法读取";

const COMPLETIONS_EXAMPLES: &str = "\
示例：
  zeropilot completions bash > ~/.local/share/bash-completion/completions/zeropilot
  zeropilot completions zsh > ~/.zfunc/_zeropilot
  zeropilot completions fish > ~/.config/fish/completions/zeropilot.fish

退出码：0 已完成，2 无法完成";
const SCHEMA_EXAMPLES: &str = "\
示例：
  zeropilot schema > deepspeed.schema.json
  zeropilot schema --deepspeed-version 0.16.9 --lang en

描述默认同时给出中英文；用 --lang 可以只保留一种。

退出码：0 已写出 schema，2 DeepSpeed 版本号无效";

const EXIT_CODES: &str = "退出码：0 已完成，2 无法完成";
const LSP_AFTER: &str = "\
编辑器里的设置优先于这些选项。

退出码：0 已完成，2 无法完成";
const LIST_EXIT_CODES: &str = "退出码：0 已列出，1 没有匹配的内容";

/// The program's name.
const ROOT: &str = "zeropilot";

const TEMPLATE: &str = "{before-help}{about-with-newline}\n用法：{usage}\n\n{all-args}{after-help}";

/// Verbs, what they are for, and what stands below their options.
const VERBS: &[(&str, &str, &str)] = &[
    #[cfg(target_os = "linux")]
    ("accuracy", ACCURACY, ACCURACY_EXAMPLES),
    ("advisories", ADVISORIES, LIST_EXIT_CODES),
    ("calibrate", CALIBRATE, CALIBRATE_EXAMPLES),
    ("check", CHECK, EXAMPLES),
    ("completions", COMPLETIONS, COMPLETIONS_EXAMPLES),
    ("diagnose", DIAGNOSE, DIAGNOSE_EXAMPLES),
    ("doctor", DOCTOR, DOCTOR_EXAMPLES),
    ("explain", EXPLAIN, EXPLAIN_EXAMPLES),
    ("gpus", GPUS, LIST_EXIT_CODES),
    ("lsp", LSP, LSP_AFTER),
    ("man", MAN, EXIT_CODES),
    ("mcp", MCP, EXIT_CODES),
    ("memory", MEMORY, MEMORY_EXAMPLES),
    ("models", MODELS, LIST_EXIT_CODES),
    ("new", new::help_zh::ABOUT, new::help_zh::EXAMPLES),
    ("plan", PLAN, PLAN_EXAMPLES),
    #[cfg(target_os = "linux")]
    ("report", REPORT, EXIT_CODES),
    ("rule", RULE, EXIT_CODES),
    ("rules", RULES, LIST_EXIT_CODES),
    ("schema", SCHEMA, SCHEMA_EXAMPLES),
    ("simulate", SIMULATE, SIMULATE_EXAMPLES),
    #[cfg(target_os = "linux")]
    ("run", RUN, RUN_EXAMPLES),
    #[cfg(target_os = "linux")]
    ("runs", RUNS, EXIT_CODES),
    #[cfg(target_os = "linux")]
    ("watch", WATCH, EXIT_CODES),
];

/// The command with Chinese help.
pub(crate) fn translate(command: Command) -> Command {
    let mut translated =
        texts(command).about(ABOUT).subcommand_help_heading("命令").subcommand_value_name("命令");
    for &(verb, about, examples) in VERBS {
        translated = translated
            .mut_subcommand(verb, |command| texts(command).about(about).after_help(examples));
    }
    translated
}

fn texts(command: Command) -> Command {
    let (verb, template) = (command.get_name().to_owned(), template(&command));
    let command = command
        .help_template(template)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .disable_help_subcommand(true)
        .arg(
            clap::Arg::new("help")
                .long("help")
                .short('h')
                .action(clap::ArgAction::Help)
                .help("显示帮助"),
        )
        .arg(
            clap::Arg::new("version")
                .long("version")
                .short('V')
                .action(clap::ArgAction::Version)
                .help("显示版本"),
        );
    command.mut_args(|argument| {
        let heading = match argument.get_help_heading() {
            Some(heading) => HEADINGS
                .iter()
                .find(|(english, _)| heading == *english)
                .map_or("选项", |(_, chinese)| chinese),
            None if argument.is_positional() => "参数",
            None => "选项",
        };
        let text = text(&verb, argument.get_id().as_str());
        let argument = argument.help_heading(heading);
        let Some(text) = text else { return argument };
        let help = format!("{text}{}", choices(&argument));
        let takes_value = argument.get_action().takes_values();
        argument.help(help).hide_possible_values(takes_value).hide_default_value(takes_value)
    })
}

/// The layout of the help, with a usage that clap would leave half in English.
fn template(command: &Command) -> String {
    let name = match command.get_name() {
        ROOT => ROOT.to_owned(),
        verb => format!("{ROOT} {verb}"),
    };
    let mut named = command.clone().subcommand_value_name("命令").bin_name(&name);
    let usage = named.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim().trim_start_matches(&name);
    // A verb without options of its own takes the global ones, which it does not know of yet.
    let usage = usage.replace(" [OPTIONS]", "");
    TEMPLATE.replace("{usage}", &format!("{name} [选项]{usage}"))
}

/// The help of an option of a command.
fn text(verb: &str, option: &str) -> Option<&'static str> {
    let mut rows = OPTIONS.iter().filter(|(verbs, ..)| verbs.contains(&verb));
    let row = rows.find(|(_, name, _)| *name == option).map(|(.., text)| *text);
    row.or_else(|| new::knobs::chinese(option).filter(|_| verb == "new"))
}

/// The values an option takes and which it has if it is not given, which clap would say in English.
fn choices(argument: &clap::Arg) -> String {
    if !argument.get_action().takes_values() {
        return String::new();
    }
    let values = argument.get_possible_values();
    let shown = values.iter().filter(|value| !value.is_hide_set());
    let names: Vec<&str> = shown.map(clap::builder::PossibleValue::get_name).collect();
    let default = argument.get_default_values().first().map(|value| value.to_string_lossy());
    let words: Vec<String> = [
        (!names.is_empty()).then(|| names.join("、")),
        default
            .map(|default| default.into_owned())
            .or_else(|| said(argument))
            .map(|default| format!("默认 {default}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    if words.is_empty() { String::new() } else { format!("［{}］", words.join("；")) }
}

/// A value that only the English text names as the default; a default of several words is in the Chinese text itself.
fn said(argument: &clap::Arg) -> Option<String> {
    let help = argument.get_help()?.to_string();
    let default = help.split_once("[default: ")?.1.split_once(']')?.0;
    (!default.contains(' ')).then(|| default.to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;
    use zeropilot_text::Language;

    use super::*;
    use crate::cli::Cli;
    use crate::parse::definition;

    #[test]
    fn defaults_headings_and_usage_are_told_in_chinese() {
        let mut command = definition(Language::Chinese);
        command.build();
        let mut help = |verb: &str| {
            let verb = command.find_subcommand_mut(verb).expect("a verb");
            verb.render_help().to_string()
        };
        let memory = help("memory");
        assert!(memory.contains("（k = 1024）［默认 2048］"), "{memory}");
        assert!(memory.contains("［默认 16］") && memory.contains("［默认 3］"), "{memory}");
        assert!(memory.contains("训练方式:") && !memory.contains("训练参数"), "{memory}");
        assert!(memory.contains("用法：zeropilot memory [选项]"), "{memory}");
        let run = help("run");
        assert!(run.contains("［默认 30m］") && run.contains("［默认 3］"), "{run}");
        assert!(help("completions").contains("用法：zeropilot completions [选项] <SHELL>"));
        assert!(help("check").contains("训练参数（用来填 \"auto\""));
        assert!(!help("plan").contains("--grad-accum"), "hidden options stay hidden");
        for verb in Cli::command().get_subcommands() {
            let help = help(verb.get_name());
            assert!(!help.contains("[default"), "{help}");
            let english = |line: &&str| {
                let default =
                    line.split_once("［默认 ").and_then(|(_, rest)| rest.split_once('］'));
                default.is_some_and(|(default, _)| default.contains(' ') && default.is_ascii())
            };
            assert_eq!(help.lines().find(english), None);
            assert!(!help.contains("］［默认") && !help.contains("]［默认"), "{help}");
        }
    }

    #[test]
    fn every_heading_has_its_chinese_and_none_is_left_over() {
        let root = Cli::command();
        let commands = std::iter::once(&root).chain(root.get_subcommands());
        let headings: BTreeSet<&str> = commands
            .flat_map(Command::get_arguments)
            .filter_map(|argument| argument.get_help_heading())
            .collect();
        assert_eq!(headings, HEADINGS.iter().map(|(english, _)| *english).collect());
    }

    /// Every option with its command and its help in English.
    fn options() -> Vec<(String, String, String)> {
        let root = Cli::command();
        let commands = std::iter::once(&root).chain(root.get_subcommands());
        let of = |command: &Command| {
            let row = |argument: &clap::Arg| {
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                (command.get_name().to_owned(), argument.get_id().to_string(), help)
            };
            command.get_arguments().map(row).collect::<Vec<_>>()
        };
        commands.flat_map(of).collect()
    }

    #[test]
    fn every_command_and_option_has_its_own_chinese_text() {
        for verb in Cli::command().get_subcommands() {
            assert!(VERBS.iter().any(|(name, ..)| *name == verb.get_name()), "{}", verb.get_name());
        }
        for (verb, option, english) in options() {
            let rows = OPTIONS.iter().filter(|(verbs, name, _)| {
                verbs.contains(&verb.as_str()) && *name == option.as_str()
            });
            assert!(rows.count() <= 1, "{verb} {option} has several texts");
            let chinese = text(&verb, &option).unwrap_or_default();
            assert!(!chinese.is_empty(), "{verb} {option} has no Chinese help");
            assert!(!english.contains("otherwise") || chinese.contains("默认"), "{verb} {option}");
            assert!(!english.contains("empties") || chinese.contains("清空"), "{verb} {option}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn commands_share_a_chinese_text_only_where_they_share_the_english_one() {
        let options = options();
        for (verbs, name, _) in OPTIONS {
            let english: Vec<Option<&str>> = verbs
                .iter()
                .map(|verb| {
                    let mut found = options.iter().filter(|(of, id, _)| of == verb && id == name);
                    found.next().map(|(.., help)| help.as_str())
                })
                .collect();
            assert!(english.iter().all(Option::is_some), "{name}: not an option of all {verbs:?}");
            assert!(english.windows(2).all(|two| two[0] == two[1]), "{name}: {english:#?}");
        }
    }

    #[test]
    fn the_warning_of_a_directory_that_is_emptied_is_shown() {
        let mut command = translate(Cli::command());
        command.build();
        let new = command.find_subcommand_mut("new").expect("a verb").render_help().to_string();
        assert!(new.contains("DeepSpeed 启动时会清空它"), "{new}");
    }
}
