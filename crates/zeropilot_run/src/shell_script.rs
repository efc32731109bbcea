//! A command that hands a script to a shell, as `bash train.sh` does: the launch in it, and the same script with that
//! launch changed.
//!
//! The file itself is never touched. A changed script is given to the shell as text, under its own name, so that `$0`
//! and the arguments are what they were.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use zeropilot_job::local::own_name;
use zeropilot_job::{Outside, Word};

const SHELLS: [&str; 5] = ["bash", "sh", "dash", "ksh", "zsh"];

/// A script and how it is started.
#[derive(Debug, Clone)]
pub struct ShellScript {
    /// Where it stands; `None` if it is an argument itself.
    pub file: Option<PathBuf>,
    /// What it says.
    pub text: String,
    /// The shell with its options.
    shell: Vec<OsString>,
    /// What follows the text: the name of the script and its arguments.
    after: Vec<OsString>,
}

impl ShellScript {
    /// The script that a command runs, if it runs one that can be read.
    pub fn of(words: &[OsString]) -> Option<Self> {
        let first = Path::new(words.first()?);
        let is_shell = first.file_name().is_some_and(|name| SHELLS.iter().any(|one| name == *one));
        if !is_shell {
            let text = fs::read_to_string(first).ok()?;
            return Some(Self {
                file: Some(first.to_owned()),
                shell: interpreter(&text)?,
                after: words.to_vec(),
                text,
            });
        }
        let is_option = |word: &&OsString| word.to_string_lossy().starts_with('-');
        let place = 1 + words[1..].iter().take_while(is_option).count();
        let (shell, rest) = words.split_at(place);
        let takes_text = shell.last().is_some_and(|word| word == "-c");
        let found = rest.first()?;
        if takes_text {
            return Some(Self {
                file: None,
                text: found.to_str()?.to_owned(),
                shell: shell[..place - 1].to_vec(),
                after: rest[1..].to_vec(),
            });
        }
        Some(Self {
            file: Some(found.into()),
            text: fs::read_to_string(found).ok()?,
            shell: shell.to_vec(),
            after: rest.to_vec(),
        })
    }

    /// The variables it finds: its arguments by number, and those of this process, which it inherits.
    pub fn outside(&self) -> Outside {
        let text = |value: OsString| value.into_string().ok();
        let arguments = self.after.iter().enumerate().skip(1);
        let arguments = arguments.map(|(index, word)| (index.to_string(), text(word.clone())));
        let inherited = std::env::vars_os();
        let inherited = inherited.filter_map(|(name, value)| Some((text(name)?, text(value))));
        let own = self.file.as_deref().and_then(own_name);
        inherited.chain(arguments).chain(own).collect()
    }

    /// The words of a launch in it. A word that only the run settles stands as it is written.
    pub(crate) fn words(&self, launch: &[Word]) -> Vec<OsString> {
        let written = |word: &Word| self.text[word.span.start..word.span.end].to_owned();
        let word = |word: &Word| word.text.clone().unwrap_or_else(|| written(word)).into();
        launch.iter().map(word).collect()
    }

    /// The command that runs it with other words for that launch. Words that did not change stay as they are written;
    /// words that came to it follow the last.
    pub(crate) fn with(&self, launch: &[Word], words: &[OsString]) -> Vec<OsString> {
        let known = self.words(launch);
        let mut text = self.text.clone();
        let end = launch.last().map_or(text.len(), |word| word.span.end);
        let added = words.get(known.len()..).unwrap_or_default();
        text.insert_str(
            end,
            &added.iter().map(|word| format!(" {}", quoted(word))).collect::<String>(),
        );
        for ((word, before), now) in launch.iter().zip(&known).zip(words).rev() {
            if before != now {
                text.replace_range(word.span.start..word.span.end, &quoted(now));
            }
        }
        let mut command = self.shell.clone();
        command.extend([OsString::from("-c"), text.into()]);
        command.extend(self.after.iter().cloned());
        command
    }

    /// A file that it names: from here, else from where it stands.
    pub(crate) fn find(&self, name: &str) -> PathBuf {
        let here = PathBuf::from(name);
        let beside = || Some(self.file.as_deref()?.parent()?.join(name));
        if here.exists() { here } else { beside().filter(|path| path.exists()).unwrap_or(here) }
    }
}

/// A word as a shell reads it back. No word of a command holds what cannot be quoted, a NUL.
fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    shlex::try_quote(&word).map_or_else(|_| word.clone().into_owned(), |word| word.into_owned())
}

/// What the first line of a script asks for, if that is a shell.
fn interpreter(text: &str) -> Option<Vec<OsString>> {
    let words = shlex::split(text.strip_prefix("#!")?.lines().next()?)?;
    let is_shell = |word: &String| {
        let name = Path::new(word).file_name().and_then(OsStr::to_str);
        name.is_some_and(|name| SHELLS.contains(&name))
    };
    words.iter().any(is_shell).then(|| words.into_iter().map(OsString::from).collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    use zeropilot_job as job;

    use super::*;

    /// What bash makes of the script with the config exchanged and an option added.
    fn changed(text: &str, command: &[&str]) -> Vec<String> {
        let command: Vec<OsString> = command.iter().map(OsString::from).collect();
        let script = ShellScript::of(&command).expect("a script");
        assert_eq!(script.text, text);
        let job = job::read(&script.text, &script.outside(), &|_| None);
        let launch = &job.launches[0].words;
        let mut words = script.words(launch);
        for word in &mut words {
            if word == "ds.json" {
                *word = "a fallback.json".into();
            }
        }
        words.push("--resume=it's".into());
        let command = script.with(launch, &words);
        let ran = Command::new(&command[0]).args(&command[1..]).output().expect("a shell");
        let written = String::from_utf8(ran.stdout).expect("text");
        written.lines().map(str::to_owned).collect()
    }

    /// A function stands for the launcher: it prints its arguments, one in a line.
    const TEXT: &str = "#!/usr/bin/env bash\nCONFIG=ds.json\ndeepspeed() { printf '%s\\n' \"$0\" \"$@\"; }\n\
        deepspeed --num_gpus \"$1\" \\\n  train.py --deepspeed $CONFIG --text 'two  words' | cat  # ds.json\n";

    #[test]
    fn a_changed_launch_is_run_by_the_shell_and_the_rest_stays_as_it_was() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("train.sh");
        fs::write(&file, TEXT).expect("written");
        let name = file.to_str().expect("text");
        let rest = [
            "--num_gpus",
            "2",
            "train.py",
            "--deepspeed",
            "a fallback.json",
            "--text",
            "two  words",
            "--resume=it's",
        ];
        let expected: Vec<&str> = std::iter::once(name).chain(rest).collect();
        assert_eq!(changed(TEXT, &["bash", "-e", name, "2"]), expected);
        assert_eq!(changed(TEXT, &["bash", "-c", TEXT, name, "2"]), expected);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("set");
        assert_eq!(changed(TEXT, &[name, "2"]), expected);
        assert_eq!(fs::read_to_string(&file).expect("text"), TEXT);
    }

    #[test]
    fn a_program_is_no_script() {
        let of = |words: &[&str]| {
            ShellScript::of(&words.iter().map(OsString::from).collect::<Vec<_>>()).is_some()
        };
        assert!(!of(&["torchrun", "train.py"]));
        assert!(!of(&["bash", "no such file"]));
        assert!(!of(&["bash"]));
        assert!(!of(&["/bin/ls"]));
    }
}
