//! What a training program is told: by files that its launcher reads, and on the command line.

use zeropilot_config::front_end::FrontEnd;

use crate::arguments::ACCELERATE_SECTION;
use crate::directory::Directory;
use crate::launch::Launch;
use crate::launcher::{Launcher, flags};
use crate::place::{Named, Place};
use crate::script::Files;
use crate::shell::Word;
use crate::yaml;

impl Launch {
    /// Files in YAML that the launcher or the front end reads before the training script does.
    pub(super) fn read_yaml(&mut self, script: &[Word], directory: &Directory, files: Files<'_>) {
        let named = match self.launcher {
            Launcher::Accelerate => self.option("config_file").cloned(),
            Launcher::LlamaFactory | Launcher::Axolotl => script.first().cloned(),
            Launcher::Swift => script.first().filter(|word| is_settings(word)).cloned(),
            _ => None,
        };
        self.read_yaml_file(named.as_ref(), directory, files);
        let parses = |name: &str| files(name).is_some_and(|text| text.contains("TrlParser"));
        // TRL's parser takes defaults from a file.
        if self.program.as_deref().is_some_and(parses) {
            let flags = flags(script);
            let config = flags.iter().rev().find(|(name, _)| name == "config");
            let settings = config.map(|(_, word)| word).filter(|word| is_settings(word));
            self.read_yaml_file(settings, directory, files);
        }
        // The trainer has a file of its own, whoever starts it.
        if self.program.as_deref() == Some("axolotl.cli.train") {
            self.launcher_is_axolotl = true;
            self.read_yaml_file(script.first(), directory, files);
        }
        if self.launcher == Launcher::LlamaFactory || self.is_axolotl() {
            self.given.front_end = Some(FrontEnd::HfTrainer);
        }
    }

    /// Whether axolotl runs the training loop, whoever starts it.
    pub fn is_axolotl(&self) -> bool {
        self.launcher == Launcher::Axolotl || self.launcher_is_axolotl
    }

    fn read_yaml_file(&mut self, named: Option<&Word>, directory: &Directory, files: Files<'_>) {
        let Some((name, span)) = named.and_then(|word| Some((word.text.as_deref()?, word.span)))
        else {
            return;
        };
        let name = &directory.join(name);
        let Some(text) = files(name) else { return };
        for entry in yaml::scalars(&text) {
            let place = Place::in_file(name, entry.span);
            let key = match entry.key.as_str() {
                // ms-swift has configs of its own, by their names.
                "deepspeed" if self.launcher == Launcher::Swift && !is_file(&entry.value) => {
                    self.given.front_end = Some(FrontEnd::HfTrainer);
                    "deepspeed"
                }
                "deepspeed_config.deepspeed_config_file" | "deepspeed" => {
                    self.given.config = Some(Named { text: Some(entry.value), place });
                    continue;
                }
                other if self.is_axolotl() => yaml::axolotl_argument(other),
                other => other,
            };
            if key == "num_processes" && self.option("num_processes").is_none() {
                let word = Word { text: Some(entry.value.clone()), option: None, span };
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

    pub(super) fn read_arguments(&mut self, script: &[Word]) {
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
                    self.given.is_reader_an_option =
                        self.given.front_end.is_none() && self.launcher != Launcher::Swift;
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
}

fn named(word: Word) -> Named {
    Named { text: word.text, place: Place::here(word.span) }
}

/// Whether a word names a file of settings; ms-swift takes one instead of options.
fn is_settings(word: &Word) -> bool {
    word.text
        .as_deref()
        .is_some_and(|text| [".yaml", ".yml", ".json"].iter().any(|ending| text.ends_with(ending)))
}

/// Whether the value of `--deepspeed` is a file; ms-swift takes the names of its own presets too.
fn is_file(text: &str) -> bool {
    let extension = text.rsplit('.').next().unwrap_or("");
    text.contains('/') || matches!(extension, "json" | "hjson")
}
