//! What a program says beside its results: assumptions it made, inputs it could not use.

use std::io;
use std::path::Path;

use zeropilot_config::schema::{EngineVersion, UnknownVersion};
use zeropilot_step::lower::{LongContextError, LossProblem, LowerError};
use zeropilot_text::{Language, Text, tr};

use crate::{Summary, escaped, system};

/// Why a certain engine version was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionSource {
    /// The user named this version.
    Given(String),
    /// This version is installed.
    Installed {
        /// Its version.
        version: String,
        /// Where its files are.
        place: String,
    },
    /// None is installed, and the newest known one is taken.
    Newest,
}

/// That no engine has this version.
pub fn unknown_version(unknown: &UnknownVersion, language: Language) -> String {
    let given = escaped(&unknown.0);
    let known: Vec<&str> = EngineVersion::all().map(EngineVersion::name).collect();
    tr!(
        language,
        (
            "error: `{given}` is not a DeepSpeed version\n  help: use one of the known versions: {}; for any other version number, zeropilot uses the nearest known version",
            known.join(", ")
        ),
        (
            "错误：`{given}` 不是 DeepSpeed 版本号\n  建议：已知版本有 {}；写其他版本号会按最接近的处理",
            known.join("、")
        )
    )
}

/// Which engine was taken, and why, where results do not show it: they name the version themselves.
pub fn version_note(
    engine: EngineVersion,
    source: &VersionSource,
    language: Language,
) -> Option<String> {
    let known = engine.name();
    Some(match source {
        VersionSource::Given(given) if given == known => return None,
        VersionSource::Newest => return None,
        VersionSource::Installed { version, .. }
            if version == known && engine == EngineVersion::NEWEST =>
        {
            return None;
        }
        VersionSource::Given(given) => tr!(
            language,
            "note: checked for DeepSpeed {} with the rules of {known}, the nearest known version",
            "提示：DeepSpeed {} 按最接近的已知版本 {known} 的规则判断",
            escaped(given)
        ),
        VersionSource::Installed { version, place } => tr!(
            language,
            (
                "note: checked for the installed DeepSpeed {} ({}){}",
                escaped(version),
                escaped(place),
                if version == known {
                    String::new()
                } else {
                    format!(" with the rules of {known}, the nearest known version")
                }
            ),
            (
                "提示：按已安装的 DeepSpeed {}（{}）判断{}",
                escaped(version),
                escaped(place),
                if version == known {
                    String::new()
                } else {
                    format!("，采用最接近的已知版本 {known} 的规则")
                }
            )
        ),
    })
}

/// That the number of ranks was not given.
pub fn world_size_note(language: Language) -> &'static str {
    Text::new(
        "note: the number of ranks is unknown; set --world-size to check the batch sizes with the real number",
        "提示：没有指定总卡数（world size）；用 --world-size 指定后才能按实际总卡数检查 batch 大小",
    )
    .get(language)
}

/// That there is no such rule, and which one may be meant.
pub fn unknown_rule(word: &str, nearest: Option<&str>, language: Language) -> String {
    let word = escaped(word);
    match nearest {
        Some(nearest) => tr!(
            language,
            "error: there is no rule `{word}`; did you mean {nearest}? `zeropilot rule` lists every rule",
            "错误：没有 `{word}` 这条规则，是不是想查 {nearest}？用 `zeropilot rule` 可以列出全部规则"
        ),
        None => tr!(
            language,
            "error: there is no rule `{word}`; `zeropilot rule` lists every rule",
            "错误：没有 `{word}` 这条规则；用 `zeropilot rule` 可以列出全部规则"
        ),
    }
}

/// A launch in a script, as far as it is known.
#[derive(Debug, Clone, Copy)]
pub struct LaunchWords<'a> {
    /// Who starts the ranks.
    pub launcher: &'a str,
    /// How many.
    pub world: Option<usize>,
    /// How many the user says there are.
    pub said: Option<usize>,
    /// The config: none, one whose name only the run knows, or its name.
    pub config: Option<Option<&'a str>>,
    /// Arguments whose values only the run knows.
    pub unknown: &'a [String],
    /// The training script, where it could not be read.
    pub unread: Option<&'a str>,
    /// The framework of the program, if it is not supported.
    pub unsupported: Option<&'a str>,
}

