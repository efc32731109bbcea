//! Shell scripts as far as they are plain: commands with their words, and variables set to text.
//!
//! A word whose value depends on the outside (an unset variable, a command substitution, a variable
//! that is set in a branch or twice) has no text. Where the script has a default for what comes from outside, as in
//! `${1:-ds.json}`, that is the value, unless the caller knows better.

use std::collections::HashMap;

use tree_sitter::{Node, Parser};
use zeropilot_config::syntax::Span;

use crate::directory::{Directories, Directory, script_directory};

/// Variables that a script finds set, as far as they are known: those of the environment, and its arguments as `1`,
/// `2`, …. One whose value is not known has none.
pub type Outside = HashMap<String, Option<String>>;

/// A word of a command.
#[derive(Debug, Clone)]
pub struct Word {
    /// What it is at run time, if that can be known.
    pub text: Option<String>,
    /// Where it stands.
    pub span: Span,
}

/// A variable and what it is set to.
#[derive(Debug, Clone)]
pub struct Assignment {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Word,
}

/// A command with the variables set for it alone.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) words: Vec<Word>,
    pub(crate) variables: Vec<Assignment>,
    pub(crate) span: Span,
    /// Where it runs.
    pub(crate) directory: Directory,
    /// It, with what it is redirected to and the text it is handed.
    pub(crate) statement: Span,
}

/// A file that a script writes by redirecting a command.
#[derive(Debug)]
pub(crate) struct Written {
    /// Its name from where the script starts, if that can be known.
    pub(crate) name: Option<String>,
    /// What it holds, if the script has that in full.
    pub(crate) text: Option<String>,
    /// Where the command stands.
    pub(crate) span: Span,
}

/// A script.
#[derive(Debug, Default)]
pub(crate) struct ShellScript {
    pub(crate) commands: Vec<Command>,
    pub(crate) exported: Vec<Assignment>,
    pub(crate) written: Vec<Written>,
}

pub(crate) fn read(text: &str, outside: &Outside) -> ShellScript {
    let mut parser = Parser::new();
    let mut script = ShellScript::default();
    if parser.set_language(&tree_sitter_bash::LANGUAGE.into()).is_err() {
        return script;
    }
    let Some(tree) = parser.parse(text, None) else { return script };
    let mut reader = Reader {
        text,
        outside,
        variables: HashMap::new(),
        directories: Directories::default(),
        statement: None,
        script: &mut script,
    };
    reader.walk(tree.root_node(), false);
    script
}

struct Reader<'a> {
    text: &'a str,
    outside: &'a Outside,
    variables: HashMap<String, Option<String>>,
    directories: Directories,
    /// The redirected statement that is being looked at.
    statement: Option<Span>,
    script: &'a mut ShellScript,
}

