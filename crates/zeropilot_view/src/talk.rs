//! What a program says beside its results: assumptions it made, inputs it could not use.

use std::fmt;
use std::io;
use std::path::Path;

use zeropilot_config::schema::{EngineVersion, UnknownVersion};
use zeropilot_lint::Language;
use zeropilot_step::lower::LowerError;

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
    match language {
        Language::English => format!(
            "error: `{given}` is not a DeepSpeed version\n  help: known are {}; any number is taken for the nearest of them",
            known.join(", ")
        ),
        Language::Chinese => format!(
            "错误：`{given}` 不是 DeepSpeed 版本号\n  建议：已知版本有 {}；写其他版本号会按最接近的处理",
            known.join("、")
        ),
    }
}

/// Which engine was taken, and why, where that is not obvious.
pub fn version_note(
    engine: EngineVersion,
    source: &VersionSource,
    language: Language,
) -> Option<String> {
    let known = engine.name();
    Some(match (source, language) {
        (VersionSource::Given(given), _) if given == known => return None,
        (VersionSource::Given(given), Language::English) => format!(
            "note: DeepSpeed {} is judged by the rules of {known}, the nearest known version",
            escaped(given)
        ),
        (VersionSource::Given(given), Language::Chinese) => {
            format!("提示：DeepSpeed {} 按最接近的已知版本 {known} 的规则判断", escaped(given))
        }
        (VersionSource::Installed { version, place }, Language::English) => format!(
            "note: judged for the installed DeepSpeed {} ({}){}",
            escaped(version),
            escaped(place),
            if version == known {
                String::new()
            } else {
                format!(" by the rules of {known}, the nearest known version")
            }
        ),
        (VersionSource::Installed { version, place }, Language::Chinese) => format!(
            "提示：按已安装的 DeepSpeed {}（{}）判断{}",
            escaped(version),
            escaped(place),
            if version == known {
                String::new()
            } else {
                format!("，采用最接近的已知版本 {known} 的规则")
            }
        ),
        (VersionSource::Newest, Language::English) => format!(
            "note: judged for DeepSpeed {known}, the newest known version, since no installed one was found; say another with --deepspeed-version"
        ),
        (VersionSource::Newest, Language::Chinese) => format!(
            "提示：没有找到已安装的 DeepSpeed，按已知的最新版本 {known} 判断；可用 --deepspeed-version 指定"
        ),
    })
}

/// That the number of ranks was not given.
pub fn world_size_note(language: Language) -> &'static str {
    match language {
        Language::English => {
            "note: the number of ranks was not given; say it with --world-size to have the batch sizes checked for it"
        }
        Language::Chinese => {
            "提示：没有指定进程数；用 --world-size 指定后才能按实际进程数检查 batch 大小"
        }
    }
}

/// That there is no such rule, and which one may be meant.
pub fn unknown_rule(word: &str, nearest: Option<&str>, language: Language) -> String {
    let word = escaped(word);
    match (nearest, language) {
        (Some(nearest), Language::English) => {
            format!(
                "error: there is no rule `{word}`; did you mean {nearest}? `zeropilot rule --all` lists every rule"
            )
        }
        (None, Language::English) => {
            format!("error: there is no rule `{word}`; `zeropilot rule --all` lists every rule")
        }
        (Some(nearest), Language::Chinese) => {
            format!(
                "错误：没有 `{word}` 这条规则，是不是想查 {nearest}？用 `zeropilot rule --all` 可以列出全部规则"
            )
        }
        (None, Language::Chinese) => {
            format!("错误：没有 `{word}` 这条规则；用 `zeropilot rule --all` 可以列出全部规则")
        }
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
}

impl LaunchWords<'_> {
    /// What the user says, if the script says something else.
    fn other_than_said(&self) -> Option<usize> {
        self.said.filter(|said| self.world.is_some_and(|world| world != *said))
    }
}

/// What is said of a file that is neither the launch script nor a config.
pub fn part_of_a_job(language: Language) -> &'static str {
    match language {
        Language::English => "part of this job",
        Language::Chinese => "属于这个任务",
    }
}