impl LaunchWords<'_> {
    /// What the user says, if the script says something else.
    fn other_than_said(&self) -> Option<usize> {
        self.said.filter(|said| self.world.is_some_and(|world| world != *said))
    }
}

/// What is said of a file that is neither the launch script nor a config.
pub fn part_of_a_job(language: Language) -> &'static str {
    Text::new("part of this job", "属于这个任务").get(language)
}

/// What a script starts, one launch after the other.
pub fn launches(launches: &[LaunchWords<'_>], unread: &[&str], language: Language) -> String {
    if launches.is_empty()
        && let [framework, ..] = unread
    {
        return tr!(
            language,
            "zeropilot does not support {framework}: it reads neither its arguments nor its configuration",
            "zeropilot 不支持 {framework}，不读取它的参数和配置"
        );
    }
    if launches.is_empty() {
        return tr!(
            language,
            "no DeepSpeed launch found in this file",
            "文件里没有找到启动 DeepSpeed 的命令"
        );
    }
    let each: Vec<String> = launches.iter().map(|launch| one_launch(launch, language)).collect();
    each.join(Text::new("; ", "；").get(language))
}

fn one_launch(launch: &LaunchWords<'_>, language: Language) -> String {
    let launcher = launch.launcher;
    let ranks = match launch.world {
        Some(1) => tr!(language, "1 rank", "启动 1 个 rank"),
        Some(world) => tr!(language, "{world} ranks", "启动 {world} 个 rank"),
        None => tr!(language, "an unknown number of ranks", "启动的 rank 数在脚本里没有写明"),
    };
    let config = match launch.config {
        None => tr!(language, "without a config", "没有指定配置"),
        Some(None) => {
            tr!(language, "with a config known only at run time", "配置文件要到运行时才知道")
        }
        Some(Some(name)) => tr!(language, "with {name}", "配置为 {name}"),
    };
    let unknown = match launch.unknown {
        [] => String::new(),
        names => tr!(
            language,
            (" (known only at run time: {})", names.join(", ")),
            ("（运行时才知道：{}）", names.join("、"))
        ),
    };
    let unsupported = launch.unsupported.map_or(String::new(), |framework| {
        tr!(
            language,
            "; zeropilot does not support {framework} and does not read its arguments",
            "；zeropilot 不支持 {framework}，不读取它的参数"
        )
    });
    let unread = launch.unread.map_or(String::new(), |script| {
        tr!(
            language,
            "; zeropilot did not find {script}, so it did not read the arguments in this script",
            "；没有找到 {script}，其中的参数没有读取"
        )
    });
    let said = launch.other_than_said().map_or(String::new(), |said| {
        tr!(
            language,
            ", checked for a world size of {said} (--world-size)",
            "；按 --world-size 的 {said} 个 rank 检查"
        )
    });
    tr!(
        language,
        "`{launcher}` starts {ranks} {config}{unknown}{said}{unsupported}{unread}",
        "`{launcher}` {ranks}，{config}{unknown}{said}{unsupported}{unread}"
    )
}

/// That an option does nothing without another.
pub fn no_effect(option: &str, without: &str, language: Language) -> String {
    tr!(
        language,
        "note: `{option}` has no effect without {without}",
        "提示：`{option}` 不生效，它需要 {without}"
    )
}

/// That files are watched.
pub fn watching(language: Language) -> &'static str {
    Text::new("watching for changes; press Ctrl-C to stop", "正在监视文件变化，按 Ctrl-C 结束")
        .get(language)
}

/// That files cannot be watched.
pub fn cannot_watch(error: &str, language: Language) -> String {
    let error = escaped(error);
    tr!(
        language,
        "error: the files cannot be watched: {error}\n  help: run without --watch",
        "错误：无法监视文件：{error}\n  建议：去掉 --watch 运行"
    )
}