impl Reader<'_> {
    /// Looks at a node and what is in it; `conditional` below a branch, a loop or a function.
    fn walk(&mut self, node: Node<'_>, conditional: bool) {
        match node.kind() {
            "variable_assignment" => {
                self.assign(node, conditional);
            }
            "declaration_command" => {
                let exports = self.slice(node).starts_with("export");
                for child in children(node) {
                    if child.kind() == "variable_assignment"
                        && let Some(mut assignment) = self.assign(child, conditional)
                        && exports
                    {
                        assignment.value.text = assignment.value.text.filter(|_| !conditional);
                        self.script.exported.push(assignment);
                    }
                }
            }
            "command" => self.command(node),
            "redirected_statement" => {
                let outer = self.statement.replace(span(node));
                children(node).for_each(|child| self.walk(child, conditional));
                self.statement = outer;
                self.redirected(node);
            }
            "if_statement"
            | "while_statement"
            | "for_statement"
            | "c_style_for_statement"
            | "case_statement"
            | "function_definition"
            | "subshell" => {
                let before = self.directories.clone();
                if node.kind() == "function_definition" {
                    self.directories.change(None);
                }
                children(node).for_each(|child| self.walk(child, true));
                self.directories.leave(before, node.kind());
            }
            _ => {
                for child in children(node) {
                    self.walk(child, conditional);
                }
            }
        }
    }

    /// Notes the file that a statement is redirected to.
    fn redirected(&mut self, node: Node<'_>) {
        let texts: Vec<Node<'_>> =
            children(node).filter(|child| child.kind() == "heredoc_redirect").collect();
        let inside = texts.iter().flat_map(|text| children(*text));
        let files = children(node).chain(inside).filter(|child| child.kind() == "file_redirect");
        let directory = self.directories.current();
        for file in files.collect::<Vec<_>>() {
            let operator =
                self.slice(file).trim_start_matches(|digit: char| digit.is_ascii_digit());
            if !operator.starts_with('>') && !operator.starts_with("&>") {
                continue;
            }
            let named = file.child_by_field_name("destination").and_then(|word| self.value(word));
            if named.as_deref() == Some("/dev/null") || operator.starts_with(">&") {
                continue;
            }
            let is_whole = !operator.starts_with(">>") && self.only_copies(node);
            let text =
                texts.first().filter(|_| is_whole).and_then(|text| self.here_document(*text));
            let name = named.filter(|_| directory.is_known()).map(|name| directory.join(&name));
            self.script.written.push(Written { name, text, span: span(node) });
        }
    }

    /// Whether a statement is `cat` alone, which writes what it is handed.
    fn only_copies(&self, node: Node<'_>) -> bool {
        node.child_by_field_name("body").is_some_and(|body| self.slice(body).trim() == "cat")
    }

    /// The text of a here-document, where the shell changes nothing in it.
    fn here_document(&self, node: Node<'_>) -> Option<String> {
        let part = |kind: &str| children(node).find(|child| child.kind() == kind);
        let is_quoted = self.slice(part("heredoc_start")?).starts_with(['\'', '"', '\\']);
        let text = self.slice(part("heredoc_body")?);
        let strips_tabs = self.slice(node).starts_with("<<-");
        let is_plain = is_quoted || !text.contains(['$', '`', '\\']);
        (is_plain && !strips_tabs).then(|| text.to_owned())
    }

    fn assign(&mut self, node: Node<'_>, conditional: bool) -> Option<Assignment> {
        let name = self.slice(node.child_by_field_name("name")?).to_owned();
        let value = match node.child_by_field_name("value") {
            Some(value) => self.word(value),
            None => Word { text: Some(String::new()), span: span(node) },
        };
        // Set in a branch or a second time: which value holds depends on the way there.
        let settled = !conditional && !self.variables.contains_key(&name);
        self.variables.insert(name.clone(), value.text.clone().filter(|_| settled));
        Some(Assignment { name, value })
    }

    fn command(&mut self, node: Node<'_>) {
        let mut command = Command {
            words: Vec::new(),
            variables: Vec::new(),
            span: span(node),
            directory: self.directories.current(),
            statement: self.statement.unwrap_or(span(node)),
        };
        for child in children(node) {
            match child.kind() {
                "variable_assignment" => {
                    let name = child.child_by_field_name("name").map(|name| self.slice(name));
                    if let (Some(name), Some(value)) = (name, child.child_by_field_name("value")) {
                        let name = name.to_owned();
                        command.variables.push(Assignment { name, value: self.word(value) });
                    }
                }
                "file_redirect" | "herestring_redirect" | "heredoc_redirect" => {}
                "command_name" => {
                    let name = child.named_child(0).unwrap_or(child);
                    command.words.push(self.word(name));
                }
                _ => command.words.push(self.word(child)),
            }
        }
        let words: Vec<Option<&str>> =
            command.words.iter().map(|word| word.text.as_deref()).collect();
        self.directories.follow(&words);
        self.script.commands.push(command);
    }

    fn word(&self, node: Node<'_>) -> Word {
        Word { text: self.value(node), span: span(node) }
    }

    fn value(&self, node: Node<'_>) -> Option<String> {
        let text = self.slice(node);
        match node.kind() {
            "word" | "number" => Some(text.replace('\\', "")),
            "raw_string" => Some(text.trim_matches('\'').to_owned()),
            "string_content" => Some(text.to_owned()),
            "string" | "concatenation" => {
                let parts: Option<Vec<String>> = children(node)
                    .filter(|part| part.is_named())
                    .map(|part| self.value(part))
                    .collect();
                Some(parts?.concat())
            }
            "command_substitution" => script_directory(text, self.variable("0")?.as_deref()?),
            "simple_expansion" => self.variable(text.trim_start_matches('$'))?.clone(),
            "expansion" => {
                let inside = text.strip_prefix("${")?.strip_suffix('}')?;
                match inside.split_once(":-") {
                    None => self.variable(inside)?.clone(),
                    Some((name, default)) => match self.variable(name) {
                        Some(None) => None,
                        Some(Some(value)) if !value.is_empty() => Some(value.clone()),
                        _ => is_plain(default).then(|| default.to_owned()),
                    },
                }
            }
            _ => None,
        }
    }

    /// What is known of a variable: the script's own, else what was there before it.
    fn variable(&self, name: &str) -> Option<&Option<String>> {
        self.variables.get(name).or_else(|| self.outside.get(name))
    }

    fn slice(&self, node: Node<'_>) -> &str {
        self.text.get(node.byte_range()).unwrap_or("")
    }
}

