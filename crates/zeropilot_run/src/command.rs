//! The command that is supervised: which config it points to, and the same command with another one.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use zeropilot_config::front_end::FrontEnd;
use zeropilot_lint::job;

use crate::ladder::BatchArguments;

/// A command with what it says about itself.
#[derive(Debug, Clone)]
pub struct RunCommand {
    /// Its words.
    pub words: Vec<OsString>,
    /// The config as it is named, if there is one.
    pub config: Option<String>,
    /// Ranks, if it says so.
    pub world: Option<usize>,
    /// Who reads the config, if it shows.
    pub front_end: Option<FrontEnd>,
    /// Where it writes checkpoints, if it shows.
    pub checkpoints: Option<PathBuf>,
}

/// Arguments of training programs that name the directory of checkpoints.
const CHECKPOINTS: [&str; 4] = ["--output_dir", "--save", "--save_dir", "--checkpoint_dir"];

impl RunCommand {
    /// Reads the words of a command.
    pub fn read(words: Vec<OsString>) -> Self {
        let text = script(&words);
        let files = |name: &str| fs::read_to_string(name).ok();
        let job = job::read(&text, &files);
        let launch = job.launches.first();
        let config = launch.and_then(|launch| launch.given.config.as_ref()?.text.clone());
        let checkpoints =
            CHECKPOINTS.iter().find_map(|name| value(&words, name)).map(PathBuf::from);
        Self {
            config,
            world: launch.and_then(|launch| launch.world),
            front_end: launch.and_then(|launch| launch.given.front_end),
            checkpoints,
            words,
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
        let named = self.config.as_deref()?;
        let words = replaced(&self.words, named, config.as_os_str());
        if words != self.words {
            return Some(words);
        }
        let is_yaml = |word: &&OsString| {
            let end = Path::new(word).extension().and_then(OsStr::to_str);
            matches!(end, Some("yaml" | "yml"))
        };
        let yaml = self.words.iter().find(is_yaml)?;
        let text = fs::read_to_string(yaml).ok().filter(|text| text.contains(named))?;
        let copy = directory.join(Path::new(yaml).file_name()?);
        fs::write(&copy, text.replace(named, &config.to_string_lossy())).ok()?;
        Some(replaced(&self.words, &yaml.to_string_lossy(), copy.as_os_str()))
    }
}

/// The words as a line of a script.
pub fn script(words: &[OsString]) -> String {
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
    fn an_option_is_set_wherever_it_stands() {
        assert_eq!(with_value(&words("a --n 1"), "--n", "2"), words("a --n 2"));
        assert_eq!(with_value(&words("a --n=1"), "--n", "2"), words("a --n=2"));
        assert_eq!(with_value(&words("a"), "--n", "2"), words("a --n 2"));
    }
}