/// What `--diff` would change, in one line.
pub fn would_mend(summary: &Summary, language: Language) -> String {
    let (count, files) = (summary.mended, summary.mended_files);
    if count == 0 {
        return tr!(language, "nothing to fix", "没有可以修复的问题");
    }
    let findings = if count == 1 { "finding" } else { "findings" };
    let in_files = if files == 1 { "file" } else { "files" };
    tr!(
        language,
        "{count} {findings} in {files} {in_files} would be fixed",
        "将修复 {files} 个文件里的 {count} 个问题"
    )
}

/// How many files were checked so far.
pub fn progress(files: usize, language: Language) -> String {
    tr!(language, "{files} files checked", "已检查 {files} 个文件")
}

/// Why an input could not be checked.
#[derive(Debug)]
pub enum InputProblem {
    /// It is not there.
    NotFound,
    /// The system refuses to read it.
    Unreadable(std::io::Error),
    /// A pipe, a device or the like.
    NotAFile,
    /// Larger than a config can reasonably be.
    TooLarge {
        /// The largest size that is read, in MiB.
        limit_mib: u64,
    },
    /// A file of another kind, which is named.
    NotAConfig(Text),
    /// A directory without config files.
    NoConfigs,
    /// There is no file whose content could be replaced.
    NotInPlace,
    /// The system refuses to write it.
    Unwritable(std::io::Error),
}

impl InputProblem {
    /// The problem with its input, in words.
    pub fn words(&self, name: &str, language: Language) -> String {
        let name = escaped(name);
        let reason = self.reason(language);
        tr!(language, "error: {name}: {reason}", "错误：{name}：{reason}")
    }

    fn reason(&self, language: Language) -> String {
        match self {
            Self::NotFound => tr!(language, "no such file or directory", "文件或目录不存在"),
            Self::Unreadable(error) => tr!(
                language,
                ("cannot be read: {error}"),
                ("无法读取：{}", system::failure(error, language))
            ),
            Self::NotAFile => {
                tr!(language, "not a regular file, so it was not opened", "不是普通文件，未打开")
            }
            Self::TooLarge { limit_mib } => tr!(
                language,
                "larger than {limit_mib} MiB, too large for a config, so it was not read",
                "超过 {limit_mib} MiB，不像是配置文件，未读取"
            ),
            Self::NotAConfig(kind) => {
                let is = kind.get(language);
                tr!(
                    language,
                    "not a DeepSpeed config or a training job but {is}, so nothing was checked",
                    "不是 DeepSpeed 配置，也不是训练任务，而是{is}，未检查"
                )
            }
            Self::NoConfigs => tr!(
                language,
                "no .json or .hjson file in this directory",
                "目录里没有 .json 或 .hjson 文件"
            ),
            Self::NotInPlace => tr!(
                language,
                "there is no file to write the fixes to; use --diff to see the fixes",
                "没有文件可以写入修复结果；可用 --diff 查看改动"
            ),
            Self::Unwritable(error) => tr!(
                language,
                ("the fixes cannot be written: {error}"),
                ("无法写入修复结果：{}", system::failure(error, language))
            ),
        }
    }
}

/// That commands name a config nobody wrote yet.
pub fn not_written_yet(config: &str, language: Language) -> String {
    tr!(
        language,
        "note: nothing was written; -o {config} writes the config",
        "提示：尚未写文件；加上 -o {config} 即可写出配置"
    )
}

/// A file that could not be read.
pub fn cannot_read(path: &Path, error: io::Error, language: Language) -> String {
    let problem = match error.kind() {
        io::ErrorKind::NotFound => InputProblem::NotFound,
        io::ErrorKind::IsADirectory => InputProblem::NotAFile,
        _ => InputProblem::Unreadable(error),
    };
    problem.words(&path.display().to_string(), language)
}

/// A directory in which the engine left no checkpoint.
pub fn no_checkpoint(path: &Path, language: Language) -> String {
    let name = shown(path);
    tr!(
        language,
        "error: there is no DeepSpeed checkpoint in `{name}`\n  help: name the directory that contains the file `latest`, or the directory with the `*_states.pt` files",
        "错误：`{name}` 里没有 DeepSpeed 的 checkpoint\n  建议：指定含有 `latest` 文件的目录，或存放 `*_states.pt` 文件的目录"
    )
}

