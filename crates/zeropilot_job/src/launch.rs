//! A training run that a script starts: its launcher, its options, the program and what that is told.

use zeropilot_config::syntax::Span;

use crate::arguments::{ACCELERATE_SECTION, Given};
use crate::directory::Directory;
use crate::launcher::{Launcher, flags, is_repeating, launcher, program, unknown_program};
use crate::made::Made;
use crate::place::{Place, Said};
use crate::python::PythonScript;
use crate::script::Files;
use crate::shell::{Assignment, Command, Word};
use crate::training;

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
    /// What the command line and YAML say, before the training script decides what it takes.
    pub(crate) line: Vec<Said>,
    /// The training script, as it is named.
    pub program: Option<String>,
    /// Whether something like `srun` starts it several times.
    pub is_repeated: bool,
    /// All words of the command, from the first on.
    pub words: Vec<Word>,
    pub(super) launcher_is_axolotl: bool,
    /// Whether accelerate's launcher is what switches DeepSpeed on.
    pub by_accelerate: bool,
    /// What accelerate's own file says that training is.
    pub distributed_type: Option<Said>,
    /// The training script, where it could be read.
    pub script: Option<PythonScript>,
    /// Whether the script makes the config before; `None` if the config has no name that is known.
    pub made: Option<Made>,
    /// What the script writes into the config before, where it has that in full.
    pub config_text: Option<String>,
    /// The config as the launch names it, from the directory that it runs in.
    pub config_word: Option<String>,
    pub(super) directory: Directory,
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
        // It starts nothing but training programs.
        Launcher::DeepSpeed => program(rest).or_else(|| unknown_program(rest))?,
        _ => program(rest)?,
    };
    let (own, script) = rest.split_at(program.min(rest.len()));
    let directory = &command.directory;
    let named = script.first().filter(|_| !starts_itself).and_then(|word| word.text.as_deref());
    let program = named.map(|name| match name.ends_with(".py") {
        true => directory.join(name),
        false => name.to_owned(),
    });
    let mut launch = Launch {
        launcher,
        options: flags(own),
        variables: command.variables.clone(),
        world: None,
        given: Given::default(),
        line: Vec::new(),
        program,
        launcher_is_axolotl: false,
        by_accelerate: false,
        distributed_type: None,
        script: None,
        is_repeated: command.words.first().is_some_and(|first| is_repeating(first.text.as_deref())),
        words: command.words.clone(),
        made: None,
        config_text: None,
        config_word: None,
        directory: command.directory.clone(),
        span: command.span,
    };
    let script = if starts_itself { script } else { script.get(1..).unwrap_or(&[]) };
    launch.read_yaml(script, directory, files);
    launch.read_arguments(script);
    let is_asked_for = launcher == Launcher::DeepSpeed || launch.asks_without_a_file();
    launch.by_accelerate = launcher == Launcher::Accelerate && is_asked_for;
    launch.distributed_type = launch.given.said("distributed_type").cloned();
    if launch.distributed_type.is_some() && !is_asked_for {
        // accelerate hands its section on only where it starts DeepSpeed itself.
        launch.given.values.retain(|said| !said.name.starts_with(ACCELERATE_SECTION));
    }
    launch.line.clone_from(&launch.given.values);
    training::read_program(&mut launch, files);
    launch.world = launch.count(exported, &|name| files(&directory.join(name)));
    if let Some(name) = launch.given.config.as_mut().and_then(|config| config.text.as_mut()) {
        launch.config_word = Some(name.clone());
        // A config may also be handed over as text.
        if !name.starts_with('{') {
            *name = directory.join(name);
        }
    }
    let has_config = launch.given.config.is_some() || launch.given.dictionary.is_some();
    (is_asked_for || has_config).then_some(launch)
}

impl Launch {
    /// A file or directory that the launch names, from where the script starts.
    pub fn path(&self, name: &str) -> String {
        self.directory.join(name)
    }

    /// The value of a launcher option; the last one counts.
    pub fn option(&self, name: &str) -> Option<&Word> {
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
    pub fn accelerate_field(&self, name: &str) -> Option<Said> {
        if let Some(word) = self.option(name) {
            let (value, place) = (word.text.clone()?, Place::here(word.span));
            return Some(Said { name: name.to_owned(), value, place });
        }
        self.given.said(&format!("{ACCELERATE_SECTION}{name}")).cloned()
    }

    pub(super) fn number(&self, name: &str) -> Option<usize> {
        self.option(name)?.text.as_deref()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use zeropilot_config::front_end::FrontEnd;

    use super::*;

    fn first(text: &str) -> Launch {
        let hosts = |name: &str| (name == "hosts").then(|| "a slots=8\nb slots=8\n".to_owned());
        crate::read(text, &Default::default(), &hosts)
            .launches
            .into_iter()
            .next()
            .expect("a launch")
    }

    #[test]
    fn a_program_whose_name_is_not_known_is_launched() {
        let launch = first("deepspeed --num_gpus 2 ${dir}/../t.py --deepspeed_config c.json");
        assert_eq!((launch.program.as_deref(), launch.world), (None, Some(2)));
        let config = launch.given.config.as_ref().and_then(|word| word.text.as_deref());
        assert_eq!(config, Some("c.json"));
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
