//! The help in Chinese: the English definition with its texts replaced.

use clap::Command;

use crate::new;

const ABOUT: &str = "DeepSpeed ZeRO 训练的领航员：不占用 GPU 就先知道结果";
const CHECK: &str = "检查 DeepSpeed 配置：引擎会不会接受，写的内容是否真的被读取";
const PLAN: &str = "规划训练：这些卡上用哪个 stage、怎样卸载、batch 多大，以及显存不足时的退路";
const MEMORY: &str = "预测 GPU 和主机的内存：被什么占用、何时最满、放不放得下";
const SIMULATE: &str = "模拟一个训练步：在这套集群上要多久，时间花在等什么";
const RULE: &str = "说明一条规则：查什么、为什么要紧、怎么办，附示例";
#[cfg(target_os = "linux")]
const RUN: &str = "运行训练命令：先检查，再全程监督，说清为什么结束，显存不足时自动降级";
#[cfg(target_os = "linux")]
const WATCH: &str = "观察一次运行或本机：步数、loss、速度、各 rank 和 GPU 的内存、发生过什么";
#[cfg(target_os = "linux")]
const RUNS: &str = "列出运行记录";
#[cfg(target_os = "linux")]
const REPORT: &str = "把一次运行做成一页报告：经过、loss、内存、下次怎么改";
const EXPLAIN: &str = "解释键、概念和整份配置：某项设置做什么、代价是什么";
const DOCTOR: &str = "体检本机：要跑这份配置还缺什么（软件包、编译器、GPU、限制、磁盘）";
const LSP: &str = "为编辑器提供语言服务（LSP）：实时检查、悬停说明、补全和快速修复";
const COMPLETIONS: &str = "输出 shell 的命令补全脚本";
const MAN: &str = "把手册页（man page）写进一个目录";
const SCHEMA: &str = "输出 DeepSpeed 配置的 JSON Schema，供编辑器使用";