/// The name of a file, with nothing in it that a terminal obeys.
fn shown(path: &Path) -> String {
    escaped(&path.display().to_string()).into_owned()
}

/// A baseline that cannot be opened.
pub fn no_baseline(path: &Path, error: &std::io::Error, language: Language) -> String {
    let (name, error) = (shown(path), system::failure(error, language));
    tr!(
        language,
        "error: cannot read the baseline `{name}`: {error}\n  help: write the baseline with `zeropilot check … --write-baseline {name}`",
        "错误：无法读取基线文件 `{name}`：{error}\n  建议：用 `zeropilot check … --write-baseline {name}` 生成它"
    )
}

/// A baseline that is none.
pub fn broken_baseline(path: &Path, reason: &str, language: Language) -> String {
    let (name, reason) = (shown(path), escaped(reason));
    tr!(
        language,
        "error: `{name}` is not a baseline: {reason}\n  help: name a baseline; `zeropilot check … --write-baseline zeropilot-baseline.json` writes one",
        "错误：`{name}` 不是基线文件：{reason}\n  建议：指定一个基线文件；没有就先用 `zeropilot check … --write-baseline zeropilot-baseline.json` 生成"
    )
}

/// A file that a baseline would overwrite and that is none.
pub fn taken_by_another_file(path: &Path, reason: &str, language: Language) -> String {
    let (name, reason) = (shown(path), escaped(reason));
    tr!(
        language,
        "error: `{name}` exists and is not a baseline, so it is not overwritten: {reason}\n  help: write to another file, such as `--write-baseline zeropilot-baseline.json`",
        "错误：`{name}` 已存在，但不是基线文件，不会覆盖：{reason}\n  建议：换一个文件名，例如 `--write-baseline zeropilot-baseline.json`"
    )
}

/// A baseline that cannot be written.
pub fn cannot_write_baseline(path: &Path, error: &std::io::Error, language: Language) -> String {
    let (name, error) = (shown(path), system::failure(error, language));
    tr!(
        language,
        "error: cannot write the baseline `{name}`: {error}\n  help: name a file in a directory that exists and can be written to",
        "错误：无法写入基线文件 `{name}`：{error}\n  建议：换一个已存在且可写的目录"
    )
}

/// That a baseline is written.
pub fn baseline_written(path: &Path, findings: usize, files: usize, language: Language) -> String {
    let name = shown(path);
    let plural = |count, one, more| if count == 1 { one } else { more };
    let findings_word = plural(findings, "finding", "findings");
    let files_word = plural(files, "file", "files");
    tr!(
        language,
        "wrote {findings} {findings_word} in {files} {files_word} to {name}; `--baseline {name}` omits these findings from later checks",
        "已把 {files} 个文件里的 {findings} 个问题写入 {name}；之后用 `--baseline {name}` 检查时不再报告它们"
    )
}

/// That findings of a baseline are gone.
pub fn baseline_outdated(path: &Path, count: usize, language: Language) -> String {
    let name = shown(path);
    let are = if count == 1 { "finding is" } else { "findings are" };
    tr!(
        language,
        "{count} {are} in {name} and no longer in the files; write the baseline again with --write-baseline",
        "{name} 里有 {count} 个问题已不在文件中；用 --write-baseline 重新生成它"
    )
}

/// That the conversation with an editor broke off.
pub fn editor_gone(reason: &str, language: Language) -> String {
    let reason = escaped(reason);
    tr!(
        language,
        "error: the connection to the editor failed (Language Server Protocol): {reason}\n  help: let your editor start `zeropilot lsp`; see docs/editors.md",
        "错误：与编辑器的 LSP 通信中断：{reason}\n  建议：由编辑器启动 `zeropilot lsp`，配置方法见 docs/zh/editors.md"
    )
}

