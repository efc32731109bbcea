//! The command that is supervised: which config it points to, and the same command with another one.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use zeropilot_config::front_end::FrontEnd;
use zeropilot_job::{self as job, Launch, Launcher, PythonScript, TrainingJob, Word};

use crate::config::read_config;
use crate::fallbacks::{Batch, BatchArguments};
use crate::paths::resolved;
use crate::shell_script::ShellScript;
use crate::telemetry::TrainingLength;

/// A command with what it says about itself.
#[derive(Debug, Clone)]
pub struct RunCommand {
    /// What the user typed.
    pub given: Vec<OsString>,
    /// The words of the launch: those given, or those in the script that a given shell runs.
    pub words: Vec<OsString>,
    /// That script.
    pub script: Option<ShellScript>,
    /// Training runs with DeepSpeed that were seen in it.
    pub launches: usize,
    /// What it says about the training, if it is one run.
    pub job: TrainingJob,
    /// The launch in the script, if that has exactly one.
    pub(crate) launch: Vec<Word>,
    /// The training program as it is named, if there is one.
    pub(crate) program: Option<String>,
    /// The config, from where the command starts, if there is one.
    pub config: Option<String>,
    /// The config as the launch names it, from the directory that its script changes to.
    pub(crate) config_word: Option<String>,
    /// Ranks, if it says so.
    pub world: Option<usize>,
    /// Who reads the config, if it shows.
    pub front_end: Option<FrontEnd>,
    /// Where it writes checkpoints, if it shows.
    pub checkpoints: Option<PathBuf>,
    /// Whether the program takes the arguments of the HF Trainer: not every program with an `--output_dir` does.
    pub is_trainer: bool,
}

/// Arguments of training programs that name the directory of checkpoints.
const CHECKPOINTS: [&str; 4] = ["--output_dir", "--save", "--save_dir", "--checkpoint_dir"];

impl RunCommand {
    /// Reads the words of a command.
    pub fn read(given: Vec<OsString>) -> Self {
        let script = ShellScript::of(&given);
        let text = script.as_ref().map_or_else(|| line(&given), |script| script.text.clone());
        let files = |name: &str| fs::read_to_string(found(script.as_ref(), name)).ok();
        let outside = script.as_ref().map(ShellScript::outside).unwrap_or_default();
        let read = job::read(&text, &outside, &files);
        // Of several runs in a script none can be told from the others once they run.
        let launch = read.launches.first().filter(|_| script.is_none() || read.launches.len() == 1);
        let in_script = script.as_ref().zip(launch);
        let words =
            in_script.map_or_else(|| given.clone(), |(script, launch)| script.words(&launch.words));
        let config = launch.and_then(|launch| launch.given.config.as_ref()?.text.clone());
        let checkpoints =
            CHECKPOINTS.iter().find_map(|name| value(&words, name)).map(|name| match launch {
                // Where the script has changed its directory, a path counts from where it was started.
                Some(launch) if launch.path(&name) != name => resolved(
                    &env::current_dir().unwrap_or_default(),
                    Path::new(&launch.path(&name)),
                ),
                _ => PathBuf::from(name),
            });
        let file = script.as_ref().and_then(|script| script.file.as_deref());
        let name = file.unwrap_or(Path::new("")).to_string_lossy();
        let of_launch = |launch| TrainingJob::of_launch(&name, &text, &read, launch, &files);
        Self {
            job: launch.map(of_launch).unwrap_or_default(),
            program: launch.and_then(|launch| launch.program.clone()),
            config,
            config_word: launch.and_then(|launch| launch.config_word.clone()),
            world: launch.and_then(|launch| launch.world),
            front_end: launch.and_then(|launch| launch.given.front_end),
            checkpoints,
            is_trainer: launch.is_some_and(is_trainer),
            launches: read.launches.len(),
            launch: in_script.map(|(_, launch)| launch.words.clone()).unwrap_or_default(),
            words,
            script,
            given,
        }
    }

    /// The config that it points to, if it can be read.
    pub fn read_config(&self) -> Option<Map<String, Value>> {
        read_config(&self.config_file()?)
    }

    /// How long it trains, and on how much, as far as it shows.
    pub fn length(&self) -> TrainingLength {
        let config = self.read_config().unwrap_or_default();
        let said = |value: &Option<job::Sourced<u64>>| NonZeroU64::new(value.as_ref()?.value);
        let arguments = BatchArguments {
            micro: said(&self.job.micro_batch),
            accumulation: said(&self.job.grad_accum),
        };
        let global = || {
            let ranks = self.world?;
            Batch::of(&config, arguments, Some(ranks))?.global(ranks)
        };
        let written = config.get("train_batch_size").and_then(Value::as_u64);
        let samples = written.or_else(global);
        let tokens = said(&self.job.seq_len).map(NonZeroU64::get).zip(samples);
        TrainingLength {
            total_steps: said(&self.job.max_steps).map(NonZeroU64::get),
            tokens_per_step: tokens.and_then(|(tokens, samples)| tokens.checked_mul(samples)),
        }
    }

