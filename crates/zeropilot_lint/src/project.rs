//! What a project says once for all its checks: `zeropilot.toml`, or `[tool.zeropilot]` in
//! `pyproject.toml`.
//!
//! [`read`] takes the text of such a file. Which file it is and what a command line says on top is
//! for whoever asks.

mod level;

use std::ops::Range;

use globset::{GlobBuilder, GlobMatcher};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::nearest::nearest;
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::Span;

use crate::argument::Argument;
use crate::diagnostic::Diagnostic;
use crate::registry::{RULES, nearest_code};
use crate::rule::Severity;
use zeropilot_text::{Language, Text};

pub use level::{Level, Levels};

/// What a project has settled. Everything may be left open.
#[derive(Debug, Clone, Default)]
pub struct Project {
    /// The language to speak.
    pub language: Option<Language>,
    /// The engine to judge for, as written.
    pub deepspeed_version: Option<String>,
    /// Who reads the configs.
    pub front_end: Option<FrontEnd>,
    /// How many ranks there are.
    pub world_size: Option<usize>,
    /// Only these rules are told, if there are any.
    pub select: Vec<String>,
    /// These rules are not told.
    pub ignore: Vec<String>,
    /// The mildest findings that make a check fail.
    pub fail_on: Option<FailOn>,
    /// The file of findings that are not told, from the directory of the settings.
    pub baseline: Option<String>,
    /// What is passed over in directories.
    pub exclude: Vec<PathPattern>,
    /// Rules that are not told about some files.
    pub per_file_ignores: Vec<(PathPattern, Vec<String>)>,
    /// How findings are rated.
    pub severity: Levels,
    /// What holds for some files.
    pub paths: Vec<(PathPattern, PathSettings)>,
}

/// What makes a check fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailOn {
    /// Findings of this severity or a worse one.
    Severity(Severity),
    /// No finding.
    Never,
}

impl FailOn {
    /// All of them with their names.
    pub const ALL: [(&'static str, Self); 4] = [
        ("error", Self::Severity(Severity::Error)),
        ("warning", Self::Severity(Severity::Warning)),
        ("note", Self::Severity(Severity::Note)),
        ("never", Self::Never),
    ];
}

/// What a project settles for some of its files.
#[derive(Debug, Clone, Default)]
pub struct PathSettings {
    /// The engine to judge for.
    pub deepspeed_version: Option<String>,
    /// Who reads them.
    pub front_end: Option<FrontEnd>,
    /// How many ranks there are.
    pub world_size: Option<usize>,
    /// How findings are rated.
    pub severity: Levels,
}

/// Files by their names.
#[derive(Debug, Clone)]
pub struct PathPattern {
    matcher: GlobMatcher,
    /// Whether only the last part of a path is looked at.
    by_name: bool,
}

impl PathPattern {
    fn new(text: &str) -> Option<Self> {
        let text = text.strip_suffix('/').unwrap_or(text);
        let glob = GlobBuilder::new(text).literal_separator(true).build().ok()?;
        Some(Self { matcher: glob.compile_matcher(), by_name: !text.contains('/') })
    }

    /// Whether a file is meant, whose path is relative to the project's.
    pub fn fits(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        self.matcher.is_match(if self.by_name { name } else { path })
    }
}

impl Project {
    /// The rules that are not told about a file, whose path is relative to the project's.
    pub fn ignored_in(&self, path: &str) -> Vec<String> {
        let fitting = self.per_file_ignores.iter().filter(|(pattern, _)| pattern.fits(path));
        fitting.flat_map(|(_, codes)| codes.clone()).collect()
    }

    /// Tells findings in a file as the project rates them. A table for some files decides before the one for all,
    /// and of two such tables the later one.
    pub fn rate(&self, path: &str, found: &mut Vec<Diagnostic>) {
        let fitting = self.paths.iter().rev().filter(|(pattern, _)| pattern.fits(path));
        let tables: Vec<&Levels> =
            fitting.map(|(_, own)| &own.severity).chain([&self.severity]).collect();
        if tables.iter().any(|table| !table.is_empty()) {
            level::rate(found, |code| tables.iter().find_map(|table| table.of(code)));
        }
    }