/// A file that could not be written.
pub fn cannot_write(path: &Path, error: &io::Error, language: Language) -> String {
    let (name, error) = (shown(path), system::failure(error, language));
    tr!(
        language,
        "error: cannot write `{name}`: {error}\n  help: choose a file that you can write to",
        "错误：无法写入 `{name}`：{error}\n  建议：换一个有写权限的路径"
    )
}

/// A rank that does not exist.
pub fn no_such_rank(rank: u64, world: u64, language: Language) -> String {
    let last = world.saturating_sub(1);
    tr!(
        language,
        "error: there is no rank {rank}: {world} GPUs have ranks 0 to {last}",
        "错误：没有 rank {rank}：{world} 张卡的 rank 是 0 到 {last}"
    )
}

/// Why long sequences are not trained, or not predicted, this way.
fn long_context_error(error: &LongContextError, language: Language) -> String {
    match *error {
        LongContextError::Heads { heads, ranks } => tr!(
            language,
            "error: {heads} attention heads cannot be divided among {ranks} GPUs: Ulysses raises a ValueError\n  help: choose a --sequence-parallel that divides {heads}",
            "错误：{heads} 个注意力头无法平均分给 {ranks} 张卡：Ulysses 要求每张卡的头数相同，否则抛出 ValueError\n  建议：--sequence-parallel 取 {heads} 的约数"
        ),
        LongContextError::KvHeads { heads, ranks } => tr!(
            language,
            "error: {heads} KV heads can be neither divided among nor copied to {ranks} GPUs: Ulysses raises a ValueError\n  help: choose a --sequence-parallel that divides {heads} or is a multiple of it",
            "错误：{heads} 个 KV 头既不能平均分给 {ranks} 张卡，也不能整数倍复制：Ulysses 抛出 ValueError\n  建议：--sequence-parallel 取 {heads} 的约数或倍数"
        ),
        LongContextError::Length { length, ranks } => tr!(
            language,
            "error: {length} tokens cannot be divided among {ranks} GPUs: DeepSpeed's loader raises a ValueError\n  help: pad to a multiple of {ranks}, such as --seq-len {}",
            "错误：{length} 个 token 的序列无法平均分给 {ranks} 张卡：DeepSpeed 的数据加载器抛出 ValueError\n  建议：补齐到 {ranks} 的倍数，例如 --seq-len {}",
            length.next_multiple_of(ranks.max(1))
        ),
        LongContextError::Family { family } => tr!(
            language,
            "error: zeropilot does not model sequence parallelism and activation offload for {family} models\n  help: omit --sequence-parallel and --activation-offload; zeropilot then predicts whole sequences on every GPU",
            "错误：{family} 模型的序列并行和激活卸载尚未建模\n  建议：去掉 --sequence-parallel 和 --activation-offload，按每张卡处理完整序列计算"
        ),
        LongContextError::Task => tr!(
            language,
            "error: zeropilot models long-context options only for supervised training on text\n  help: omit --sequence-parallel, --tiled-mlp and --activation-offload, or omit --task and --image",
            "错误：序列并行、MLP 分块和激活卸载目前只支持纯文本的有监督训练\n  建议：去掉 --sequence-parallel、--tiled-mlp 和 --activation-offload，或去掉 --task 和 --image"
        ),
        LongContextError::Engine => tr!(
            language,
            "error: sequence parallelism (Ulysses) needs DeepSpeed\n  help: omit --without-deepspeed",
            "错误：序列并行（Ulysses）需要 DeepSpeed\n  建议：去掉 --without-deepspeed"
        ),
        LongContextError::TiledFamily { family } => tr!(
            language,
            "error: zeropilot does not model tiled feed-forward layers for {family} models\n  help: omit --tiled-mlp",
            "错误：{family} 模型的 MLP 分块计算尚未建模\n  建议：去掉 --tiled-mlp"
        ),
        LongContextError::LossInShards { why: LossProblem::Job } => tr!(
            language,
            "error: zeropilot models tiled losses only for supervised text training of Llama, Mistral or Qwen models with DeepSpeed\n  help: omit `--fused-loss`; the prediction then includes all logits, which need more GPU memory",
            "错误：DeepSpeed 的分块 loss 目前只支持用 DeepSpeed 对 Llama、Mistral、Qwen 文本模型做有监督训练\n  建议：去掉 `--fused-loss`，按完整 logits 计算（占用更多显存）"
        ),
        LongContextError::LossInShards { why: LossProblem::Tied } => tr!(
            language,
            "error: DeepSpeed's tiled losses do not support an output layer that shares its weight with the embedding\n  help: use Liger's fused loss instead (`--fused-loss yes`). Tiled losses reduce the shared gradient too early and raise an AssertionError in stages 2 and 3",
            "错误：输出层与词嵌入共享权重时，不能使用 DeepSpeed 的分块 loss：它在词嵌入的梯度累加之前就规约共享权重的梯度，stage 2 和 3 会触发 AssertionError\n  建议：改用在模型内部计算的 Liger 融合 loss（`--fused-loss yes`）"
        ),
        LongContextError::TiledAdapters => tr!(
            language,
            "error: tiled feed-forward layers with adapters raise an AssertionError in stage 3\n  help: put adapters on attention only (--lora-targets q_proj,k_proj,v_proj,o_proj), or omit --tiled-mlp. Each tile adds adapter gradients to DeepSpeed's bucket",
            "错误：MLP 上的 LoRA 不能与 MLP 分块一起用：每一块都会把梯度加入 DeepSpeed 的通信桶，stage 3 会触发 AssertionError\n  建议：只在注意力上加 LoRA（--lora-targets q_proj,k_proj,v_proj,o_proj），或去掉 --tiled-mlp"
        ),
    }
}

