//! All inputs of a check, one after the other or side by side: results written in order, each once.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::Path;
use std::slice;

use rayon::prelude::*;
use zeropilot_config::schema::EngineVersion;
use zeropilot_job::local::own_name;
use zeropilot_job::{FileKind, Outside};
use zeropilot_lint::project::FailOn;
use zeropilot_lint::recognition::{has_name_of_config, may_be_config};
use zeropilot_lint::{Outcome, Settings};
use zeropilot_view::job::kind as kind_words;
use zeropilot_view::talk::{self, InputProblem};
use zeropilot_view::{FileResult, Summary};

use crate::adoption::Seen;
use crate::exit_status::ExitStatus;
use crate::files::{self, Collected, Input};
use crate::job;
use crate::manner::Manner;
use crate::mend::{self, Mode};
use crate::output::Output;
use crate::piece::{Piece, Shared};
use crate::progress::Progress;

/// Files checked before their results are written.
const CHUNK: usize = 512;
/// Fewer files than this are not worth waking other threads for.
const WORTH_THREADS: usize = 16;

/// A check of many inputs, whose results are written as they come.
pub(crate) struct Session<'a> {
    manner: &'a Manner<'a>,
    output: Output,
    summary: Summary,
    has_written: bool,
    has_failed: bool,
    progress: Progress,
    /// What was said of files that several scripts name.
    told: HashSet<(String, String)>,
    /// What was found in them.
    found_before: HashSet<(String, (Outcome, String))>,
    /// All findings, where a baseline is read or written.
    seen: Seen,
}

/// What became of an input.
type Checked = Result<Vec<Piece>, (String, InputProblem)>;

impl<'a> Session<'a> {
    /// Nothing checked yet.
    pub(crate) fn new(manner: &'a Manner<'a>, output: Output, progress: Progress) -> Self {
        Self {
            manner,
            output,
            summary: Summary::default(),
            has_written: false,
            has_failed: false,
            progress,
            told: HashSet::new(),
            found_before: HashSet::new(),
            seen: Seen::default(),
        }
    }

    /// Checks everything.
    pub(crate) fn check_all(&mut self, mut inputs: impl Iterator<Item = Collected>) {
        if self.is_telling() {
            let opening = self.manner.layout.opening();
            self.output.result(&opening);
        }
        loop {
            let chunk: Vec<Collected> = inputs.by_ref().take(CHUNK).collect();
            if chunk.is_empty() || self.output.is_closed() {
                break;
            }
            let manner = self.manner;
            let one = |input: Collected| {
                let input = input?;
                let settings = match input.path() {
                    Some(path) => manner.found.settings(path, &manner.settings),
                    None => Cow::Borrowed(&manner.settings),
                };
                check_one(&input, &settings, manner)
            };
            // Several scripts may point to one config, which is mended once.
            let in_turn = chunk.len() < WORTH_THREADS || manner.mode != Mode::Tell;
            let results: Vec<Checked> = if in_turn {
                chunk.into_iter().map(one).collect()
            } else {
                chunk.into_par_iter().map(one).collect()
            };
            for result in results {
                self.write(result);
            }
            self.progress.done(self.summary.files);
        }
    }

    fn write(&mut self, result: Checked) {
        match result {
            Ok(pieces) => pieces.into_iter().for_each(|piece| self.write_piece(piece)),
            Err((name, problem)) => {
                self.has_failed = true;
                self.output.say(&problem.words(&name, self.manner.layout.language));
            }
        }
    }

    /// Writes a result, unless the same was said of the same file before.
    fn write_piece(&mut self, piece: Piece) {
        let Piece { shared, mut text, summary, seen } = piece;
        self.seen.add(seen);
        let mut is_new = true;
        if let Some(Shared { file, findings, repeated }) = shared {
            if !self.told.insert((file.clone(), text.clone())) {
                return;
            }
            is_new = self.found_before.insert((file, findings));
            if !is_new {
                text = repeated;
            }
        }
        if is_new {
            self.summary.add(&summary);
        }
        if text.is_empty() || !self.manner.adoption.is_telling() {
            return;
        }
        if self.has_written {
            self.output.result(self.manner.layout.separator());
        }
        self.has_written = true;
        self.output.result(&text);
    }

    /// Whether findings are shown, rather than what fixes would change or nothing.
    fn is_telling(&self) -> bool {
        !self.is_patch() && self.manner.adoption.is_telling()
    }

    fn is_patch(&self) -> bool {
        matches!(self.manner.mode, Mode::Diff { .. })
    }