/// What a script starts, one launch after the other.
pub fn launches(launches: &[LaunchWords<'_>], language: Language) -> String {
    if launches.is_empty() {
        let none = match language {
            Language::English => "no launch of DeepSpeed found in it",
            Language::Chinese => "没有找到启动 DeepSpeed 的命令",
        };
        return none.to_owned();
    }
    let each: Vec<String> = launches.iter().map(|launch| one_launch(launch, language)).collect();
    each.join(match language {
        Language::English => "; ",
        Language::Chinese => "；",
    })
}

fn one_launch(launch: &LaunchWords<'_>, language: Language) -> String {
    let launcher = launch.launcher;
    match language {
        Language::English => {
            let ranks = match launch.world {
                Some(1) => "1 rank".to_owned(),
                Some(world) => format!("{world} ranks"),
                None => "a number of ranks that the script does not settle".to_owned(),
            };
            let config = match launch.config {
                None => "without a config of its own".to_owned(),
                Some(None) => "with a config that only the run knows".to_owned(),
                Some(Some(name)) => format!("with {name}"),
            };
            let unknown = match launch.unknown {
                [] => String::new(),
                names => format!(" (known only at run time: {})", names.join(", ")),
            };
            let said = match launch.other_than_said() {
                Some(said) => format!(", checked for {said} as --world-size says"),
                None => String::new(),
            };
            format!("`{launcher}` starts {ranks} {config}{unknown}{said}")
        }
        Language::Chinese => {
            let ranks = match launch.world {
                Some(world) => format!("{world} 个进程"),
                None => "若干进程（脚本里看不出个数）".to_owned(),
            };
            let config = match launch.config {
                None => "没有指定配置".to_owned(),
                Some(None) => "配置文件要到运行时才知道".to_owned(),
                Some(Some(name)) => format!("配置为 {name}"),
            };
            let unknown = match launch.unknown {
                [] => String::new(),
                names => format!("（运行时才知道：{}）", names.join("、")),
            };
            let said = match launch.other_than_said() {
                Some(said) => format!("；按 --world-size 的 {said} 个进程检查"),
                None => String::new(),
            };
            format!("`{launcher}` 启动 {ranks}，{config}{unknown}{said}")
        }
    }
}

/// That an option does nothing without another.
pub fn no_effect(option: &str, without: &str, language: Language) -> String {
    match language {
        Language::English => format!("note: `{option}` has no effect without {without}"),
        Language::Chinese => format!("提示：没有 {without} 时，`{option}` 不起作用"),
    }
}

/// That files are watched.
pub fn watching(language: Language) -> &'static str {
    match language {
        Language::English => "watching for changes; Ctrl-C ends",
        Language::Chinese => "正在监视文件变化，按 Ctrl-C 结束",
    }
}

/// That files cannot be watched.
pub fn cannot_watch(error: &str, language: Language) -> String {
    let error = escaped(error);
    match language {
        Language::English => {
            format!("error: the files cannot be watched: {error}\n  help: run without --watch")
        }
        Language::Chinese => format!("错误：无法监视文件：{error}\n  建议：去掉 --watch 运行"),
    }
}

/// What `--diff` would change, in one line.
pub fn would_mend(summary: &Summary, language: Language) -> String {
    let (count, files) = (summary.mended, summary.mended_files);
    match language {
        Language::English if count == 0 => "nothing to mend".to_owned(),
        Language::English => format!(
            "{count} {} in {files} {} would be mended",
            if count == 1 { "finding" } else { "findings" },
            if files == 1 { "file" } else { "files" }
        ),
        Language::Chinese if count == 0 => "没有可以修复的问题".to_owned(),
        Language::Chinese => format!("将修复 {files} 个文件里的 {count} 个问题"),
    }
}

/// How many files were checked so far.
pub fn progress(files: usize, language: Language) -> String {
    match language {
        Language::English => format!("{files} files checked"),
        Language::Chinese => format!("已检查 {files} 个文件"),
    }
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
        let reason = Reason { problem: self, language };
        match language {
            Language::English => format!("error: {name}: {reason}"),
            Language::Chinese => format!("错误：{name}：{reason}"),
        }
    }
}