    /// The training program, if it is a file of Python's that is not there. A shell may change its directory first, so
    /// that what a script names is not looked for.
    pub fn missing_program(&self) -> Option<&Path> {
        let program = self.program.as_deref().map(Path::new).filter(|_| self.script.is_none())?;
        let is_python = program.extension().is_some_and(|end| end == "py");
        (is_python && !program.exists()).then_some(program)
    }

    /// Where the config is.
    pub fn config_file(&self) -> Option<PathBuf> {
        Some(found(self.script.as_ref(), self.config.as_deref()?))
    }

    /// What to start for these words of the launch.
    pub(crate) fn start(&self, words: &[OsString]) -> Vec<OsString> {
        match &self.script {
            _ if words == self.words => self.given.clone(),
            Some(script) if !self.launch.is_empty() => script.with(&self.launch, words),
            _ => words.to_vec(),
        }
    }

    /// The value of an option of the program or its launcher.
    pub fn option(&self, name: &str) -> Option<String> {
        value(&self.words, name)
    }

    /// What its options say about the batch.
    pub fn batch(&self) -> BatchArguments {
        BatchArguments::read(|name| self.option(name))
    }

    /// How many of its ranks run on this machine, if it says so.
    pub fn ranks_here(&self) -> Option<usize> {
        let said = ["--nproc-per-node", "--nproc_per_node", "--num_gpus"];
        let said = said.iter().find_map(|name| self.option(name)?.parse().ok());
        said.or(self.world)
    }

    /// The command with another config. A config that only a YAML file names is changed in a copy of that file, which
    /// goes into `directory`. `None` if the name is nowhere to be found.
    pub fn with_config(&self, config: &Path, directory: &Path) -> Option<Vec<OsString>> {
        let named = self.config_word.as_deref()?;
        let words = replaced(&self.words, named, config.as_os_str());
        if words != self.words {
            return Some(words);
        }
        let is_yaml = |word: &&OsString| {
            let end = Path::new(word).extension().and_then(OsStr::to_str);
            matches!(end, Some("yaml" | "yml"))
        };
        let yaml = self.words.iter().find(is_yaml)?;
        let file = found(self.script.as_ref(), &yaml.to_string_lossy());
        let text = fs::read_to_string(file).ok().filter(|text| text.contains(named))?;
        let copy = directory.join(Path::new(yaml).file_name()?);
        fs::write(&copy, text.replace(named, &config.to_string_lossy())).ok()?;
        Some(replaced(&self.words, &yaml.to_string_lossy(), copy.as_os_str()))
    }
}

/// Whether a launch starts a program that reads the arguments of the HF Trainer from its command line.
fn is_trainer(launch: &Launch) -> bool {
    let is_framework = matches!(launch.launcher, Launcher::LlamaFactory | Launcher::Swift);
    let reads = |script: &PythonScript| script.reads_command_line();
    is_framework || launch.script.as_ref().is_some_and(reads)
}

/// A file that a command names.
fn found(script: Option<&ShellScript>, name: &str) -> PathBuf {
    script.map_or_else(|| PathBuf::from(name), |script| script.find(name))
}

/// The words as a line of a script.
pub fn line(words: &[OsString]) -> String {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    // A word with a NUL cannot be a word of a command either.
    shlex::try_join(words.iter().map(AsRef::as_ref)).unwrap_or_default()
}

/// The words with one exchanged, alone or as the value of an option.
pub(crate) fn replaced(words: &[OsString], from: &str, to: &OsStr) -> Vec<OsString> {
    let one = |word: &OsString| {
        let text = word.to_string_lossy();
        if text == from {
            return to.to_owned();
        }
        match text.split_once('=') {
            Some((name, value)) if value == from && name.starts_with('-') => {
                let mut word = OsString::from(format!("{name}="));
                word.push(to);
                word
            }
            _ => word.clone(),
        }
    };
    words.iter().map(one).collect()
}

/// The words with every mention of a directory exchanged, however it is spelled for a program that runs in `directory`;
/// none if there is no mention.
pub(crate) fn with_path(
    words: &[OsString],
    directory: &Path,
    from: &Path,
    to: &Path,
) -> Option<Vec<OsString>> {
    let is = |text: &str| !text.is_empty() && resolved(directory, Path::new(text)) == from;
    let one = |word: &OsString| {
        let text = word.to_string_lossy();
        if is(&text) {
            return to.as_os_str().to_owned();
        }
        match text.split_once('=') {
            Some((name, value)) if is(value) => {
                let mut word = OsString::from(format!("{name}="));
                word.push(to);
                word
            }
            _ => word.clone(),
        }
    };
    let changed: Vec<OsString> = words.iter().map(one).collect();
    (changed != words).then_some(changed)
}