/// Option names and what they mean.
const OPTIONS: &[(&str, &str)] = &[
    ("paths", "配置文件、启动脚本、要搜索 .json 和 .hjson 的目录，或 `-` 表示标准输入"),
    ("shell", "哪一种 shell"),
    ("directory", "写到哪里；不存在则创建"),
    ("job", "在目录里查找启动脚本，并检查它们指向的配置"),
    (
        "topics",
        "键、概念或配置文件（`-` 表示标准输入），或用 `diff A B` 比较两个文件；不写则列出可以问什么",
    ),
    ("world_size", "训练的进程数（GPU 数）"),
    ("deepspeed_version", "按哪个 DeepSpeed 版本检查；默认取已安装的版本，没有则取已知的最新版本"),
    ("front_end", "由谁读取配置；默认推测：含有 \"auto\" 视为 `hf-trainer`，否则视为 `deepspeed`"),
    ("output_format", "结果的输出格式"),
    ("select", "只报告这些规则：编号（如 K05）或其首字母"),
    ("ignore", "不报告这些规则"),
    ("checkpoint", "要续训的 checkpoint 目录：检查它是否与配置相符"),
    #[cfg(target_os = "linux")]
    ("watch", "文件一有变化就重新检查，按 Ctrl-C 结束"),
    ("fix", "应用不改变训练行为的修复，并报告剩下的问题"),
    ("diff", "只显示修复会改动什么，不写文件"),
    ("unsafe_fixes", "与 --fix 或 --diff 一起用：连推测本意的修复也应用"),
    ("per_device_train_batch_size", "每张卡的 micro batch"),
    ("gradient_accumulation_steps", "梯度累积步数"),
    ("learning_rate", "学习率"),
    ("weight_decay", "权重衰减"),
    ("adam_beta1", "Adam 的第一个 beta"),
    ("adam_beta2", "Adam 的第二个 beta"),
    ("adam_epsilon", "Adam 的 epsilon"),
    ("max_grad_norm", "梯度裁剪的范数"),
    ("warmup_steps", "warmup：不小于 1 表示步数，小于 1 表示占总步数的比例"),
    ("max_steps", "总训练步数"),
    ("bf16", "用 bf16 训练"),
    ("fp16", "用 fp16 训练"),
    ("mixed_precision", "传给 accelerate 的精度"),
    ("auto_find_batch_size", "让 Trainer 自动寻找可用的 batch 大小"),
    ("optim", "HF Trainer 的优化器，例如 adamw_torch"),
    ("lr_scheduler_type", "HF Trainer 的学习率调度器，例如 cosine"),
    ("save_only_model", "Trainer 只保存模型，不保存引擎状态"),
    ("load_best_model_at_end", "Trainer 训练结束后加载最佳模型"),
    ("hidden_size", "模型的 hidden size，见其 config.json"),
    ("model", "模型：内置目录里的名字、目录或 config.json 的路径，或 Hub 上的模型名"),
    ("gpus", "GPU：`8xA100-80G`、`5x44GB`、`4x8xH100`（节点 × 每节点卡数）；默认取本机的 GPU"),
    ("config", "DeepSpeed 配置文件；不给则由 --stage、--offload 和 --precision 生成"),
    ("stage", "ZeRO 的 stage：1 切分优化器状态，2 加上梯度，3 再加上权重"),
    ("offload", "卸载到主机内存的内容；只写 --offload 表示全部"),
    ("precision", "模型的数值格式"),
    ("global_batch", "每个优化器步的样本总数（所有卡合计），无论怎么选都保持不变"),
    ("host_ram", "每台主机的内存，例如 `512GiB`"),
    ("rank", "要看哪个 rank；默认看最满的"),
    ("compare", "并排比较各个 stage 和卸载方式"),
    ("timeline", "在终端里画出一步之内的显存变化"),
    ("svg", "把显存变化画成图片，写入这个文件"),
    ("json", "输出 JSON"),
    ("seq_len", "序列长度（token 数）"),
    ("target_len", "编码器-解码器模型的目标序列长度"),
    ("micro_batch", "每张卡一次处理的序列数；默认按配置，否则为 1"),
    ("grad_accum", "梯度累积步数；默认按配置，否则为 1"),
    ("method", "训练方式"),
    ("lora_rank", "LoRA 的秩"),
    ("lora_targets", "加 LoRA 的模块，用逗号分隔；默认所有线性层"),
    ("grad_checkpointing", "梯度检查点：反向时重算每一层"),
    ("attention", "注意力的实现"),
    ("fused_loss", "融合 linear 与 cross entropy（Liger Kernel）"),
    (
        "objective",
        "按什么选最好的：每步时间（time）、总开销（cost，更划算时会少用几张卡）或剩余显存（memory）",
    ),
    ("nvme_path", "本地磁盘上可以存放卸载状态的目录"),
    ("optimizer", "优化器（配置里没写时）"),
    ("load", "模型如何加载；默认 stage 3 下分片加载（zero.Init），其他 stage 每个进程加载完整模型"),
    ("network", "节点之间的链路：`8xNDR`、`4xHDR`、`1x100GbE`；默认按常见配置估计"),
    ("nvme", "每个节点 NVMe 的读/写速度，单位 GB/s，例如 `7/5`"),
    ("step_timeline", "在终端里画出一步之内各条流的忙闲"),
    ("step_svg", "把这一步画成图片，写入这个文件"),
    ("trace", "把这一步写成 Chrome/Perfetto 的 trace 文件"),
    ("scale", "卡数从多少到多少，例如 `8..1024`；默认每卡 batch 不变"),
    ("strong", "配合 --scale：总 batch 不变"),
    ("cost", "每 GPU 小时的价格，例如 `2.5/gpu-hour`"),
    ("tokens", "一共要训练多少 token，例如 `10B`"),
    ("python", "训练所用的解释器或环境；默认取当前激活的，否则取 PATH 上第一个"),
    ("stdio", "通过标准输入输出通信（目前唯一的方式，编辑器会自动带上）"),
    ("ladder", "显存或内存不足时换一份更省的配置重新开始：更高的 stage、卸载、更小的 micro batch"),
    ("plan", "从这份方案（`zeropilot plan --json`）里取各级配置"),
    ("max_rungs", "最多降几级"),
    ("max_restarts", "被杀死、超时、卡住后最多重启几次；默认能从检查点继续时 2 次，否则不重启"),
    ("hang_after", "多久没有任何输出算卡住，例如 `10m`；`off` 表示不判断"),
    ("grace", "要求进程结束后，等多久再强制杀死"),
    ("checkpoints", "训练程序写检查点的目录；默认取它的 --output_dir 或 --save"),
    ("resume_with", "从检查点继续时给命令加的参数，`{}` 代表检查点目录；HF Trainer 已内置"),
    ("events", "把事件也写进这个文件，每行一个 JSON"),
    ("record", "本次运行的记录放在哪里；默认在 ZEROPILOT_RUNS 或用户的状态目录下"),
    ("no_preflight", "跳过启动前检查，直接启动"),
    ("command", "启动训练的命令，写在 `--` 之后"),
    #[cfg(target_os = "linux")]
    ("runs", "运行记录所在的目录；默认取 ZEROPILOT_RUNS 或用户的状态目录"),
    ("machine", "观察本机：GPU、内存、训练进程"),
    ("once", "只看一次就结束"),
    ("json_lines", "输出 JSON，运行期间每秒一行"),
    (
        "openmetrics",
        "在本机回环地址（例如 127.0.0.1:9400）上通过 HTTP 提供 OpenMetrics 指标，按 Ctrl-C 结束",
    ),
    #[cfg(target_os = "linux")]
    ("run", "运行的名字或目录；默认取最近一次（watch 在没有运行时显示本机）"),
    ("codes", "规则编号，例如 B03"),
    ("all", "列出全部规则"),
    ("lang", "所有文字的语言；默认取自 LC_ALL、LC_MESSAGES 或 LANG"),
    ("color", "何时使用颜色；遵守 NO_COLOR"),
    ("no_settings", "不使用 zeropilot.toml 和 pyproject.toml 里的 [tool.zeropilot]"),
    ("quiet", "除了发现的问题，什么也不说"),
];