struct Reason<'a> {
    problem: &'a InputProblem,
    language: Language,
}

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.problem, self.language) {
            (InputProblem::NotFound, Language::English) => f.write_str("no such file or directory"),
            (InputProblem::NotFound, Language::Chinese) => f.write_str("文件或目录不存在"),
            (InputProblem::Unreadable(error), Language::English) => {
                write!(f, "cannot be read: {error}")
            }
            (InputProblem::Unreadable(error), Language::Chinese) => {
                write!(f, "无法读取：{}", system::failure(error, self.language))
            }
            (InputProblem::NotAFile, Language::English) => {
                f.write_str("not a regular file, so it was not opened")
            }
            (InputProblem::NotAFile, Language::Chinese) => f.write_str("不是普通文件，未打开"),
            (InputProblem::TooLarge { limit_mib }, Language::English) => {
                write!(f, "larger than {limit_mib} MiB, which no config is, so it was not read")
            }
            (InputProblem::TooLarge { limit_mib }, Language::Chinese) => {
                write!(f, "超过 {limit_mib} MiB，不像是配置文件，未读取")
            }
            (InputProblem::NoConfigs, Language::English) => {
                f.write_str("no .json or .hjson file in this directory")
            }
            (InputProblem::NoConfigs, Language::Chinese) => {
                f.write_str("目录里没有 .json 或 .hjson 文件")
            }
            (InputProblem::NotInPlace, Language::English) => {
                f.write_str("there is no file to write the fixes to; use --diff to see them")
            }
            (InputProblem::NotInPlace, Language::Chinese) => {
                f.write_str("没有文件可以写入修复结果；可用 --diff 查看改动")
            }
            (InputProblem::Unwritable(error), Language::English) => {
                write!(f, "the fixes cannot be written: {error}")
            }
            (InputProblem::Unwritable(error), Language::Chinese) => {
                write!(f, "无法写入修复结果：{}", system::failure(error, self.language))
            }
        }
    }
}

/// That commands name a config nobody wrote yet.
pub fn not_written_yet(config: &str, language: Language) -> String {
    match language {
        Language::English => format!("note: nothing was written; -o {config} writes the config"),
        Language::Chinese => format!("提示：尚未写文件；加上 -o {config} 即可写出配置"),
    }
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
    let name = path.display().to_string();
    let name = escaped(&name);
    match language {
        Language::English => format!(
            "error: there is no checkpoint of DeepSpeed in `{name}`\n  help: name the directory that holds the file `latest`, or the one with the `*_states.pt` files"
        ),
        Language::Chinese => format!(
            "错误：`{name}` 里没有 DeepSpeed 的 checkpoint\n  建议：指定含有 `latest` 文件的目录，或存放 `*_states.pt` 文件的目录"
        ),
    }
}

/// That the conversation with an editor broke off.
pub fn editor_gone(reason: &str, language: Language) -> String {
    let reason = escaped(reason);
    match language {
        Language::English => format!(
            "error: the editor did not speak the Language Server Protocol to the end: {reason}\n  help: `zeropilot lsp` is started by an editor; docs/editors.md says how"
        ),
        Language::Chinese => format!(
            "错误：与编辑器的 LSP 通信中断：{reason}\n  建议：`zeropilot lsp` 由编辑器启动，配置方法见 docs/zh/editors.md"
        ),
    }
}

/// A file that could not be written.
pub fn cannot_write(path: &Path, error: &io::Error, language: Language) -> String {
    let name = path.display().to_string();
    let (name, error) = (escaped(&name), system::failure(error, language));
    match language {
        Language::English => {
            format!("error: cannot write `{name}`: {error}\n  help: choose a file you may write to")
        }
        Language::Chinese => {
            format!("错误：无法写入 `{name}`：{error}\n  建议：换一个有写权限的路径")
        }
    }
}

/// A rank that does not exist.
pub fn no_such_rank(rank: u64, world: u64, language: Language) -> String {
    let last = world.saturating_sub(1);
    match language {
        Language::English => {
            format!("error: there is no rank {rank}: with {world} GPUs they are 0 to {last}")
        }
        Language::Chinese => format!("错误：没有 rank {rank}：{world} 张卡的 rank 是 0 到 {last}"),
    }
}

/// Why a model could not be lowered.
pub fn lower_error(error: &LowerError, language: Language) -> String {
    match (error, language) {
        (LowerError::Lora(error), Language::English) => format!(
            "error: the adapters do not fit the model: {error}\n  help: name other modules with --lora-targets"
        ),
        (LowerError::Lora(error), Language::Chinese) => {
            format!("错误：LoRA 与模型不符：{error}\n  建议：用 --lora-targets 指定其他模块")
        }
        (LowerError::NothingTrained, Language::English) => {
            "error: nothing of the model is trained\n  help: choose another --method".to_owned()
        }
        (LowerError::NothingTrained, Language::Chinese) => {
            "错误：模型没有任何可训练的参数\n  建议：换一个 --method".to_owned()
        }
        (LowerError::TooLarge { sequences, length }, Language::English) => format!(
            "error: {sequences} sequences of {length} tokens are beyond any machine\n  help: lower --micro-batch or --seq-len"
        ),
        (LowerError::TooLarge { sequences, length }, Language::Chinese) => format!(
            "错误：{sequences} 条 {length} token 的序列超出任何机器的能力\n  建议：减小 --micro-batch 或 --seq-len"
        ),
    }
}
