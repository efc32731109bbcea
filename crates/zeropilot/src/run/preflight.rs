//! The check before the start: the command, the config it points to, this machine, and its memory.

use std::ffi::OsString;
use std::path::Path;

use serde_json::{Map, Value};
use zeropilot_job::Outside;
use zeropilot_job::local::Places;
use zeropilot_lint::job as lint;
use zeropilot_lint::{Settings, Severity, Verdict, check};
use zeropilot_record::RunEvent;
use zeropilot_run::environment::without_secrets;
use zeropilot_run::{Observer as _, Recorder, RunCommand, ShellScript, line};
use zeropilot_view::{Format, Layout, Summary, doctor as words, run};

use super::forecast::Forecaster;
use super::machine;
use super::screen::Screen;
use crate::files::Input;
use crate::job;
use crate::manner::Manner;
use crate::project::Found;

pub(super) struct Preflight<'a> {
    pub(super) command: &'a RunCommand,
    pub(super) settings: &'a Settings,
    pub(super) layout: &'a Layout,
    pub(super) forecaster: &'a Forecaster,
}

impl Preflight<'_> {
    /// Whether nothing was found that cannot work. What was found is said.
    pub(super) fn passes(&self, screen: &Screen, recorder: &Recorder) -> bool {
        // All are said, whichever of them stops the run.
        let is_there = self.is_there(screen);
        let is_right = self.is_right(screen, recorder);
        let is_able = self.is_able(screen);
        let has_room = self.has_room(screen);
        is_there && is_right && is_able && has_room
    }

    /// Whether there is a program to start.
    fn is_there(&self, screen: &Screen) -> bool {
        let missing = self.command.missing_program();
        if let Some(program) = missing {
            screen.talk(&run::no_program(program, self.layout.language));
        }
        missing.is_none()
    }

    /// Whether this machine has what the run cannot do without.
    fn is_able(&self, screen: &Screen) -> bool {
        let lacking = machine::lacks(self.command, self.layout.language);
        if !lacking.is_empty() {
            screen.talk(words::lacking(&lacking, self.layout).trim_end());
        }
        lacking.iter().all(|finding| finding.severity != Severity::Error)
    }

    /// Whether the model can fit into what is free here.
    fn has_room(&self, screen: &Screen) -> bool {
        let room = self
            .command
            .read_config()
            .and_then(|config| self.forecaster.room(&config, self.command.batch()));
        let Some((happening, is_sure)) = room else { return true };
        screen.happened(happening);
        !is_sure
    }

    fn is_right(&self, screen: &Screen, recorder: &Recorder) -> bool {
        let shown = without_secrets(&self.command.given);
        let shown: Vec<OsString> = shown.into_iter().map(OsString::from).collect();
        let text = line(&shown) + "\n";
        let Ok(written) = recorder.write("command.sh", &text) else { return true };
        if self.command.launches != 1 {
            screen.talk(&run::launches(self.command.launches, self.layout.language));
        }
        let script = self.command.script.as_ref();
        let path = script.and_then(|script| script.file.clone()).unwrap_or(written);
        let outside = script.map(ShellScript::outside).unwrap_or_default();
        let layout = Layout { quiet: true, ..*self.layout };
        let input = Input::Found(path.clone());
        let Ok(bytes) = input.read() else { return true };
        let script = String::from_utf8_lossy(&bytes);
        let places = Places::of(&script, &outside, path.parent().unwrap_or(Path::new("")));
        let judged = lint::judge(&script, &outside, self.settings, &|name| places.read(name));
        let found = Found::default();
        let told = |layout: &Layout| {
            let manner = Manner::telling_everything(*layout, self.settings.clone(), &found);
            job::pieces(&judged, &[], (&input, &places), self.settings, &manner)
        };
        let pieces = told(&layout);
        let words: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
        let mut summary = Summary::default();
        pieces.iter().for_each(|piece| summary.add(&piece.summary));
        let (errors, warnings) = (summary.errors, summary.warnings);
        let has_findings = errors + warnings > 0;
        let plain = Layout { format: Format::Concise, color: false, ..layout };
        let lines = if has_findings { told(&plain) } else { Vec::new() };
        let findings = lines.iter().flat_map(|piece| piece.text.lines()).map(str::to_owned);
        screen.happened(RunEvent::Preflight { errors, warnings, findings: findings.collect() });
        if has_findings {
            screen.talk(words.trim_end());
        }
        if errors > 0 && !judged.is_certain_to_fail {
            screen.talk(&run::starts_anyway(self.layout.language));
        }
        !judged.is_certain_to_fail
    }

    /// Whether the engine would take a config in this job.
    pub(super) fn accepts(&self, config: &Map<String, Value>) -> bool {
        let text = Value::Object(config.clone()).to_string();
        check(text.as_bytes(), &self.of_job()).verdict == Verdict::Accept
    }

    fn of_job(&self) -> Settings {
        let text = line(&self.command.words);
        let job = zeropilot_job::read(&text, &Outside::default(), &|name| {
            std::fs::read_to_string(name).ok()
        });
        match job.launches.first() {
            Some(launch) => lint::settings(launch, self.settings),
            None => self.settings.clone(),
        }
    }
}
