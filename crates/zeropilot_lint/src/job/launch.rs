//! Who starts the ranks, how many, and what they are told.

use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::syntax::Span;

use super::Files;
use super::arguments::{ACCELERATE_SECTION, Given};
use super::place::{Named, Place, Said};
use super::python::PythonScript;
use super::shell::{Assignment, Command, Word};
use super::{hostfile, training, yaml};

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

/// A training run that a script starts.
#[derive(Debug)]
pub struct Launch {
    /// Who starts it.
    pub launcher: Launcher,
    /// Arguments of the launcher itself, by name without dashes.
    pub options: Vec<(String, Word)>,
    /// Variables set for this command alone.
    pub variables: Vec<Assignment>,
    /// How many ranks there are, if the script settles it.
    pub world: Option<usize>,
    /// What the training script is told.
    pub given: Given,
    /// The training script, as it is named.
    pub program: Option<String>,
    /// Whether something like `srun` starts it several times.
    pub is_repeated: bool,
    /// All words of the command, from the first on.
    pub words: Vec<Word>,
    launcher_is_axolotl: bool,
    /// Whether accelerate's launcher is what switches DeepSpeed on.
    pub(crate) by_accelerate: bool,
    /// What accelerate's own file says that training is.
    pub(crate) distributed_type: Option<Said>,
    pub(crate) script: Option<PythonScript>,
    pub(super) span: Span,
}

/// The launch that a command is, if it is one that uses DeepSpeed.
pub(super) fn from_command(
    command: &Command,
    exported: &[Assignment],
    files: Files<'_>,
) -> Option<Launch> {
    let (launcher, rest) = launcher(&command.words)?;
    let starts_itself =
        matches!(launcher, Launcher::LlamaFactory | Launcher::Swift | Launcher::Axolotl);
    let program = match launcher {
        _ if starts_itself => 0,
        _ => program(rest)?,
    };
    let (own, script) = rest.split_at(program.min(rest.len()));
    let mut launch = Launch {
        launcher,
        options: flags(own),
        variables: command.variables.clone(),
        world: None,
        given: Given::default(),
        program: script.first().filter(|_| !starts_itself).and_then(|word| word.text.clone()),
        launcher_is_axolotl: false,
        by_accelerate: false,
        distributed_type: None,
        script: None,
        is_repeated: command.words.first().is_some_and(|first| is_repeating(first.text.as_deref())),
        words: command.words.clone(),
        span: command.span,
    };
    let script = if starts_itself { script } else { script.get(1..).unwrap_or(&[]) };
    launch.read_yaml(script, files);
    launch.read_arguments(script);
    let is_asked_for = launcher == Launcher::DeepSpeed || launch.asks_without_a_file();
    launch.by_accelerate = launcher == Launcher::Accelerate && is_asked_for;
    launch.distributed_type = launch.given.said("distributed_type").cloned();
    training::read_program(&mut launch, files);
    launch.world = launch.count(exported, files);
    let has_config = launch.given.config.is_some() || launch.given.dictionary.is_some();
    (is_asked_for || has_config).then_some(launch)
}

/// The launcher at the start of the words, and what follows it.
fn launcher(words: &[Word]) -> Option<(Launcher, &[Word])> {
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
            _ => (Launcher::Python, after(1)),
        },
        // Programs that run another one: the launcher comes later.
        "srun" | "mpirun" | "mpiexec" | "nohup" | "time" | "exec" | "env" | "nice" | "sudo"
        | "bash" => {
            return launcher(after(1)).or_else(|| later(after(1)));
        }
        _ => return None,
    })
}

/// Whether a program starts what follows it once for every task.
fn is_repeating(name: Option<&str>) -> bool {
    matches!(name, Some("srun" | "mpirun" | "mpiexec" | "pdsh"))
}

/// Past the options of a program such as `srun`.
fn later(words: &[Word]) -> Option<(Launcher, &[Word])> {
    (1..words.len()).find_map(|start| launcher(&words[start..]))
}