/// Why a model could not be lowered.
pub fn lower_error(error: &LowerError, language: Language) -> String {
    match error {
        LowerError::Lora(error) => tr!(
            language,
            "error: the adapters do not match the model: {error}\n  help: name other modules with --lora-targets",
            "错误：LoRA 与模型不匹配：{error}\n  建议：用 --lora-targets 指定其他模块"
        ),
        LowerError::NothingTrained => tr!(
            language,
            "error: no parameter of the model is trained\n  help: choose another --method",
            "错误：模型没有任何可训练的参数\n  建议：换一个 --method"
        ),
        LowerError::OddImage { size } => tr!(
            language,
            "error: the image processor rejects an image of {size}: one side is more than 200 times as long as the other\n  help: use another --image",
            "错误：图像处理器不接受 {size} 的图像：一边超过另一边的 200 倍\n  建议：换一个 --image"
        ),
        LowerError::TooManyImages { most } => tr!(
            language,
            "error: a micro-batch has at most {most} images here\n  help: lower --images-per-sample or --micro-batch",
            "错误：一个 micro batch 最多 {most} 张图像\n  建议：减小 --images-per-sample 或 --micro-batch"
        ),
        LowerError::ImagesTooLong { tokens, length } => tr!(
            language,
            "error: the images become {tokens} tokens, but the sequence has only {length}: training fails or drops images\n  help: use --seq-len {tokens} or more, a smaller --image, or --max-pixels",
            "错误：一条序列里的图像要占 {tokens} 个 token，而序列只有 {length} 个：训练会报错或丢弃图像\n  建议：--seq-len 不小于 {tokens}，或减小 --image，或用 --max-pixels"
        ),
        LowerError::LongContext(error) => long_context_error(error, language),
        LowerError::TaskOfLanguageModels => tr!(
            language,
            "error: zeropilot models tasks with several models only for causal language models
  help: omit --task, or name another model",
            "错误：多模型任务目前只支持因果语言模型
  建议：去掉 --task，或换一个模型"
        ),
        LowerError::TooLarge { sequences, length } => tr!(
            language,
            "error: {sequences} sequences of {length} tokens need more memory than any machine has\n  help: lower --micro-batch or --seq-len",
            "错误：{sequences} 条 {length} token 的序列需要的显存超过任何机器的容量\n  建议：减小 --micro-batch 或 --seq-len"
        ),
    }
}