    /// The codes of rules that are told about no file.
    pub fn off_everywhere(&self) -> Vec<String> {
        let is_rated =
            |code: &str| self.paths.iter().any(|(_, own)| own.severity.of(code).is_some());
        self.severity.off().filter(|code| !is_rated(code)).map(str::to_owned).collect()
    }

    /// What holds for a file beside the ratings. Of two patterns that both fit, the later one decides.
    pub fn at(&self, path: &str) -> PathSettings {
        let mut all = PathSettings::default();
        for (_, one) in self.paths.iter().filter(|(pattern, _)| pattern.fits(path)) {
            all.deepspeed_version = one.deepspeed_version.clone().or(all.deepspeed_version);
            all.front_end = one.front_end.or(all.front_end);
            all.world_size = one.world_size.or(all.world_size);
        }
        all
    }

    /// Whether a file, or a directory that holds it, is passed over.
    pub fn excludes(&self, path: &str) -> bool {
        let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
        let mut parts = ends.filter_map(|end| path.get(..end));
        parts.any(|part| self.exclude.iter().any(|pattern| pattern.fits(part)))
    }
}

/// Which of the two files a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectFile {
    /// `zeropilot.toml`.
    Own,
    /// `pyproject.toml`, of which only `[tool.zeropilot]` counts.
    Pyproject,
}

impl ProjectFile {
    /// Both, the one that comes first first.
    pub const ALL: [Self; 2] = [Self::Own, Self::Pyproject];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => "zeropilot.toml",
            Self::Pyproject => "pyproject.toml",
        }
    }
}

/// Something in the file that cannot be used.
#[derive(Debug, Clone)]
pub struct ProjectProblem {
    /// Where it stands.
    pub span: Span,
    message: Text,
    help: Text,
    arguments: Vec<(&'static str, Argument)>,
}

impl ProjectProblem {
    fn new(span: Range<usize>, message: Text, help: Text) -> Self {
        let span = Span::new(span.start, span.end);
        Self { span, message, help, arguments: Vec::new() }
    }

    fn with(mut self, name: &'static str, argument: impl Into<Argument>) -> Self {
        self.arguments.push((name, argument.into()));
        self
    }

    /// What is wrong.
    pub fn message(&self, language: Language) -> String {
        self.message.fill(language, &self.arguments)
    }

    /// What to do.
    pub fn help(&self, language: Language) -> String {
        self.help.fill(language, &self.arguments)
    }
}

const KEYS: [&str; 12] = [
    "language",
    "deepspeed-version",
    "front-end",
    "world-size",
    "select",
    "ignore",
    "fail-on",
    "baseline",
    "exclude",
    "per-file-ignores",
    "severity",
    "paths",
];

const PATH_KEYS: [&str; 4] = ["deepspeed-version", "front-end", "world-size", "severity"];

const FILES: Text =
    Text::new("this must be a table with file names as keys", "只能是以文件名为键的表");
const SETTINGS: Text = Text::new(
    "the settings of a file name pattern must be a table",
    "文件名模式的设置只能是一个表",
);

/// Reads a file. `None` if it says nothing about this program.
pub fn read(text: &str, file: ProjectFile) -> Result<Option<Project>, Vec<ProjectProblem>> {
    let root = match DeTable::parse(text) {
        Ok(root) => root,
        // The file of another program is that program's business.
        Err(_) if file == ProjectFile::Pyproject && !text.contains("tool.zeropilot") => {
            return Ok(None);
        }
        Err(error) => {
            let span = error.span().unwrap_or(0..0);
            let problem = ProjectProblem::new(
                span,
                Text::new("this is not valid TOML: {reason}", "不是合法的 TOML：{reason}"),
                Text::new("correct the syntax", "改正语法"),
            );
            return Err(vec![problem.with("reason", error.message())]);
        }
    };
    let table = match file {
        ProjectFile::Own => root.get_ref(),
        ProjectFile::Pyproject => {
            let tool = root.get_ref().get("tool").and_then(|tool| tool.get_ref().as_table());
            match tool.and_then(|tool| tool.get("zeropilot")).map(Spanned::get_ref) {
                Some(DeValue::Table(table)) => table,
                _ => return Ok(None),
            }
        }
    };
    let mut reader = Reader::default();
    for (key, value) in table {
        reader.key(key.get_ref(), key.span(), value);
    }
    if reader.problems.is_empty() { Ok(Some(reader.project)) } else { Err(reader.problems) }
}

#[derive(Default)]
struct Reader {
    project: Project,
    problems: Vec<ProjectProblem>,
}

type Value<'a> = Spanned<DeValue<'a>>;

impl Reader {
    fn key(&mut self, key: &str, span: Range<usize>, value: &Value<'_>) {
        match key {
            "language" => {
                let known = [("en", Language::English), ("zh", Language::Chinese)];
                self.project.language = self.one_of(value, &known);
            }
            "front-end" => self.project.front_end = self.front_end(value),
            "deepspeed-version" => self.project.deepspeed_version = self.version(value),
            "world-size" => self.project.world_size = self.ranks(value),
            "select" => self.project.select = self.codes(value),
            "ignore" => self.project.ignore = self.codes(value),
            "fail-on" => self.project.fail_on = self.one_of(value, &FailOn::ALL),
            "baseline" => self.project.baseline = self.file_name(value),
            "exclude" => self.project.exclude = self.excluded(value),
            "per-file-ignores" => self.files(value),
            "severity" => self.project.severity = self.levels(value),
            "paths" => self.paths(value),
            _ => self.unknown(key, span, &KEYS),
        }
    }

