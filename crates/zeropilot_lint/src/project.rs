//! What a project says once for all its checks: `zeropilot.toml`, or `[tool.zeropilot]` in
//! `pyproject.toml`.
//!
//! [`read`] takes the text of such a file. Which file it is and what a command line says on top is
//! for whoever asks.

use std::ops::Range;

use globset::{GlobBuilder, GlobMatcher};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::nearest::nearest;
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::Span;

use crate::argument::Argument;
use crate::registry::{RULES, nearest_code};
use zeropilot_text::{Language, Text};

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
    /// Rules that are not told about some files.
    pub per_file_ignores: Vec<FileIgnore>,
}

/// Rules that are not told about files with certain names.
#[derive(Debug, Clone)]
pub struct FileIgnore {
    matcher: GlobMatcher,
    /// Whether only the last part of a path is looked at.
    by_name: bool,
    codes: Vec<String>,
}

impl Project {
    /// The rules that are not told about a file, whose path is relative to the project's.
    pub fn ignored_in(&self, path: &str) -> Vec<String> {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
        let fitting = self
            .per_file_ignores
            .iter()
            .filter(|ignore| ignore.matcher.is_match(if ignore.by_name { name } else { path }));
        fitting.flat_map(|ignore| ignore.codes.clone()).collect()
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

const KEYS: [&str; 7] = [
    "language",
    "deepspeed-version",
    "front-end",
    "world-size",
    "select",
    "ignore",
    "per-file-ignores",
];

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
                Text::new("this is not TOML: {reason}", "不是合法的 TOML：{reason}"),
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
            "front-end" => {
                let known = FrontEnd::ALL.map(|front_end| (front_end.name(), front_end));
                self.project.front_end = self.one_of(value, &known);
            }
            "deepspeed-version" => self.project.deepspeed_version = self.version(value),
            "world-size" => self.project.world_size = self.ranks(value),
            "select" => self.project.select = self.codes(value),
            "ignore" => self.project.ignore = self.codes(value),
            "per-file-ignores" => self.files(value),
            _ => self.unknown(key, span),
        }
    }

    fn unknown(&mut self, key: &str, span: Range<usize>) {
        let meant = nearest(key, KEYS.iter().copied()).or_else(|| {
            KEYS.iter().find(|known| known.replace('-', "_") == key).map(|k| (*k).into())
        });
        let message = match meant {
            Some(_) => Text::new(
                "there is no setting `{key}`; did you mean `{meant}`?",
                "没有 `{key}` 这个设置，是不是想写 `{meant}`？",
            ),
            None => Text::new("there is no setting `{key}`", "没有 `{key}` 这个设置"),
        };
        let help = Text::new("settings are {known}", "可用的设置有 {known}");
        self.problems.push(
            ProjectProblem::new(span, message, help)
                .with("key", key)
                .with("meant", meant.unwrap_or_default())
                .with("known", Argument::Words(KEYS.map(str::to_owned).to_vec())),
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
            Text::new("write one of them, in quotes", "写其中一个，加引号"),
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
            Text::new("this is no version of DeepSpeed", "不是 DeepSpeed 的版本号"),
            Text::new("known ones are {known}", "已知的版本有 {known}"),
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
            Text::new("this must be a whole number above zero", "只能是正整数"),
            Text::new("write how many GPUs the run has", "写训练的进程数（GPU 数）"),
        ));
        None
    }

    fn codes(&mut self, value: &Value<'_>) -> Vec<String> {
        let DeValue::Array(list) = value.get_ref() else {
            self.problems.push(ProjectProblem::new(
                value.span(),
                Text::new("this must be a list of codes", "只能是规则编号的数组"),
                Text::new("write them as `[\"K05\", \"O\"]`", "写成 `[\"K05\", \"O\"]`"),
            ));
            return Vec::new();
        };
        let each = list.iter().filter_map(|code| self.code(code));
        each.collect()
    }

    fn code(&mut self, value: &Value<'_>) -> Option<String> {
        let written = value.get_ref().as_str().unwrap_or("").trim();
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
            "`zeropilot rule --all` lists every rule",
            "用 `zeropilot rule --all` 可以列出全部规则",
        );
        let problem = ProjectProblem::new(value.span(), message, help);
        self.problems.push(problem.with("meant", meant.unwrap_or_default()));
        None
    }

    fn files(&mut self, value: &Value<'_>) {
        let DeValue::Table(table) = value.get_ref() else {
            self.problems.push(ProjectProblem::new(
                value.span(),
                Text::new("this must be a table of file names", "只能是以文件名为键的表"),
                Text::new(
                    "write `\"tests/*.json\" = [\"K01\"]` in it",
                    "例如 `\"tests/*.json\" = [\"K01\"]`",
                ),
            ));
            return;
        };
        for (pattern, codes) in table {
            let text: &str = pattern.get_ref();
            let glob = GlobBuilder::new(text).literal_separator(true).build();
            let Ok(glob) = glob else {
                self.problems.push(ProjectProblem::new(
                    pattern.span(),
                    Text::new("this is no pattern for file names", "不是合法的文件名模式"),
                    Text::new(
                        "use `*` within a name, `**` across directories and `[…]` in pairs",
                        "名字之内用 `*`，跨目录用 `**`，`[…]` 要成对",
                    ),
                ));
                continue;
            };
            let codes = self.codes(codes);
            let by_name = !text.contains('/');
            let matcher = glob.compile_matcher();
            self.project.per_file_ignores.push(FileIgnore { matcher, by_name, codes });
        }
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
        assert_eq!(problem("deepspeed-version = 19").0, "19");
        assert_eq!(problem("per-file-ignores = { \"[\" = [] }").0, "\"[\"");
        assert!(problem("a = ").1.starts_with("this is not TOML"), "{:?}", problem("a = "));
    }
}