    /// Says what remains to be said, and how it ended.
    pub(crate) fn finish(mut self, talks: bool) -> ExitStatus {
        self.progress.finish();
        let Manner { layout, settings, adoption, fail_on, .. } = self.manner;
        let language = layout.language;
        if self.is_telling() {
            let closing = layout.closing(&self.summary);
            self.output.result(&closing);
        }
        self.output.flush();
        if talks && self.is_patch() {
            self.output.say(&talk::would_mend(&self.summary, language));
        }
        let needs_ranks = settings.world_size.is_none() && self.summary.without_world_size > 0;
        if talks && needs_ranks && adoption.is_telling() {
            self.output.say(talk::world_size_note(language));
        }
        match adoption.finish(&self.seen, &settings.selection, language) {
            Ok(words) => {
                if let Some(words) = words.filter(|_| talks) {
                    self.output.say(&words);
                }
            }
            Err(words) => {
                self.has_failed = true;
                self.output.say(&words);
            }
        }
        let is_found = match (self.is_patch(), fail_on) {
            (true, _) => self.summary.mended > 0,
            (false, FailOn::Severity(mildest)) => self.summary.has_findings(*mildest),
            (false, FailOn::Never) => false,
        };
        match (self.has_failed, is_found && adoption.is_telling()) {
            (true, _) => ExitStatus::Failure,
            (false, true) => ExitStatus::Findings,
            (false, false) => ExitStatus::Clean,
        }
    }
}

fn check_one(input: &Input, settings: &Settings, manner: &Manner<'_>) -> Checked {
    let (layout, mode) = (&manner.layout, manner.mode);
    let name = input.name();
    let bytes = match input.read() {
        Ok(bytes) => bytes,
        Err(problem) => return Err((name, problem)),
    };
    let text = String::from_utf8_lossy(&bytes);
    let kind = FileKind::of(&name, &text);
    if let Some((path, script)) = input.path().zip(script(input, kind, &text)) {
        let outside: Outside = own_name(path).into_iter().collect();
        return job::check_script(input, (path, &script), settings, &outside, manner)
            .map_err(|problem| (name, problem));
    }
    if input.path().is_some() && !is_config(input, &name, &text, kind) {
        return match input.is_named() {
            true => Err((name, InputProblem::NotAConfig(kind_words(kind)))),
            false => {
                let summary = Summary { others: 1, ..Summary::default() };
                Ok(vec![Piece {
                    shared: None,
                    text: String::new(),
                    summary,
                    seen: Seen::default(),
                }])
            }
        };
    }
    drop(text);
    let judged = mend::judge(bytes, input.path(), &name, slice::from_ref(settings), mode);
    let mut judged = match judged {
        Ok(judged) => judged,
        Err(problem) => return Err((name, problem)),
    };
    let path = Path::new(&name);
    manner.found.adapt(path, &mut judged.report);
    let seen = manner.adoption.apply(path, &judged.bytes, &mut judged.report);
    let mut summary = Summary::default();
    summary.count(&judged.report);
    if let Mode::Diff { .. } = mode {
        let text = judged.diff.unwrap_or_default();
        return Ok(vec![Piece { shared: None, text, summary, seen }]);
    }
    let file = FileResult {
        name: &name,
        bytes: &judged.bytes,
        report: &judged.report,
        is_named: input.is_named(),
        headline: None,
    };
    Ok(vec![Piece { shared: None, text: layout.file(&file), summary, seen }])
}

/// The launch script that an input is, or the command that starts training with it.
fn script(input: &Input, kind: FileKind, text: &str) -> Option<String> {
    if input.path().is_some_and(files::is_script) {
        return Some(text.to_owned());
    }
    kind.command(&input.name()).filter(|_| input.is_named())
}

/// Whether a file is judged as a DeepSpeed config: it says so by its name or its keys, or it may be one that cannot
/// be read. What belongs to a model never is.
fn is_config(input: &Input, name: &str, text: &str, kind: FileKind) -> bool {
    match kind {
        FileKind::DeepSpeedConfig => true,
        FileKind::ModelConfig | FileKind::BesideModel => false,
        // What a program has in YAML reads like Hjson.
        _ if is_prose(name) && !text.trim_start().starts_with('{') => false,
        _ => {
            has_name_of_config(name)
                || may_be_config(text)
                || (input.is_named() && has_only_known_keys(name, text))
        }
    }
}

/// Whether a file is by its name nothing that DeepSpeed reads.
fn is_prose(name: &str) -> bool {
    let ending = Path::new(name).extension().and_then(OsStr::to_str).unwrap_or_default();
    matches!(ending, "yaml" | "yml" | "toml" | "md" | "txt")
}

/// JSON, readable or not, in which nothing is foreign to DeepSpeed.
fn has_only_known_keys(name: &str, text: &str) -> bool {
    if is_prose(name) {
        return text.trim_start().starts_with('{');
    }
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(serde_json::Value::Object(members)) => {
            let schema = EngineVersion::NEWEST.schema();
            let is_known = |key: &String| {
                schema.keys.iter().any(|known| known.path.split('.').next() == Some(key.as_str()))
            };
            members.keys().all(is_known)
        }
        Ok(_) => false,
        Err(_) => true,
    }
}