    fn unknown(&mut self, key: &str, span: Range<usize>, known: &[&str]) {
        let meant = nearest(key, known.iter().copied()).or_else(|| {
            known.iter().find(|known| known.replace('-', "_") == key).map(|k| (*k).into())
        });
        let message = match meant {
            Some(_) => Text::new(
                "there is no setting `{key}`; did you mean `{meant}`?",
                "没有 `{key}` 这个设置，是不是想写 `{meant}`？",
            ),
            None => Text::new("there is no setting `{key}`", "没有 `{key}` 这个设置"),
        };
        let help = Text::new("use one of these settings: {known}", "可用的设置有 {known}");
        self.problems.push(
            ProjectProblem::new(span, message, help)
                .with("key", key)
                .with("meant", meant.unwrap_or_default())
                .with(
                    "known",
                    Argument::Words(known.iter().map(|key| (*key).to_owned()).collect()),
                ),
        );
    }

    fn one_of<T: Copy>(&mut self, value: &Value<'_>, known: &[(&str, T)]) -> Option<T> {
        let text = value.get_ref().as_str();
        if let Some((_, found)) = known.iter().find(|(name, _)| Some(*name) == text) {
            return Some(*found);
        }
        let names = known.iter().map(|(name, _)| (*name).to_owned()).collect();
        let problem = ProjectProblem::new(
            value.span(),
            Text::new("this must be one of {known}", "只能是 {known} 之一"),
            Text::new("write one of these values in quotes", "写其中一个值，加引号"),
        );
        self.problems.push(problem.with("known", Argument::Words(names)));
        None
    }

    fn version(&mut self, value: &Value<'_>) -> Option<String> {
        let text = value.get_ref().as_str();
        if let Some(text) = text.filter(|text| EngineVersion::nearest(text).is_ok()) {
            return Some(text.to_owned());
        }
        let names = EngineVersion::all().map(|version| version.name().to_owned()).collect();
        let problem = ProjectProblem::new(
            value.span(),
            Text::new("this is not a DeepSpeed version", "不是 DeepSpeed 的版本号"),
            Text::new("use one of these versions: {known}", "改用以下版本之一：{known}"),
        );
        self.problems.push(problem.with("known", Argument::Words(names)));
        None
    }

    fn ranks(&mut self, value: &Value<'_>) -> Option<usize> {
        let number = value.get_ref().as_integer().and_then(|number| {
            usize::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok()
        });
        if let Some(number) = number.filter(|number| *number > 0) {
            return Some(number);
        }
        self.problems.push(ProjectProblem::new(
            value.span(),
            Text::new("this must be a positive integer", "只能是正整数"),
            Text::new("write the number of GPUs that the run uses", "写训练的总卡数"),
        ));
        None
    }

