//! The words of a command line: which launcher it begins with, where the training program stands, which options there are.

use crate::shell::Word;

/// A program that starts ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Launcher {
    /// `deepspeed`.
    DeepSpeed,
    /// `torchrun`, or `python -m torch.distributed.run`.
    Torchrun,
    /// `accelerate launch`.
    Accelerate,
    /// `llamafactory-cli train`.
    LlamaFactory,
    /// `swift sft` and its relatives.
    Swift,
    /// `axolotl train`.
    Axolotl,
    /// `python` alone, which starts one process without a launcher.
    Python,
}

impl Launcher {
    /// Whether its own arguments say how to train.
    pub(crate) fn has_own_arguments(self) -> bool {
        matches!(self, Self::LlamaFactory | Self::Swift | Self::Axolotl)
    }

    /// Its name as typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::DeepSpeed => "deepspeed",
            Self::Torchrun => "torchrun",
            Self::Accelerate => "accelerate launch",
            Self::LlamaFactory => "llamafactory-cli",
            Self::Swift => "swift",
            Self::Axolotl => "axolotl",
            Self::Python => "python",
        }
    }
}

/// The launcher at the start of the words, and what follows it.
pub(super) fn launcher(words: &[Word]) -> Option<(Launcher, &[Word])> {
    let text = |index: usize| words.get(index).and_then(|word| word.text.as_deref());
    let after = |index: usize| words.get(index..).unwrap_or(&[]);
    let name = text(0)?.rsplit('/').next()?;
    Some(match name {
        "deepspeed" => (Launcher::DeepSpeed, after(1)),
        "torchrun" => (Launcher::Torchrun, after(1)),
        "accelerate" if text(1) == Some("launch") => (Launcher::Accelerate, after(2)),
        "llamafactory-cli" if text(1) == Some("train") => (Launcher::LlamaFactory, after(2)),
        "axolotl" if text(1) == Some("train") => (Launcher::Axolotl, after(2)),
        "swift" if matches!(text(1), Some("sft" | "pt" | "rlhf")) => (Launcher::Swift, after(2)),
        name if is_python(name) => match (text(1), text(2)) {
            (Some("-m"), Some("torch.distributed.run" | "torch.distributed.launch")) => {
                (Launcher::Torchrun, after(3))
            }
            (Some("-m"), Some("accelerate.commands.launch")) => (Launcher::Accelerate, after(3)),
            // What hands a job to a cluster takes its command after two dashes.
            _ => handed_over(after(1)).unwrap_or((Launcher::Python, after(1))),
        },
        "uv" | "poetry" | "pdm" | "conda" if text(1) == Some("run") => return later(after(1)),
        // Programs that run another one: the launcher comes later.
        "srun" | "mpirun" | "mpiexec" | "nohup" | "time" | "exec" | "env" | "nice" | "sudo"
        | "bash" | "sh" | "eval" | "numactl" | "timeout" | "setsid" => {
            return launcher(after(1)).or_else(|| later(after(1)));
        }
        _ => return None,
    })
}

/// Whether a program starts what follows it once for every task.
pub(super) fn is_repeating(name: Option<&str>) -> bool {
    matches!(name, Some("srun" | "mpirun" | "mpiexec" | "pdsh"))
}

/// Past the options of a program such as `srun`.
fn later(words: &[Word]) -> Option<(Launcher, &[Word])> {
    (1..words.len()).find_map(|start| launcher(&words[start..]))
}

/// The launcher after `--`.
fn handed_over(words: &[Word]) -> Option<(Launcher, &[Word])> {
    let dashes = words.iter().position(|word| word.text.as_deref() == Some("--"))?;
    launcher(&words[dashes + 1..])
}

pub(super) fn is_python(name: &str) -> bool {
    name.strip_prefix("python").is_some_and(|rest| {
        rest.chars().all(|character| character.is_ascii_digit() || character == '.')
    })
}

/// Where the training program stands: a Python file, or what follows `-m`.
pub(super) fn program(words: &[Word]) -> Option<usize> {
    words
        .iter()
        .position(|word| {
            word.text.as_deref().is_some_and(|text| text.ends_with(".py") && !text.starts_with('-'))
        })
        .or_else(|| {
            let module = words
                .iter()
                .position(|word| matches!(word.text.as_deref(), Some("-m" | "--module")))?;
            (module + 1 < words.len()).then_some(module + 1)
        })
}

/// The same where only the run knows its name: the first word that is no option and no option's value.
pub(super) fn unknown_program(words: &[Word]) -> Option<usize> {
    let takes_value = |word: &Word| {
        word.text.as_deref().is_some_and(|text| text.starts_with('-') && !text.contains('='))
    };
    let is_program = |(index, word): (usize, &Word)| {
        word.text.is_none()
            && word.option.is_none()
            && !(index > 0 && takes_value(&words[index - 1]))
    };
    words.iter().enumerate().position(is_program)
}

/// Options by name, each with its value; the name's own place where it has none.
pub(super) fn flags(words: &[Word]) -> Vec<(String, Word)> {
    let mut found = Vec::new();
    let mut index = 0;
    while let Some(word) = words.get(index) {
        index += 1;
        let Some(text) = word.text.as_deref() else {
            if let Some(name) = &word.option {
                let value = Word { text: None, option: None, span: word.span };
                found.push((name.replace('-', "_"), value));
            }
            continue;
        };
        let Some(name) = text.strip_prefix('-').map(|name| name.trim_start_matches('-')) else {
            continue;
        };
        if let Some((name, value)) = name.split_once('=') {
            let value = Word { text: Some(value.to_owned()), option: None, span: word.span };
            found.push((name.replace('-', "_"), value));
            continue;
        }
        let value = words.get(index).filter(|next| {
            next.text
                .as_deref()
                .is_none_or(|text| !text.starts_with('-') || text.parse::<f64>().is_ok())
        });
        let name = name.replace('-', "_");
        match value {
            Some(value) => {
                index += 1;
                found.push((name, value.clone()));
            }
            None => {
                let nothing = Some(String::new());
                found.push((name, Word { text: nothing, option: None, span: word.span }));
            }
        }
    }
    found
}