/// The value of an option.
pub(crate) fn value(words: &[OsString], name: &str) -> Option<String> {
    let texts: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    texts.iter().enumerate().find_map(|(index, text)| {
        if text == name {
            return texts.get(index + 1).map(ToString::to_string);
        }
        text.strip_prefix(name)?.strip_prefix('=').map(str::to_owned)
    })
}

/// The words with an option set: its value exchanged, or both added at the end.
pub(crate) fn with_value(words: &[OsString], name: &str, to: &str) -> Vec<OsString> {
    let mut words = words.to_vec();
    let joined = format!("{name}=");
    for index in 0..words.len() {
        if words[index] == *name && index + 1 < words.len() {
            words[index + 1] = to.into();
            return words;
        }
        if words[index].to_string_lossy().starts_with(&joined) {
            words[index] = format!("{joined}{to}").into();
            return words;
        }
    }
    words.extend([name.into(), to.into()]);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_config_is_found_and_exchanged() {
        let command = RunCommand::read(words(
            "torchrun --nproc-per-node 2 t.py --deepspeed=a/ds.json --output_dir out",
        ));
        assert_eq!((command.config.as_deref(), command.world), (Some("a/ds.json"), Some(2)));
        assert_eq!(command.checkpoints.as_deref(), Some(Path::new("out")));
        let other = command.with_config(Path::new("r/2.json"), Path::new("."));
        let other = other.expect("it is named in the command");
        assert!(other.contains(&"--deepspeed=r/2.json".into()), "{other:?}");
    }

    #[test]
    fn steps_and_tokens_follow_from_arguments_and_config() {
        let directory = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::write(&path, text).expect("written");
            path.display().to_string()
        };
        let auto = write(
            "auto.json",
            r#"{"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}}"#,
        );
        let trainer = "--max_steps 50 --max_seq_length=128 --per_device_train_batch_size 2 --gradient_accumulation_steps 3";
        let of = |line: String| RunCommand::read(words(&line)).length();
        // 128 tokens × 2 per rank × 3 accumulated × 4 ranks.
        assert_eq!(
            of(format!("torchrun --nproc-per-node 4 t.py --deepspeed {auto} {trainer}")),
            TrainingLength { total_steps: Some(50), tokens_per_step: Some(128 * 2 * 3 * 4) }
        );
        let whole = write("whole.json", r#"{"train_batch_size": 64}"#);
        let unsaid = of(format!("deepspeed t.py --deepspeed {whole} --max_steps -1 --seq_len 10"));
        assert_eq!(unsaid, TrainingLength { total_steps: None, tokens_per_step: Some(640) });
        let steps = of(format!("deepspeed t.py --deepspeed {whole} --steps 7"));
        assert_eq!(steps, TrainingLength { total_steps: Some(7), tokens_per_step: None });
    }

    #[test]
    fn an_option_is_set_wherever_it_stands() {
        assert_eq!(with_value(&words("a --n 1"), "--n", "2"), words("a --n 2"));
        assert_eq!(with_value(&words("a --n=1"), "--n", "2"), words("a --n=2"));
        assert_eq!(with_value(&words("a"), "--n", "2"), words("a --n 2"));
    }

    #[test]
    fn a_directory_is_exchanged_however_it_is_spelled_and_nothing_else_is() {
        let (here, to) = (Path::new("/no/such"), Path::new("/fresh"));
        let from = Path::new("/no/such/ckpt");
        let with = |text: &str| with_path(&words(text), here, from, to);
        for (text, expected) in [
            ("t.py --save ckpt", "t.py --save /fresh"),
            ("t.py --save ./ckpt/", "t.py --save /fresh"),
            ("t.py --save=/no/such/ckpt", "t.py --save=/fresh"),
            ("t.py output.dir=ckpt", "t.py output.dir=/fresh"),
        ] {
            assert_eq!(with(text), Some(words(expected)), "{text}");
        }
        assert_eq!(with("t.py --save other --logs ckpt/logs"), None);
    }

    #[test]
    fn a_script_that_changes_its_directory_names_files_from_there() {
        let text = "cd src && deepspeed t.py --deepspeed_config conf/ds.json --output_dir out";
        let command = RunCommand::read(["bash", "-c", text].map(OsString::from).to_vec());
        assert_eq!(command.config.as_deref(), Some("src/conf/ds.json"));
        let here = env::current_dir().expect("a directory");
        assert_eq!(command.checkpoints, Some(here.join("src/out")));
        let other = command.with_config(Path::new("/r/2.json"), Path::new("."));
        let other = other.expect("the config is a word of the launch");
        assert!(other.contains(&OsString::from("/r/2.json")), "{other:?}");
    }
}