/// What an option means where a verb takes more than the others.
const OF_VERB: &[(&str, &str, &str)] = &[
    (
        "memory",
        "gpus",
        "GPU：`8xA100-80G`、`5x44GB`、`4x8xH100`（节点 × 每节点卡数），或只写卡数 `8`；默认取本机的 GPU",
    ),
    ("run", "seq_len", "序列长度（token 数）；默认取自训练命令，看不出则为 2048"),
    ("run", "method", "训练方式；默认取自训练命令，看不出则为全参数训练"),
    ("run", "grad_checkpointing", "梯度检查点：反向时重算每一层；默认取自训练命令"),
];

const SCRIPT: &str = "训练参数（用来填 \"auto\"，并且必须与配置一致）";
const TRAINING: &str = "训练方式";
const GLOBAL: &str = "全局选项";

const EXAMPLES: &str = "\
示例：
  zeropilot check ds_config.json --world-size 8
  zeropilot check configs/ --front-end hf-trainer --output-format concise
  zeropilot check zero3.json --per-device-train-batch-size 2 --bf16 --hidden-size 4096
  zeropilot check ds_config.json --diff --unsafe-fixes
  cat ds_config.json | zeropilot check - --lang zh

退出码：0 没有问题，1 发现错误或警告（用 --diff 时：有可应用的修复），2 无法完成检查";

