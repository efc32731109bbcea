//! `zeropilot new`: from arguments to a config on disk.

pub(crate) mod file;
pub(crate) mod help_zh;
pub(crate) mod knobs;
pub(crate) mod options;
mod request;

use std::path::{Path, PathBuf};

use zeropilot_config::schema::EngineVersion;
use zeropilot_lint::{Language, Report, Settings, Severity, Verdict, check};
use zeropilot_plan::{Preset, Recipe, Tier, Zero};
use zeropilot_view::creation::{self, Created, CreationProblem};
use zeropilot_view::{FileResult, Format, Layout, escaped};

use crate::cli::GlobalOptions;
use crate::color;
use crate::engine_version;
use crate::exit_status::ExitStatus;
use crate::output::Output;
use options::NewCommand;

/// Where a config goes.
enum Place {
    StandardOutput,
    File(PathBuf),
}

/// A config with where it goes.
struct Draft {
    recipe: Recipe,
    tier: Option<Tier>,
    place: Place,
    text: String,
}

/// Why nothing was written.
enum Failure {
    Refused(Vec<zeropilot_plan::Refusal>),
    File(String, CreationProblem),
    /// Something else with its words.
    Said(String),
    /// Our own rules find something in what would be written.
    Findings(String),
}

/// Writes a config and says so.
pub(crate) fn run(command: &NewCommand, global: &GlobalOptions, language: Language) -> ExitStatus {
    let mut output = Output::new(false);
    match make(command, global, language) {
        Ok(drafts) => {
            report(&drafts, command, global, language, &mut output);
            output.flush();
            ExitStatus::Clean
        }
        Err(failure) => {
            explain(failure, command, language, &mut output);
            ExitStatus::Failure
        }
    }
}

fn make(
    command: &NewCommand,
    global: &GlobalOptions,
    language: Language,
) -> Result<Vec<Draft>, Failure> {
    let (version, _) = engine_version::choose(command.deepspeed_version.as_deref())
        .map_err(|error| Failure::Said(format!("error: {}", escaped(&error.to_string()))))?;
    let request = request::from(command, language)?;
    let recipe = request.recipe().map_err(Failure::Refused)?;
    let drafts = drafts(recipe, command)?;
    for draft in &drafts {
        let name = draft.place.name();
        self_check(draft, &name, version, global, language).map_err(Failure::Findings)?;
    }
    write(&drafts, command.force)?;
    Ok(drafts)
}

fn drafts(recipe: Recipe, command: &NewCommand) -> Result<Vec<Draft>, Failure> {
    let output = command.output.clone().unwrap_or_else(|| default_name(&recipe));
    let is_stdout = output == Path::new("-");
    let draft = |recipe: Recipe, tier: Option<Tier>, place| {
        // Text keys only, so that it cannot fail.
        let text = serde_json::to_string_pretty(&recipe.config()).unwrap_or_default() + "\n";
        Draft { recipe, tier, place, text }
    };
    if !command.tiers {
        let place = if is_stdout { Place::StandardOutput } else { Place::File(output) };
        return Ok(vec![draft(recipe, None, place)]);
    }
    if is_stdout && !command.json {
        return Err(Failure::File("-".to_owned(), CreationProblem::TiersOnStandardOutput));
    }
    let place = |tier: Tier| match is_stdout {
        true => Place::StandardOutput,
        false => Place::File(tier_name(&output, tier)),
    };
    Ok(Tier::ALL.map(|tier| draft(recipe.tier(tier), Some(tier), place(tier))).into())
}

/// The preset's name, as people call their files.
fn default_name(recipe: &Recipe) -> PathBuf {
    let offload = recipe.zero.optimizer_offload().map(|offload| offload.device());
    let preset = Preset::ALL
        .into_iter()
        .find(|preset| (preset.stage(), preset.offload()) == (recipe.zero.stage(), offload));
    let name = match (preset, &recipe.zero) {
        (Some(preset), _) => preset.name().to_owned(),
        (None, Zero::Stage0) => "zero0".to_owned(),
        (None, zero) => format!("zero{}_offload", zero.stage().number()),
    };
    PathBuf::from(format!("ds_{name}.json"))
}

