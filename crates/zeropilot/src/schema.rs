//! `zeropilot schema`: the config language as JSON Schema.

use clap::Args;
use zeropilot_text::Language;
use zeropilot_view::json_schema;
use zeropilot_view::talk::{self, VersionSource};

use crate::engine_version;
use crate::exit_status::ExitStatus;
use crate::options::GlobalOptions;
use crate::output::Output;

pub(crate) const EXAMPLES: &str = "\
Examples:
  zeropilot schema > deepspeed.schema.json
  zeropilot schema --deepspeed-version 0.16.9 --lang en

Descriptions are in both languages unless --lang names one.

Exit codes: 0 schema written, 2 invalid DeepSpeed version";

/// The arguments of `zeropilot schema`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SchemaCommand {
    /// Describe the config of this DeepSpeed version; if omitted, the installed version, or the newest known version
    #[arg(long, value_name = "VERSION", visible_alias = "engine")]
    pub(crate) deepspeed_version: Option<String>,
}

/// Writes the schema. An editor's user may read either language, so both stand in it unless one is named.
pub(crate) fn run(
    command: &SchemaCommand,
    global: &GlobalOptions,
    language: Language,
) -> ExitStatus {
    let mut output = Output::new(false);
    let version = match engine_version::choose(command.deepspeed_version.as_deref()) {
        Ok((version, source)) => {
            if let (VersionSource::Given(_), false) = (&source, global.quiet) {
                talk::version_note(version, &source, language)
                    .iter()
                    .for_each(|note| output.say(note));
            }
            version
        }
        Err(error) => {
            output.say(&talk::unknown_version(&error, language));
            return ExitStatus::Failure;
        }
    };
    let languages: &[Language] = match global.lang {
        Some(_) => &[language],
        None => &[Language::English, Language::Chinese],
    };
    output.result(&format!("{:#}\n", json_schema(version, languages)));
    output.flush();
    ExitStatus::Clean
}
