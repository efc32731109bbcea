//! A training run that a script starts: its launcher, its options, the program and what that is told.

use zeropilot_config::front_end::FrontEnd;
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
use crate::trl;
use crate::unread;

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
    /// The framework of the program, where zeropilot knows it by name and does not read its arguments.
    pub unread: Option<&'static str>,
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
    let by_trl = trl::launch_words(&command.words, files);
    let words = by_trl.as_deref().unwrap_or(&command.words);
    let (launcher, rest) = launcher(words)?;
    let starts_itself = launcher.has_own_arguments();
    let program = match launcher {
        _ if starts_itself => 0,
        // It starts nothing but training programs.
        Launcher::DeepSpeed => program(rest).or_else(|| unknown_program(rest))?,
        _ => program(rest)?,
    };
    let (own, script) = rest.split_at(program.min(rest.len()));
    let directory = &command.directory;
    let named = script.first().filter(|_| !starts_itself).and_then(|word| word.text.as_deref());
    let program = named.map(|name| match name.ends_with(".py") && by_trl.is_none() {
        true => directory.join(name),
        false => trl::script_of(name).unwrap_or_else(|| name.to_owned()),
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
        words: words.to_vec(),
        unread: None,
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
    let is_open = launch.given.front_end.is_none_or(|front_end| front_end == FrontEnd::DeepSpeed);
    launch.unread =
        is_open.then(|| unread::framework(words, files)).flatten().filter(|_| !starts_itself);
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

    /// Words that only the run knows and that are no value of an option: options may be among them.
    pub fn open_words(&self) -> usize {
        Self::open_words_of(&self.words).count()
    }

    /// The same, of these words.
    pub(crate) fn open_words_of(all: &[Word]) -> impl Iterator<Item = &Word> {
        let is_option = |text: &str| text.starts_with('-') && !text.contains('=');
        let is_value = move |index: usize| {
            let before = index.checked_sub(1).and_then(|before| all.get(before));
            before.and_then(|it| it.text.as_deref()).is_some_and(is_option)
        };
        let is_open = |word: &Word| word.text.is_none() && word.option.is_none();
        let words = all.iter().enumerate();
        words.filter(move |(index, word)| is_open(word) && !is_value(*index)).map(|(_, word)| word)
    }

    /// The words that the program gets, where its name is written.
    pub fn program_words(&self) -> Option<&[Word]> {
        let program = self.program.as_deref()?;
        let is_it = |word: &Word| {
            word.text.as_deref().is_some_and(|text| {
                text == program
                    || self.path(text) == program
                    || trl::script_of(text).is_some_and(|script| script == program)
            })
        };
        self.words.get(self.words.iter().position(is_it)? + 1..)
    }

    /// Whether all options of the program are written out: it has some, and only values of them may be unknown. A word
    /// at the end, such as `$MORE`, may be options behind a switch.
    pub fn is_written_out(&self) -> bool {
        let last = self.program_words().and_then(<[Word]>::last);
        let is_option = |word: &Word| word.text.is_some() || word.option.is_some();
        self.open_words() == 0 && last.is_some_and(is_option)
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