const PLAN_EXAMPLES: &str = "\
示例：
  zeropilot plan --model Qwen/Qwen3-8B --gpus 5x44GB --seq-len 4096
  zeropilot plan --model llama-3.1-70b --gpus 8xA100-80G --host-ram 2TiB --global-batch 64
  zeropilot plan --model Qwen3-30B-A3B --gpus 5x44GB --method lora --for hf-trainer -o ds.json

退出码：0 有放得下的方案，1 没有，2 无法回答";

const MEMORY_EXAMPLES: &str = "\
示例：
  zeropilot memory --model Qwen/Qwen3-8B --gpus 5x44GB --stage 3 --seq-len 4096
  zeropilot memory --model llama-3.1-8b --gpus 8xA100-80G --config ds_config.json
  zeropilot memory --model Qwen3-30B-A3B --gpus 5x44GB --method lora --compare
  zeropilot memory --model t5-3b --gpus 1x24GB --stage 3 --offload --timeline

退出码：0 放得下或没有给出显存，1 放不下，2 无法回答";

const SIMULATE_EXAMPLES: &str = "\
示例：
  zeropilot simulate --model Qwen/Qwen3-8B --gpus 8xA100-80G --stage 3 --seq-len 4096
  zeropilot simulate --model llama-3.1-70b --gpus 4x8xH100 --network 8xNDR --timeline
  zeropilot simulate --model llama-3.1-8b --gpus 8xH100 --scale 8..1024 --grad-checkpointing
  zeropilot simulate --model qwen3-8b --gpus 2x8xA100-80G --tokens 10B --cost 2.5/gpu-hour

退出码：0 已回答，2 无法回答";
#[cfg(target_os = "linux")]
const RUN_EXAMPLES: &str = "\
示例：
  zeropilot run -- torchrun --nproc-per-node 4 train.py --deepspeed ds.json
  zeropilot run --ladder --hang-after 10m -- deepspeed --num_gpus 8 train.py --deepspeed ds.json
  zeropilot run --ladder -- bash train.sh
  zeropilot run --ladder --checkpoints ckpt --resume-with '--resume {}' -- torchrun --nproc-per-node 2 train.py --deepspeed ds.json --save ckpt

退出码：
  0      已完成
  2      无法启动
  3      启动前检查未通过
  10     内存或显存不足，且没有下一级
  11     训练程序出错
  12     rank 或启动器被杀死
  13     集合通信超时，或与其他机器断开
  14     卡住
  15     发散
  16     配置被拒绝
  17     磁盘已满
  18     检查点无法读取
  19     没有证据表明训练已完成
  128+N  被信号 N 停止";

const EXPLAIN_EXAMPLES: &str = "\
示例：
  zeropilot explain
  zeropilot explain stage3_max_live_parameters
  zeropilot explain zero3 offload loss-scale
  zeropilot explain ds_config.json --world-size 8
  zeropilot explain diff zero2.json zero3.json

退出码：0 已解释，1 文件里有错误或警告，2 有内容无法解释";

const DOCTOR_EXAMPLES: &str = "\
示例：
  zeropilot doctor
  zeropilot doctor ds_config.json --python ~/envs/train
  zeropilot doctor ds_config.json --model qwen3-8b

退出码：0 什么都不缺，1 有错误或警告，2 配置无法读取";

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

退出码：0 已写出，2 不是版本号";

const EXIT_CODES: &str = "退出码：0 已完成，2 无法完成";

/// The program's name.
const ROOT: &str = "zeropilot";

const TEMPLATE: &str = "{before-help}{about-with-newline}\n用法：{usage}\n\n{all-args}{after-help}";