fn is_python(name: &str) -> bool {
    name.strip_prefix("python").is_some_and(|rest| {
        rest.chars().all(|character| character.is_ascii_digit() || character == '.')
    })
}

/// Where the training program stands: a Python file, or what follows `-m`.
fn program(words: &[Word]) -> Option<usize> {
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

/// Options by name, each with its value; the name's own place where it has none.
fn flags(words: &[Word]) -> Vec<(String, Word)> {
    let mut found = Vec::new();
    let mut index = 0;
    while let Some(word) = words.get(index) {
        index += 1;
        let Some(text) = word.text.as_deref() else { continue };
        let Some(name) = text.strip_prefix('-').map(|name| name.trim_start_matches('-')) else {
            continue;
        };
        if let Some((name, value)) = name.split_once('=') {
            let value = Word { text: Some(value.to_owned()), span: word.span };
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
            None => found.push((name, Word { text: Some(String::new()), span: word.span })),
        }
    }
    found
}

impl Launch {
    /// The value of a launcher option; the last one counts.
    pub(crate) fn option(&self, name: &str) -> Option<&Word> {
        self.options.iter().rev().find(|(known, _)| known == name).map(|(_, word)| word)
    }

    /// A launcher option with one of these names that is written at all.
    pub fn has_option(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.option(name).is_some())
    }

    /// Whether DeepSpeed is asked for by what has no file: a preset of ms-swift, or fields of accelerate's own.
    fn asks_without_a_file(&self) -> bool {
        match self.launcher {
            Launcher::Swift => self.given.said("deepspeed").is_some(),
            Launcher::Accelerate => {
                let kind = self.given.said("distributed_type").map(|said| said.value.as_str());
                kind == Some("DEEPSPEED") || self.has_option(&["use_deepspeed"])
            }
            _ => false,
        }
    }

    /// A field of accelerate's plugin: by its option, or in the section of its YAML.
    pub(crate) fn accelerate_field(&self, name: &str) -> Option<Said> {
        if let Some(word) = self.option(name) {
            let (value, place) = (word.text.clone()?, Place::here(word.span));
            return Some(Said { name: name.to_owned(), value, place });
        }
        self.given.said(&format!("{ACCELERATE_SECTION}{name}")).cloned()
    }

    fn number(&self, name: &str) -> Option<usize> {
        self.option(name)?.text.as_deref()?.parse().ok()
    }

    /// Files in YAML that the launcher or the front end reads before the training script does.
    fn read_yaml(&mut self, script: &[Word], files: Files<'_>) {
        let named = match self.launcher {
            Launcher::Accelerate => self.option("config_file").cloned(),
            Launcher::LlamaFactory | Launcher::Axolotl => script.first().cloned(),
            _ => None,
        };
        self.read_yaml_file(named.as_ref(), files);
        // The trainer has a file of its own, whoever starts it.
        if self.program.as_deref() == Some("axolotl.cli.train") {
            self.launcher_is_axolotl = true;
            self.read_yaml_file(script.first(), files);
        }
        if self.launcher == Launcher::LlamaFactory || self.is_axolotl() {
            self.given.front_end = Some(FrontEnd::HfTrainer);
        }
    }

    fn is_axolotl(&self) -> bool {
        self.launcher == Launcher::Axolotl || self.launcher_is_axolotl
    }

    fn read_yaml_file(&mut self, named: Option<&Word>, files: Files<'_>) {
        let Some((name, span)) = named.and_then(|word| Some((word.text.as_deref()?, word.span)))
        else {
            return;
        };
        let Some(text) = files(name) else { return };
        for entry in yaml::scalars(&text) {
            let place = Place::in_file(name, entry.span);
            let key = match entry.key.as_str() {
                "deepspeed_config.deepspeed_config_file" | "deepspeed" => {
                    self.given.config = Some(Named { text: Some(entry.value), place });
                    continue;
                }
                // axolotl's own names for arguments of the Trainer.
                "micro_batch_size" if self.is_axolotl() => "per_device_train_batch_size",
                "optimizer" if self.is_axolotl() => "optim",
                "lr_scheduler" if self.is_axolotl() => "lr_scheduler_type",
                other => other,
            };
            if key == "num_processes" && self.option("num_processes").is_none() {
                let word = Word { text: Some(entry.value.clone()), span };
                self.options.push((key.to_owned(), word));
            }
            // accelerate counts a precision of its own file among the fields of that section.
            if key == "mixed_precision" && self.option(key).is_none() {
                let name = format!("{ACCELERATE_SECTION}{key}");
                self.given.say(&name, entry.value.clone(), place.clone());
            }
            self.given.say(key, entry.value, place);
        }
    }

    fn read_arguments(&mut self, script: &[Word]) {
        if self.launcher == Launcher::LlamaFactory {
            self.read_overrides(script);
        }
        let flags = flags(script);
        let has_switch = flags
            .iter()
            .any(|(name, word)| name == "deepspeed" && word.text.as_deref() == Some(""));
        if let Some(word) = self.option("deepspeed_config_file").cloned() {
            self.given.config = Some(named(word));
        }
        for (name, word) in flags {
            match (name.as_str(), word.text.as_deref()) {
                ("deepspeed", Some("")) => {}
                ("deepspeed", Some(text)) if is_file(text) => {
                    self.given.config = Some(named(word));
                    self.given.front_end = Some(FrontEnd::HfTrainer);
                }
                // ms-swift has configs of its own, by their names.
                ("deepspeed", Some(text)) if self.launcher == Launcher::Swift => {
                    self.given.say(&name, text, Place::here(word.span));
                    self.given.front_end = Some(FrontEnd::HfTrainer);
                }
                ("deepspeed", Some(_)) => {}
                ("deepspeed" | "deepspeed_config", None) => self.given.config = Some(named(word)),
                ("deepspeed_config", Some(_)) => {
                    self.given.config = Some(named(word));
                    if has_switch {
                        self.given.front_end = Some(FrontEnd::DeepSpeed);
                    }
                }
                (_, Some(text)) => self.given.say(&name, text, Place::here(word.span)),
                (_, None) => self.given.unknown.push(name.clone()),
            }
        }
        if let Some(word) = self.option("mixed_precision").cloned()
            && let Some(precision) = word.text
        {
            self.given.say("mixed_precision", precision, Place::here(word.span));
        }
    }

    /// `name=value` after LLaMA-Factory's YAML, which wins over it.
    fn read_overrides(&mut self, script: &[Word]) {
        for word in script.iter().skip(1) {
            let pair = word.text.as_deref().and_then(|text| text.split_once('='));
            if let Some((name, value)) = pair.filter(|(name, _)| !name.starts_with('-')) {
                if name == "deepspeed" {
                    let text = Some(value.to_owned());
                    self.given.config = Some(Named { text, place: Place::here(word.span) });
                } else {
                    self.given.say(name, value, Place::here(word.span));
                }
            }
        }
    }

    /// How many ranks, where every number is written.
    fn count(&self, exported: &[Assignment], files: Files<'_>) -> Option<usize> {
        match self.launcher {
            Launcher::DeepSpeed => self.count_deepspeed(files),
            Launcher::Torchrun => {
                let per_node = self.number("nproc_per_node")?;
                let nodes = match self.option("nnodes") {
                    None => 1,
                    Some(_) => self.number("nnodes")?,
                };
                per_node.checked_mul(nodes)
            }
            Launcher::Accelerate => self.number("num_processes"),
            Launcher::LlamaFactory | Launcher::Swift => self.count_by_variables(exported),
            Launcher::Axolotl | Launcher::Python => None,
        }
    }

    /// What front ends that start `torchrun` themselves are told by variables.
    fn count_by_variables(&self, exported: &[Assignment]) -> Option<usize> {
        let set = |name: &str| {
            let mut own = self.variables.iter().rev().chain(exported.iter().rev());
            own.find(|set| set.name == name).map(|set| set.value.text.as_deref())
        };
        let per_node: usize = set("NPROC_PER_NODE")??.parse().ok()?;
        let nodes = set("NNODES").map_or(Some(1), |nodes| nodes?.parse().ok())?;
        per_node.checked_mul(nodes)
    }

    fn count_deepspeed(&self, files: Files<'_>) -> Option<usize> {
        if let Some(include) = self.option("include").or_else(|| self.option("i")) {
            let text = include.text.as_deref()?;
            let hosts = text.split('@').map(|host| host.split_once(':').map(|(_, slots)| slots));
            return hosts.map(|slots| Some(slots?.split(',').count())).sum();
        }
        let hosts = self.option("hostfile").or_else(|| self.option("H"));
        if let Some(hosts) = hosts
            && !self.has_option(&["exclude", "e", "num_gpus", "num_nodes"])
        {
            return hostfile::slots(&files(hosts.text.as_deref()?)?);
        }
        let per_node = self.number("num_gpus")?;
        let nodes = match self.option("num_nodes") {
            None if hosts.is_some() => return None,
            None => 1,
            Some(_) => self.number("num_nodes")?,
        };
        per_node.checked_mul(nodes)
    }
}