/// `ds.json` becomes `ds_small.json`.
fn tier_name(path: &Path, tier: Tier) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map(|extension| format!(".{}", extension.to_string_lossy()));
    path.with_file_name(format!("{stem}_{}{}", tier.name(), extension.unwrap_or_default()))
}

impl Place {
    fn name(&self) -> String {
        match self {
            Self::StandardOutput => "-".to_owned(),
            Self::File(path) => path.to_string_lossy().into_owned(),
        }
    }
}

/// What is written must pass `zeropilot check`, for this engine and this program. What cannot be known before is
/// a key the named engine does not have.
fn self_check(
    draft: &Draft,
    name: &str,
    version: EngineVersion,
    global: &GlobalOptions,
    language: Language,
) -> Result<(), String> {
    let settings = Settings {
        version,
        world_size: draft.recipe.batch.world.and_then(|world| usize::try_from(world.get()).ok()),
        front_end: Some(draft.recipe.target.front_end()),
        ..Settings::default()
    };
    let report: Report = check(draft.text.as_bytes(), &settings);
    let is_wrong = |severity| matches!(severity, Severity::Error | Severity::Warning);
    let is_clean = report.verdict == Verdict::Accept
        && !report.diagnostics.iter().any(|found| is_wrong(found.severity));
    if is_clean {
        return Ok(());
    }
    let layout = Layout {
        format: Format::Human,
        language,
        color: color::for_stdout(global.color),
        width: None,
        quiet: false,
    };
    let bytes = draft.text.as_bytes();
    Err(layout.file(&FileResult { name, bytes, report: &report, is_named: true, headline: None }))
}

/// All files or none, as far as a file system can promise that.
fn write(drafts: &[Draft], force: bool) -> Result<(), Failure> {
    let failure = |place: &Place| {
        let name = place.name();
        move |problem| Failure::File(name, problem)
    };
    let mut pending = Vec::new();
    for Draft { place, text, .. } in drafts {
        if let Place::File(path) = place {
            pending.push((place, file::prepare(path, text, force).map_err(failure(place))?));
        }
    }
    for (place, pending) in pending {
        pending.publish(force).map_err(failure(place))?;
    }
    Ok(())
}

fn report(
    drafts: &[Draft],
    command: &NewCommand,
    global: &GlobalOptions,
    language: Language,
    output: &mut Output,
) {
    let names: Vec<Option<String>> = drafts
        .iter()
        .map(|draft| match &draft.place {
            Place::StandardOutput => None,
            Place::File(_) => Some(draft.place.name()),
        })
        .collect();
    let created: Vec<Created<'_>> = drafts
        .iter()
        .zip(&names)
        .map(|(draft, name)| Created {
            recipe: &draft.recipe,
            path: name.as_deref(),
            tier: draft.tier,
            model: command.model.as_deref(),
        })
        .collect();
    let is_stdout = names.iter().any(Option::is_none);
    if command.json {
        output.result(&creation::json(&created));
    } else if is_stdout {
        drafts.iter().for_each(|draft| output.result(&draft.text));
        if !global.quiet {
            output.say(creation::words(&created, language).trim_matches('\n'));
        }
    } else if !global.quiet {
        output.result(&creation::words(&created, language));
    }
}

fn explain(failure: Failure, command: &NewCommand, language: Language, output: &mut Output) {
    let words = match failure {
        Failure::Refused(refusals) if command.json => {
            output.result(&creation::refusals_json(&refusals, language));
            output.flush();
            return;
        }
        Failure::Refused(refusals) => creation::refusals(&refusals, language),
        Failure::File(name, problem) => problem.words(&name, language),
        Failure::Said(words) => words,
        Failure::Findings(findings) => format!("{findings}{}", creation::not_written(language)),
    };
    output.say(words.trim_end());
}