    fn codes(&mut self, value: &Value<'_>) -> Vec<String> {
        let DeValue::Array(list) = value.get_ref() else {
            self.problems.push(ProjectProblem::new(
                value.span(),
                Text::new("this must be a list of rule codes", "只能是规则编号的数组"),
                Text::new(
                    "write the codes as a list, such as `[\"K05\", \"O\"]`",
                    "写成数组，例如 `[\"K05\", \"O\"]`",
                ),
            ));
            return Vec::new();
        };
        let each = list
            .iter()
            .filter_map(|code| self.code(code.get_ref().as_str().unwrap_or(""), code.span()));
        each.collect()
    }

    fn code(&mut self, written: &str, span: Range<usize>) -> Option<String> {
        let written = written.trim();
        let code = written.to_uppercase();
        if !code.is_empty() && RULES.iter().any(|rule| rule.code.starts_with(&code)) {
            return Some(code);
        }
        let meant = nearest_code(written);
        let message = match meant {
            Some(_) => Text::new(
                "there is no such rule; did you mean `{meant}`?",
                "没有这条规则，是不是想写 `{meant}`？",
            ),
            None => Text::new("there is no such rule", "没有这条规则"),
        };
        let help = Text::new(
            "run `zeropilot rule --all` to list every rule",
            "用 `zeropilot rule --all` 列出全部规则",
        );
        self.problem(span, message, help, "meant", meant.unwrap_or_default());
        None
    }

    fn problem(
        &mut self,
        span: Range<usize>,
        message: Text,
        help: Text,
        name: &'static str,
        argument: &str,
    ) {
        self.problems.push(ProjectProblem::new(span, message, help).with(name, argument));
    }

    fn files(&mut self, value: &Value<'_>) {
        let DeValue::Table(table) = value.get_ref() else {
            let example = Text::new(
                "write, for example, `\"tests/*.json\" = [\"K01\"]`",
                "参照 `\"tests/*.json\" = [\"K01\"]` 的写法",
            );
            return self.no_table(value, FILES, example);
        };
        for (pattern, codes) in table {
            let Some(pattern) = self.pattern(pattern.get_ref(), pattern.span()) else { continue };
            let codes = self.codes(codes);
            self.project.per_file_ignores.push((pattern, codes));
        }
    }

    fn paths(&mut self, value: &Value<'_>) {
        let example = Text::new(
            "write `[paths.\"trainer/**\"]`, and below it `front-end = \"hf-trainer\"`",
            "写 `[paths.\"trainer/**\"]`，下一行写 `front-end = \"hf-trainer\"`",
        );
        let DeValue::Table(table) = value.get_ref() else {
            return self.no_table(value, FILES, example);
        };
        // The later one decides, so the order of the text counts.
        let mut table: Vec<_> = table.iter().collect();
        table.sort_by_key(|(pattern, _)| pattern.span().start);
        for (pattern, value) in table {
            let Some(pattern) = self.pattern(pattern.get_ref(), pattern.span()) else { continue };
            let DeValue::Table(table) = value.get_ref() else {
                self.no_table(value, SETTINGS, example);
                continue;
            };
            let mut settings = PathSettings::default();
            for (key, value) in table {
                match key.get_ref().as_ref() {
                    "front-end" => settings.front_end = self.front_end(value),
                    "deepspeed-version" => settings.deepspeed_version = self.version(value),
                    "world-size" => settings.world_size = self.ranks(value),
                    "severity" => settings.severity = self.levels(value),
                    other => self.unknown(other, key.span(), &PATH_KEYS),
                }
            }
            self.project.paths.push((pattern, settings));
        }
    }

    fn no_table(&mut self, value: &Value<'_>, message: Text, example: Text) {
        self.problems.push(ProjectProblem::new(value.span(), message, example));
    }

    fn pattern(&mut self, text: &str, span: Range<usize>) -> Option<PathPattern> {
        let pattern = PathPattern::new(text);
        if pattern.is_none() {
            self.problems.push(ProjectProblem::new(
                span,
                Text::new("this is not a valid file name pattern", "不是合法的文件名模式"),
                Text::new(
                    "use `*` within a name, `**` across directories and `[…]` in pairs",
                    "同一级目录内用 `*`，跨目录用 `**`，`[…]` 要成对",
                ),
            ));
        }
        pattern
    }