fn named(word: Word) -> Named {
    Named { text: word.text, place: Place::here(word.span) }
}

/// Whether the value of `--deepspeed` is a file; ms-swift takes the names of its own presets too.
fn is_file(text: &str) -> bool {
    let extension = text.rsplit('.').next().unwrap_or("");
    text.contains('/') || matches!(extension, "json" | "hjson")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(text: &str) -> Launch {
        let hosts = |name: &str| (name == "hosts").then(|| "a slots=8\nb slots=8\n".to_owned());
        super::super::read(text, &Default::default(), &hosts)
            .launches
            .into_iter()
            .next()
            .expect("a launch")
    }

    #[test]
    fn ranks_are_counted_where_every_number_is_written() {
        for (text, world) in [
            ("deepspeed --num_gpus 4 t.py", Some(4)),
            ("deepspeed --num_gpus=4 --num_nodes=2 t.py", Some(8)),
            ("deepspeed --include localhost:0,2,5 t.py", Some(3)),
            ("deepspeed --include a:0,1@b:0,1,2 t.py", Some(5)),
            ("deepspeed --hostfile hosts t.py", Some(16)),
            ("deepspeed t.py", None),
            ("deepspeed --num_gpus $GPUS t.py", None),
            ("torchrun --nproc_per_node=8 --nnodes 2 t.py --deepspeed ds.json", Some(16)),
            ("torchrun --nproc-per-node gpu t.py --deepspeed ds.json", None),
            (
                "python -m torch.distributed.run --nproc_per_node 2 t.py --deepspeed ds.json",
                Some(2),
            ),
            ("srun --jobid 1 bash x torchrun --nproc_per_node 8 t.py --deepspeed ds.json", Some(8)),
            ("accelerate launch --num_processes 6 --deepspeed_config_file ds.json t.py", Some(6)),
        ] {
            assert_eq!(first(text).world, world, "{text}");
        }
    }

    #[test]
    fn the_config_and_its_reader_are_found() {
        let launch = first("deepspeed --num_gpus 2 t.py --deepspeed --deepspeed_config c.json");
        assert_eq!(launch.given.front_end, Some(FrontEnd::DeepSpeed));
        let launch = first("torchrun --nproc_per_node 2 t.py --deepspeed c.json --bf16 --lr $LR");
        assert_eq!(launch.given.front_end, Some(FrontEnd::HfTrainer));
        let config = launch.given.config.as_ref().and_then(|word| word.text.as_deref());
        assert_eq!(config, Some("c.json"));
        assert_eq!(launch.given.unknown, ["lr"]);
    }
}