/// Whether a default is what it says, with nothing in it that the shell would still look at.
fn is_plain(default: &str) -> bool {
    !default.contains(['$', '`', '"', '\'', '\\', '*', '?', '~', ' '])
}

fn children(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    (0..node.child_count()).filter_map(move |index| node.child(index))
}

fn span(node: Node<'_>) -> Span {
    Span::new(node.start_byte(), node.end_byte())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Vec<Option<String>>> {
        let commands = read(text, &HashMap::new()).commands;
        commands.into_iter().map(|c| c.words.into_iter().map(|word| word.text).collect()).collect()
    }

    #[test]
    fn words_are_what_they_are_at_run_time_or_unknown() {
        let text = "N=4\nCFG=\"conf/${N}.json\"\ndeepspeed --num_gpus $N 'a b.py' \\\n  --x=$CFG --y $OUTSIDE";
        let known = |text: &str| Some(text.to_owned());
        assert_eq!(
            words(text),
            [[
                known("deepspeed"),
                known("--num_gpus"),
                known("4"),
                known("a b.py"),
                known("--x=conf/4.json"),
                known("--y"),
                None,
            ]]
        );
    }

    #[test]
    fn a_default_holds_unless_something_else_is_known() {
        let text = "train ${1:-ds.json} ${N:-4} ${M:-$N}";
        let known = |text: &str| Some(text.to_owned());
        assert_eq!(words(text), [[known("train"), known("ds.json"), known("4"), None]]);
        let given = HashMap::from([("1".to_owned(), known("b.json")), ("N".to_owned(), None)]);
        let words: Vec<_> = read(text, &given).commands.remove(0).words;
        let words: Vec<_> = words.into_iter().map(|word| word.text).collect();
        assert_eq!(words, [known("train"), known("b.json"), None, None]);
        let empty = HashMap::from([("M".to_owned(), known("")), ("N".to_owned(), known(""))]);
        let words: Vec<_> = read(text, &empty).commands.remove(0).words;
        let words: Vec<_> = words.into_iter().map(|word| word.text).collect();
        assert_eq!(words, [known("train"), known("ds.json"), known("4"), None]);
    }

    #[test]
    fn a_variable_set_in_a_branch_is_not_known() {
        let text = "if test -f x; then N=4; fi\necho $N\nM=1\nM=2\necho $M";
        let found = words(text);
        assert!(found[1][1].is_none() && found[2][1].is_none(), "{found:?}");
    }
}