    fn excluded(&mut self, value: &Value<'_>) -> Vec<PathPattern> {
        let DeValue::Array(list) = value.get_ref() else {
            self.problems.push(ProjectProblem::new(
                value.span(),
                Text::new("this must be a list of file name patterns", "只能是文件名模式的数组"),
                Text::new(
                    "write the patterns as a list, such as `[\"vendor/**\"]`",
                    "写成数组，例如 `[\"vendor/**\"]`",
                ),
            ));
            return Vec::new();
        };
        let text = |one: &Value<'_>| one.get_ref().as_str().unwrap_or("[").to_owned();
        list.iter().filter_map(|one| self.pattern(&text(one), one.span())).collect()
    }

    fn file_name(&mut self, value: &Value<'_>) -> Option<String> {
        let name = value.get_ref().as_str().filter(|name| !name.is_empty()).map(str::to_owned);
        if name.is_none() {
            self.problems.push(ProjectProblem::new(
                value.span(),
                Text::new("this must be a file name", "只能是文件名"),
                Text::new(
                    "name the file written by `zeropilot check --write-baseline`, in quotes",
                    "写 `zeropilot check --write-baseline` 生成的文件名，加引号",
                ),
            ));
        }
        name
    }

    fn front_end(&mut self, value: &Value<'_>) -> Option<FrontEnd> {
        self.one_of(value, &FrontEnd::ALL.map(|front_end| (front_end.name(), front_end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> (String, String) {
        let problems = read(text, ProjectFile::Own).expect_err("a problem");
        let problem = &problems[0];
        let place = problem.span.of(text).unwrap_or("").to_owned();
        (place, problem.message(Language::English))
    }

    #[test]
    fn everything_may_be_settled() {
        let text = "language = \"zh\"\ndeepspeed-version = \"0.16.9\"\nfront-end = \"hf-trainer\"\nworld-size = 8\nselect = [\"k\"]\nignore = [\"K05\"]\n[per-file-ignores]\n\"*.hjson\" = [\"B01\"]\n\"a/**/x.json\" = [\"O\"]\n";
        let project = read(text, ProjectFile::Own).expect("no problem").expect("settings");
        assert_eq!(project.language, Some(Language::Chinese));
        assert_eq!(project.deepspeed_version.as_deref(), Some("0.16.9"));
        assert_eq!(project.front_end, Some(FrontEnd::HfTrainer));
        assert_eq!((project.world_size, project.select), (Some(8), vec!["K".to_owned()]));
        let ignored = |path| {
            let project = read(text, ProjectFile::Own).expect("no problem").expect("settings");
            project.ignored_in(path)
        };
        assert_eq!(ignored("deep/in/y.hjson"), ["B01"]);
        assert_eq!(ignored("a/b/c/x.json"), ["O"]);
        assert_eq!(ignored("b/x.json"), [""; 0]);
    }

    #[test]
    fn some_files_have_settings_of_their_own_and_others_are_passed_over() {
        let text = "fail-on = \"never\"\nbaseline = \"known.json\"\nexclude = [\"vendor\", \"a/old/\", \"*.bak.json\"]\n[paths.\"hf/**\"]\nfront-end = \"hf-trainer\"\nworld-size = 4\n[paths.\"hf/big.json\"]\nworld-size = 64\n";
        let project = read(text, ProjectFile::Own).expect("no problem").expect("settings");
        assert_eq!(project.fail_on, Some(FailOn::Never));
        assert_eq!(project.baseline.as_deref(), Some("known.json"));
        for path in ["vendor/x/ds.json", "b/vendor/ds.json", "a/old/ds.json", "c/x.bak.json"] {
            assert!(project.excludes(path), "{path}");
        }
        assert!(!project.excludes("b/a/old/ds.json") && !project.excludes("vendored.json"));
        let at = |path: &str| {
            let settings = project.at(path);
            (settings.front_end, settings.world_size)
        };
        assert_eq!(at("hf/a/ds.json"), (Some(FrontEnd::HfTrainer), Some(4)));
        assert_eq!(at("hf/big.json"), (Some(FrontEnd::HfTrainer), Some(64)));
        assert_eq!(at("ds.json"), (None, None));
        assert_eq!(problem("[paths.\"a\"]\nignore = []\n").0, "ignore");
        assert_eq!(problem("exclude = [1]").0, "1");
        assert_eq!(problem("fail-on = \"errors\"").0, "\"errors\"");
    }

    #[test]
    fn rules_are_rated_for_all_files_and_for_some() {
        let text = "[severity]\nK = \"off\"\nk05 = \"error\"\nB01 = \"note\"\n[paths.\"a/**\".severity]\nB = \"warning\"\nK01 = \"note\"\n[paths.\"a/b/**\"]\nseverity = { B01 = \"off\" }\n";
        let project = read(text, ProjectFile::Own).expect("no problem").expect("settings");
        let level = |code| project.severity.of(code);
        assert_eq!(level("K01"), Some(Level::Off));
        assert_eq!(level("K05"), Some(Level::As(Severity::Error)));
        assert_eq!((level("B01"), level("B02")), (Some(Level::As(Severity::Note)), None));
        let off = project.off_everywhere();
        assert!(off.iter().any(|code| code == "K02"), "{off:?}");
        // `a/**` tells K01, and K05 is told everywhere.
        assert!(!off.iter().any(|code| code == "K01" || code == "K05" || code == "B01"), "{off:?}");
        let told = |path: &str| {
            let config =
                br#"{"train_batch_size": 8, "gradient_accumulation_steps": 3, "nobody": 1}"#;
            let settings = crate::Settings { world_size: Some(2), ..crate::Settings::default() };
            let mut report = crate::check(config, &settings);
            assert_eq!(report.outcome(), crate::Outcome::Rejected);
            project.rate(path, &mut report.diagnostics);
            assert_eq!(report.outcome(), crate::Outcome::Rejected);
            let each = report.diagnostics.iter().map(|found| (found.rule.code, found.severity));
            each.collect::<Vec<_>>()
        };
        assert_eq!(told("ds.json"), [("B01", Severity::Note)]);
        assert_eq!(told("a/ds.json"), [("B01", Severity::Warning), ("K01", Severity::Note)]);
        assert_eq!(told("a/b/ds.json"), [("K01", Severity::Note)]);
    }

    #[test]
    fn what_is_no_rating_is_shown_where_it_stands() {
        assert_eq!(problem("severity = \"error\"").0, "\"error\"");
        let (place, message) = problem("[severity]\nK05 = \"hint\"\n");
        assert_eq!(place, "\"hint\"");
        assert_eq!(message, "this must be one of `error`, `warning`, `note`, `off`");
        assert_eq!(problem("[severity]\nK99 = \"off\"\n").0, "K99");
        assert_eq!(problem("[severity]\nK05 = \"off\"\nk05 = \"note\"\n").0, "k05");
        assert_eq!(problem("[paths.\"a\".severity]\nnobody = \"off\"\n").0, "nobody");
    }

    #[test]
    fn a_file_of_another_program_says_nothing() {
        let own = "[project]\nname = \"x\"\n[tool.zeropilot]\nworld-size = 4\n";
        let project = read(own, ProjectFile::Pyproject).expect("no problem").expect("settings");
        assert_eq!(project.world_size, Some(4));
        for text in ["[project]\nname = \"x\"\n", "[tool.ruff]\n", "not toml at all = ="] {
            assert!(read(text, ProjectFile::Pyproject).expect("no problem").is_none(), "{text}");
        }
    }

    #[test]
    fn problems_have_a_place_and_a_suggestion() {
        let (place, message) = problem("world_size = 8\n");
        assert_eq!(place, "world_size");
        assert_eq!(message, "there is no setting `world_size`; did you mean `world-size`?");
        assert_eq!(problem("world-size = \"8\"").0, "\"8\"");
        assert_eq!(problem("select = [\"K05\", \"K99\"]").0, "\"K99\"");
        assert_eq!(problem("front-end = \"trainer\"").0, "\"trainer\"");
        let (place, message) = problem("[paths]\n\"a/**\" = 8\n");
        assert_eq!(place, "8");
        assert_eq!(message, "the settings of a file name pattern must be a table");
        assert_eq!(problem("deepspeed-version = 19").0, "19");
        assert_eq!(problem("per-file-ignores = { \"[\" = [] }").0, "\"[\"");
        assert!(problem("a = ").1.starts_with("this is not valid TOML"), "{:?}", problem("a = "));
    }
}
