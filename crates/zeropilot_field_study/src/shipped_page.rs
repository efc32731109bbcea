//! What projects ship, as a section of the page.

use zeropilot_config::schema::EngineVersion;
use zeropilot_lint::Severity;

use crate::shipped::{Found, Preset, Project};

/// The section.
pub(crate) fn section(shipped: &[(Project, Vec<Preset>)]) -> String {
    let counts: Vec<String> =
        shipped.iter().map(|(project, presets)| row(project, presets)).collect();
    let reasons: Vec<String> = shipped
        .iter()
        .map(|(project, _)| format!("- {}: {}.", project.name, project.why))
        .collect();
    let presets = shipped.iter().flat_map(|(_, presets)| presets);
    let lines: Vec<String> =
        presets.flat_map(|preset| preset.found.iter().map(|found| line(preset, found))).collect();
    format!(
        "## Configs that projects ship\n\n\
         Some files of the corpus are configs that projects recommend to their users \
         (`knowledge/findings/presets.json`). zeropilot checks each of them as the project reads it:\n\n{}\n\n\
         | project | files | with an error | with a warning | with a silent no-op | with a silent no-op other than K26 |\n\
         | --- | ---: | ---: | ---: | ---: | ---: |\n{}\n\n\
         The table lists every error and warning, with the DeepSpeed versions from {} to {} that it applies to:\n\n\
         | repository, commit and path | rule | problem | DeepSpeed versions |\n| --- | --- | --- | --- |\n{}\n\n\
         We tested every error of this table separately with DeepSpeed {}. If the file has only this error, \
         DeepSpeed rejects the file. Without this error, DeepSpeed accepts it.\n\n",
        reasons.join("\n"),
        counts.join("\n"),
        EngineVersion::all().next().map_or("", EngineVersion::name),
        EngineVersion::NEWEST,
        lines.join("\n"),
        EngineVersion::NEWEST,
    )
}

fn row(project: &Project, presets: &[Preset]) -> String {
    let count = |holds: &dyn Fn(&Preset) -> bool| presets.iter().filter(|one| holds(one)).count();
    let with = |severity| {
        count(&|preset: &Preset| preset.found.iter().any(|found| found.severity == severity))
    };
    format!(
        "| {} | {} | {} | {} | {} | {} |",
        project.name,
        presets.len(),
        with(Severity::Error),
        with(Severity::Warning),
        count(&|preset| !preset.idle.is_empty()),
        count(&|preset| preset.idle.iter().any(|code| *code != "K26")),
    )
}

fn line(preset: &Preset, found: &Found) -> String {
    let source = &preset.source;
    let commit: String = source.commit.chars().take(8).collect();
    let key = match found.path.to_string() {
        file if file.is_empty() => file,
        key => format!(" `{key}`"),
    };
    format!(
        "| `{}@{commit}:{}` | {} {}{key} | {} | {} |",
        source.repository,
        source.path,
        found.rule,
        found.severity.name(),
        found.message.replace('|', "\\|"),
        engines(&found.versions),
    )
}

/// Which of the known engines: all, or from one on, or each by name.
fn engines(versions: &[EngineVersion]) -> String {
    let all: Vec<EngineVersion> = EngineVersion::all().collect();
    match versions.first() {
        Some(_) if versions == all => "all".to_owned(),
        Some(first) if *first != EngineVersion::NEWEST && all.ends_with(versions) => {
            format!("{first} and newer")
        }
        _ => versions.iter().map(|version| version.name()).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_named_by_the_first_of_them() {
        let all: Vec<EngineVersion> = EngineVersion::all().collect();
        assert_eq!(engines(&all), "all");
        assert_eq!(engines(&all[2..]), "0.16.9 and newer");
        assert_eq!(engines(&all[1..3]), "0.15.4, 0.16.9");
        assert_eq!(engines(&all[5..]), "0.19.8");
    }
}
