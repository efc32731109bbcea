//! `zeropilot schema`: the config language as JSON Schema.

use zeropilot_lint::Language;
use zeropilot_view::json_schema;
use zeropilot_view::talk::{self, VersionSource};

use crate::cli::{GlobalOptions, SchemaCommand};
use crate::engine_version;
use crate::exit_status::ExitStatus;
use crate::output::Output;

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