/// Verbs, what they are for, and what stands below their options.
const VERBS: &[(&str, &str, &str)] = &[
    ("check", CHECK, EXAMPLES),
    ("completions", COMPLETIONS, COMPLETIONS_EXAMPLES),
    ("doctor", DOCTOR, DOCTOR_EXAMPLES),
    ("explain", EXPLAIN, EXPLAIN_EXAMPLES),
    ("lsp", LSP, EXIT_CODES),
    ("man", MAN, EXIT_CODES),
    ("memory", MEMORY, MEMORY_EXAMPLES),
    ("new", new::help_zh::ABOUT, new::help_zh::EXAMPLES),
    ("plan", PLAN, PLAN_EXAMPLES),
    #[cfg(target_os = "linux")]
    ("report", REPORT, EXIT_CODES),
    ("rule", RULE, EXIT_CODES),
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
            Some("Training") => TRAINING,
            Some(heading) if heading.starts_with("Training arguments") => SCRIPT,
            Some(heading) => new::help_zh::HEADINGS
                .iter()
                .find(|(english, _)| heading.starts_with(english))
                .map_or(GLOBAL, |(_, chinese)| chinese),
            None if argument.is_positional() => "参数",
            None => "选项",
        };
        let own = OF_VERB.iter().find(|(of, name, _)| *of == verb && argument.get_id() == *name);
        let text = own
            .map(|(_, _, text)| *text)
            .or_else(|| {
                let mut all = OPTIONS.iter().chain(new::help_zh::OPTIONS);
                all.find(|(name, _)| argument.get_id() == *name).map(|(_, text)| *text)
            })
            .or_else(|| new::knobs::chinese(argument.get_id().as_str()));
        let argument = argument.help_heading(heading);
        let Some(text) = text else { return argument };
        let help = format!("{text}{}", choices(&argument, text));
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

/// The values an option takes and which it has if it is not given, which clap would say in English.
fn choices(argument: &clap::Arg, text: &str) -> String {
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
            .or_else(|| said(argument).filter(|_| !text.contains("［默认")))
            .map(|default| format!("默认 {default}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    if words.is_empty() { String::new() } else { format!("［{}］", words.join("；")) }
}

/// A default that only the English text says.
fn said(argument: &clap::Arg) -> Option<String> {
    let help = argument.get_help()?.to_string();
    Some(help.split_once("[default: ")?.1.split_once(']')?.0.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn defaults_headings_and_usage_are_told_in_chinese() {
        let mut command = translate(Cli::command());
        command.build();
        let mut help = |verb: &str| {
            let verb = command.find_subcommand_mut(verb).expect("a verb");
            verb.render_help().to_string()
        };
        let memory = help("memory");
        assert!(memory.contains("序列长度（token 数）［默认 2048］"), "{memory}");
        assert!(memory.contains("［默认 16］") && memory.contains("［默认 3］"), "{memory}");
        assert!(memory.contains("训练方式:") && !memory.contains("训练参数"), "{memory}");
        assert!(memory.contains("用法：zeropilot memory [选项] --model <MODEL>"), "{memory}");
        assert!(memory.contains("`8`") && !help("plan").contains("`8`"));
        let run = help("run");
        assert!(run.contains("［默认 30m］") && run.contains("［默认 3］"), "{run}");
        assert!(help("completions").contains("用法：zeropilot completions [选项] <SHELL>"));
        assert!(help("check").contains("训练参数（用来填 \"auto\""));
        assert!(!help("new").contains("optimizer、all"), "hidden values stay hidden");
        for verb in Cli::command().get_subcommands() {
            let help = help(verb.get_name());
            assert!(!help.contains("[default") && !help.contains("默认 true］［默认"), "{help}");
        }
    }

    #[test]
    fn every_option_is_translated() {
        let command = translate(Cli::command());
        let verbs = command.get_subcommands();
        for argument in command.get_arguments().chain(verbs.flat_map(Command::get_arguments)) {
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(!help.is_ascii(), "{} has no Chinese help: {help}", argument.get_id());
        }
        for verb in Cli::command().get_subcommands() {
            assert!(VERBS.iter().any(|(name, ..)| *name == verb.get_name()), "{}", verb.get_name());
        }
    }
}
