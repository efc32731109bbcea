//! Shell scripts as far as they are plain: commands with their words, and variables set to text.
//!
//! The shell splits a variable that stands without quotes into words, and runs the text that `eval` or `bash -c` is
//! handed; so does the reader.
//!
//! A word whose value depends on the outside (an unset variable, a command substitution, a variable
//! that is set in a branch or twice) has no text. Where the script has a default for what comes from outside, as in
//! `${1:-ds.json}`, that is the value, unless the caller knows better.

use std::collections::HashMap;

use tree_sitter::{Node, Parser};
use zeropilot_config::syntax::Span;

use crate::directory::{Directories, Directory, script_directory};
use crate::shell_array::{Arrays, expanded_array};
use crate::shell_test::{self, children};

/// Stands for what is not known within a value: no text of a script has it.
pub(crate) const UNKNOWN: &str = "\0";

/// The same in a text that a shell reads again: a variable that is set nowhere.
const OPEN: &str = "${_OPEN_VALUE_}";

/// Texts within texts that are read; a variable may hold a command that runs itself.
const DEEPEST: usize = 4;

/// Variables that a script finds set, as far as they are known: those of the environment, and its arguments as `1`,
/// `2`, …. One whose value is not known has none.
pub type Outside = HashMap<String, Option<String>>;

/// A word of a command.
#[derive(Debug, Clone)]
pub struct Word {
    /// What it is at run time, if that can be known.
    pub text: Option<String>,
    /// The name of the option, where it is `--name=` and a value that cannot be known.
    pub option: Option<String>,
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
        arrays: Arrays::default(),
        directories: Directories::default(),
        statement: None,
        depth: 0,
        script: &mut script,
    };
    reader.walk(tree.root_node(), false);
    script
}

struct Reader<'a> {
    text: &'a str,
    outside: &'a Outside,
    /// With [`UNKNOWN`] for the parts that are not known.
    variables: HashMap<String, String>,
    arrays: Arrays,
    directories: Directories,
    /// The redirected statement that is being looked at.
    statement: Option<Span>,
    /// How many texts that a shell is handed are around this one.
    depth: usize,
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
            "if_statement" if !conditional && self.decide(node) => {}
            "command" => self.command(node, &[]),
            "redirected_statement" => {
                let outer = self.statement.replace(span(node));
                let files = children(node).filter(|child| child.kind() == "file_redirect");
                let behind: Vec<Node<'_>> = files.flat_map(behind_file).collect();
                for child in children(node) {
                    match child.kind() {
                        "command" => self.command(child, &behind),
                        _ => self.walk(child, conditional),
                    }
                }
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

    /// Goes the way that an `if` takes, where the script itself settles its conditions; `false` if it does not. Launches
    /// on the other ways are read all the same, but what is set there does not hold behind.
    fn decide(&mut self, node: Node<'_>) -> bool {
        let Some(taken) = self.taken(node) else { return false };
        let (first, exported) = (self.script.commands.len(), self.script.exported.len());
        let before = (self.variables.clone(), self.arrays.clone(), self.directories.clone());
        for (index, way) in ways(node).into_iter().enumerate() {
            if Some(index) != taken {
                way.into_iter().for_each(|part| self.walk(part, true));
                (self.variables, self.arrays, self.directories) = before.clone();
            }
        }
        self.script.exported.truncate(exported);
        let way = taken.and_then(|taken| ways(node).into_iter().nth(taken));
        way.into_iter().flatten().for_each(|part| self.walk(part, false));
        if let Some(commands) = self.script.commands.get_mut(first..) {
            commands.sort_by_key(|command| command.span.start);
        }
        true
    }

    /// Which way an `if` takes, where every condition up to there is settled; `Some(None)` for none of them.
    fn taken(&self, node: Node<'_>) -> Option<Option<usize>> {
        let own = std::iter::once(node);
        let others = children(node).filter(|it| it.kind() == "elif_clause");
        let mut count = 0;
        for (index, branch) in own.chain(others).enumerate() {
            let mut conditions = conditions(branch);
            let condition = conditions.next().filter(|_| conditions.next().is_none())?;
            if shell_test::holds(condition, self.text, &|node| self.word(node).text)? {
                return Some(Some(index));
            }
            count = index + 1;
        }
        let has_else = children(node).any(|it| it.kind() == "else_clause");
        Some(has_else.then_some(count))
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
            let named =
                file.child_by_field_name("destination").and_then(|word| self.word(word).text);
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
        self.assign_array(&name, node, conditional);
        let value = match node.child_by_field_name("value") {
            Some(value) => self.word(value),
            None => known(String::new(), span(node)),
        };
        let whole = node.child_by_field_name("value").map_or(String::new(), |it| self.value(it));
        let settled = match self.variables.get(&name) {
            // Words added to what is there: in a branch, they may be.
            Some(before) if self.adds_words(node, &name, (before, &whole)) => match conditional {
                true => format!("{before} {UNKNOWN}"),
                false => whole,
            },
            None if !conditional => whole,
            // Set in a branch or a second time: which value holds depends on the way there.
            _ => UNKNOWN.to_owned(),
        };
        self.variables.insert(name.clone(), settled);
        Some(Assignment { name, value })
    }

    /// Notes the words of an array; what is no array has none any more.
    fn assign_array(&mut self, name: &str, node: Node<'_>, conditional: bool) {
        let value = node.child_by_field_name("value").filter(|value| value.kind() == "array");
        let Some(array) = value else { return self.arrays.forget(name) };
        let mut words = Vec::new();
        let parts = children(array).filter(|part| part.is_named() && part.kind() != "comment");
        parts.for_each(|part| self.split(part, &mut words));
        let adds = self.slice(node).get(name.len()..).is_some_and(|rest| rest.starts_with("+="));
        self.arrays.assign(name, words, (adds, conditional), span(node));
    }

    /// Whether an assignment leaves a variable as it is and adds words to it.
    fn adds_words(&self, node: Node<'_>, name: &str, (before, whole): (&str, &str)) -> bool {
        let text = self.slice(node);
        let names_itself =
            text.contains(&format!("${{{name}}}")) || text.contains(&format!("\"${name} "));
        let is_apart = |added: &str| {
            before.is_empty()
                || before.ends_with(char::is_whitespace)
                || added.starts_with(char::is_whitespace)
        };
        names_itself && before != UNKNOWN && whole.strip_prefix(before).is_some_and(is_apart)
    }

    /// Notes a command, with words of it that stand elsewhere.
    fn command(&mut self, node: Node<'_>, behind: &[Node<'_>]) {
        let mut values: Vec<(String, Span)> = Vec::new();
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
                    self.split(name, &mut values);
                }
                _ => self.split(child, &mut values),
            }
        }
        behind.iter().for_each(|word| self.split(*word, &mut values));
        let handed = handed_text(&values).map(|start| values.split_off(start));
        command.words = values.into_iter().map(|(text, span)| known(text, span)).collect();
        if let Some(texts) = handed
            && self.depth < DEEPEST
        {
            return self.handed(command, &texts);
        }
        let words: Vec<Option<&str>> =
            command.words.iter().map(|word| word.text.as_deref()).collect();
        self.directories.follow(&words);
        self.script.commands.push(command);
    }

    /// Notes the commands in a text that a shell within a command is handed, each behind the words of that command.
    fn handed(&mut self, command: Command, texts: &[(String, Span)]) {
        let place = texts.first().zip(texts.last());
        let place =
            place.map_or(command.span, |((_, first), (_, last))| Span::new(first.start, last.end));
        let texts: Vec<&str> = texts.iter().map(|(text, _)| text.as_str()).collect();
        let text = texts.join(" ").replace(UNKNOWN, OPEN);
        for mut inner in self.commands_in(&text, &command) {
            for word in &mut inner.words {
                if word.text.as_ref().is_some_and(|text| text.contains(OPEN)) {
                    let text = word.text.take().unwrap_or_default();
                    *word = known(text.replace(OPEN, UNKNOWN), place);
                }
                word.span = place;
            }
            let mut words = command.words.clone();
            words.append(&mut inner.words);
            let mut variables = command.variables.clone();
            variables.extend(inner.variables.into_iter().map(|mut set| {
                set.value.span = place;
                set
            }));
            let (span, statement) = (command.span, command.statement);
            let directory = inner.directory;
            self.script.commands.push(Command { words, variables, span, directory, statement });
        }
    }

    /// What a text does that a command hands to a shell: `eval` knows all variables, another shell the exported ones.
    fn commands_in(&self, text: &str, command: &Command) -> Vec<Command> {
        let is_eval = command.words.first().and_then(|word| word.text.as_deref()) == Some("eval");
        let is_exported = |name: &str| self.script.exported.iter().any(|set| set.name == name);
        let mut variables = self.variables.clone();
        variables.retain(|name, _| is_eval || is_exported(name));
        let mut parser = Parser::new();
        let mut script = ShellScript::default();
        let is_ready = parser.set_language(&tree_sitter_bash::LANGUAGE.into()).is_ok();
        if let Some(tree) = is_ready.then(|| parser.parse(text, None)).flatten() {
            let mut reader = Reader {
                text,
                outside: self.outside,
                variables,
                arrays: if is_eval { self.arrays.clone() } else { Arrays::default() },
                directories: self.directories.clone(),
                statement: None,
                depth: self.depth + 1,
                script: &mut script,
            };
            reader.walk(tree.root_node(), false);
        }
        script.commands
    }

    fn word(&self, node: Node<'_>) -> Word {
        known(self.value(node), span(node))
    }

    /// The words that the shell makes of one in the text: a variable without quotes becomes as many as it holds, an
    /// array as many as it has.
    fn split(&self, node: Node<'_>, words: &mut Vec<(String, Span)>) {
        if let Some(array) = expanded_array(self.slice(node)).and_then(|it| self.arrays.get(it)) {
            return words.extend(array.iter().cloned());
        }
        let value = self.value(node);
        let is_split = matches!(node.kind(), "simple_expansion" | "expansion");
        if is_split && value.contains(char::is_whitespace) {
            words.extend(value.split_whitespace().map(|word| (word.to_owned(), span(node))));
        } else if !(is_split && value.is_empty()) {
            words.push((value, span(node)));
        }
    }

    /// What a node is at run time, with [`UNKNOWN`] for what cannot be known of it.
    fn value(&self, node: Node<'_>) -> String {
        let text = self.slice(node);
        match node.kind() {
            "word" | "number" => text.replace('\\', ""),
            "raw_string" => text.trim_matches('\'').to_owned(),
            "string_content" => unescaped(text),
            "string" => {
                // White space between two expansions belongs to the text and to no node.
                let inside = node.start_byte() + 1..node.end_byte().saturating_sub(1);
                let mut whole = String::new();
                let mut end = inside.start;
                for part in children(node).filter(Node::is_named) {
                    whole.push_str(&unescaped(self.text.get(end..part.start_byte()).unwrap_or("")));
                    // The grammar counts it to the second of two expansions.
                    if part.kind() != "string_content" {
                        let text = self.slice(part);
                        whole.push_str(&unescaped(&text[..text.len() - expansion(text).len()]));
                    }
                    whole.push_str(&self.value(part));
                    end = part.end_byte();
                }
                whole.push_str(&unescaped(self.text.get(end..inside.end).unwrap_or("")));
                whole
            }
            "concatenation" => {
                children(node).filter(Node::is_named).map(|part| self.value(part)).collect()
            }
            _ => self.expanded(node).unwrap_or_else(|| UNKNOWN.to_owned()),
        }
    }

    fn expanded(&self, node: Node<'_>) -> Option<String> {
        let text = expansion(self.slice(node));
        match node.kind() {
            "command_substitution" => {
                let own = self.variable("0").filter(|own| !own.contains(UNKNOWN))?;
                script_directory(text, &own)
            }
            "simple_expansion" => self.variable(text.trim_start_matches('$')),
            "expansion" => {
                let inside = text.strip_prefix("${")?.strip_suffix('}')?;
                match inside.split_once(":-") {
                    None => self.variable(inside),
                    Some((name, default)) => match self.variable(name) {
                        Some(value) if !value.is_empty() => Some(value),
                        _ => is_plain(default).then(|| default.to_owned()),
                    },
                }
            }
            _ => None,
        }
    }

    /// What is known of a variable: the script's own, else what was there before it.
    fn variable(&self, name: &str) -> Option<String> {
        let own = self.variables.get(name).cloned();
        let outside = || Some(self.outside.get(name)?.clone().unwrap_or(UNKNOWN.to_owned()));
        own.or_else(outside)
    }

    fn slice(&self, node: Node<'_>) -> &str {
        self.text.get(node.byte_range()).unwrap_or("")
    }
}

/// A word, whose text is known if all of it is.
fn known(text: String, span: Span) -> Word {
    let is_known = !text.contains(UNKNOWN);
    let option = text.split_once('=').map(|(name, _)| name).filter(|name| {
        !is_known && name.starts_with("--") && !name.contains(UNKNOWN) && !name.contains(' ')
    });
    let option = option.map(|name| name.trim_start_matches('-').to_owned());
    Word { text: Some(text).filter(|_| is_known), option, span }
}

/// Where the text begins that a shell within the command is handed to run: after `eval`, or after `bash -c`.
fn handed_text(words: &[(String, Span)]) -> Option<usize> {
    let word = |index: usize| words.get(index).map(|(word, _)| word.as_str());
    if word(0) == Some("eval") {
        return Some(1);
    }
    let is_shell = |name: &str| matches!(name.rsplit('/').next(), Some("bash" | "sh"));
    let shell = words.iter().position(|(name, _)| is_shell(name))?;
    matches!(word(shell + 1), Some("-c" | "-lc")).then_some(shell + 2)
}

/// An expansion without the white space before it.
fn expansion(text: &str) -> &str {
    text.find(['$', '`']).map_or(text, |start| &text[start..])
}

/// What the shell makes of text between double quotes, without what it puts in the place of variables.
fn unescaped(text: &str) -> String {
    let mut whole = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letters.peek() {
            Some('\n') if letter == '\\' => {
                letters.next();
            }
            Some(&next @ ('"' | '\\' | '$' | '`')) if letter == '\\' => {
                whole.push(next);
                letters.next();
            }
            _ => whole.push(letter),
        }
    }
    whole
}

/// Whether a default is what it says, with nothing in it that the shell would still look at.
fn is_plain(default: &str) -> bool {
    !default.contains(['$', '`', '"', '\'', '\\', '*', '?', '~', ' '])
}

/// The conditions between `if` and `then`.
fn conditions(branch: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    children(branch).take_while(|it| it.kind() != "then").filter(Node::is_named)
}

/// What an `if` runs on each of its ways, the conditions of the first left out.
fn ways(node: Node<'_>) -> Vec<Vec<Node<'_>>> {
    let others = children(node).filter_map(|it| match it.kind() {
        "elif_clause" => Some(behind_then(it)),
        "else_clause" => Some(children(it).filter(Node::is_named).collect()),
        _ => None,
    });
    std::iter::once(behind_then(node)).chain(others).collect()
}

fn behind_then(branch: Node<'_>) -> Vec<Node<'_>> {
    let is_other = |it: &Node<'_>| matches!(it.kind(), "elif_clause" | "else_clause");
    let body = children(branch).skip_while(|it| it.kind() != "then");
    body.filter(|it| it.is_named() && !is_other(it)).collect()
}

/// Words behind the name of a file that a command is redirected to: they are words of the command.
fn behind_file(redirect: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = redirect.walk();
    redirect.children_by_field_name("destination", &mut cursor).skip(1).collect()
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
    fn a_variable_without_quotes_becomes_words() {
        let text = "O=\"--lr $LR \\\n --deepspeed ds.json\"\nE=\ndeepspeed a.py $O \"$O\" $E";
        let known = |text: &str| Some(text.to_owned());
        let own = [known("deepspeed"), known("a.py"), known("--lr"), None];
        let own = own.into_iter().chain([known("--deepspeed"), known("ds.json"), None]);
        assert_eq!(words(text), [own.collect::<Vec<_>>()]);
    }

    #[test]
    fn two_variables_in_one_text_are_both_read() {
        let text = "A=1\nB=2\nC=\"run $A $B\"\neval $C";
        let known = |text: &str| Some(text.to_owned());
        let last = words(text).pop().expect("a command");
        assert_eq!(last, [known("eval"), known("run"), known("1"), known("2")]);
    }

    #[test]
    fn an_array_becomes_its_words() {
        let known = |text: &str| Some(text.to_owned());
        let array = "M='a b'\nA=(\n  --m \"$M\" --n $N # first\n)\nA+=(--k 'c d')\n";
        let last = |text: &str| words(&format!("{array}{text}")).pop().expect("a command");
        let own = ["--m", "a b", "--n"].map(known).into_iter().chain([None]);
        let own: Vec<_> = own.chain(["--k", "c d"].map(known)).collect();
        for run in ["run \"${A[@]}\"", "run ${A[*]}", "run ${A[@]+\"${A[@]}\"}"] {
            assert_eq!(last(run)[1..], own, "{run}");
        }
        let place = read(&format!("{array}run \"${{A[@]}}\""), &HashMap::new()).commands;
        let word = &place[0].words[1];
        assert_eq!(&array[word.span.start..word.span.end], "--m");
        // Words of a branch may be there; an array that is set again, or in a branch, has words of its own.
        let may = "if test -f x; then A+=(--z); fi\nrun \"${A[@]}\"";
        assert_eq!(last(may)[1..], [own.clone(), vec![None]].concat());
        for open in ["A=(--b)", "if test -f x; then A=(); fi", "A=text"] {
            assert_eq!(last(&format!("{open}\nrun \"${{A[@]}}\""))[1..], [None], "{open}");
        }
        for open in ["\"${#A[@]}\"", "\"${A[@]:1}\"", "\"${A[0]}\"", "\"${B[@]}\""] {
            assert_eq!(last(&format!("run {open}"))[1..], [None], "{open}");
        }
    }

    #[test]
    fn words_added_in_a_branch_may_be_there() {
        let text = "O=\"--a 1\"\nO=\"$O --b\"\nif test x; then\n O=\"${O} --c\"\nfi\nrun $O";
        let last = words(text).pop().expect("a command");
        let known = |text: &str| Some(text.to_owned());
        assert_eq!(last, [known("run"), known("--a"), known("1"), known("--b"), None]);
    }

    #[test]
    fn a_text_that_a_shell_is_handed_is_a_command() {
        let known = |text: &str| Some(text.to_owned());
        let command = "C=\"NCCL_DEBUG=INFO deepspeed a.py \\\n --x 'b c' &> log.txt\"\n";
        let words_of = |run: &str| words(&format!("{command}{run}")).pop().expect("a command");
        let own = [known("deepspeed"), known("a.py"), known("--x"), known("b c")];
        assert_eq!(words_of("eval ${C}")[1..], own);
        assert_eq!(words_of("eval \"$C\"")[1..], own);
        assert_eq!(words_of("srun -N 2 bash -c \"$C\"")[5..], own);
    }

    #[test]
    fn texts_of_several_lines_and_quotes_are_read_as_a_shell_reads_them() {
        let known = |text: &str| Some(text.to_owned());
        let parts = "A=\"\\\n --form '<a>' \\\n\"\nB=\"\\\n --deepspeed ds.json \\\n\"\n";
        let command = "C=\"torchrun -m x \\\n $A \\\n $B \\\n --name \\\"a b\\\" \\\n\"\neval $C";
        let last = words(&format!("{parts}{command}")).pop().expect("a command");
        let own = ["eval", "torchrun", "-m", "x", "--form", "<a>", "--deepspeed", "ds.json"];
        let own = own.into_iter().chain(["--name", "a b"]).map(known).collect::<Vec<_>>();
        assert_eq!(last, own);
        // Another shell has what is exported.
        let text = "export N=2\nM=3\nsrun bash -c 'cd src; torchrun --a $N --b $M --c $(hostname | head -n1) t.py'";
        let commands = read(text, &HashMap::new()).commands;
        let last = commands.last().expect("a command");
        let own: Vec<_> = last.words.iter().map(|word| word.text.as_deref()).collect();
        assert_eq!(
            own[3..],
            [
                Some("torchrun"),
                Some("--a"),
                Some("2"),
                Some("--b"),
                None,
                Some("--c"),
                None,
                Some("t.py")
            ]
        );
        assert_eq!(last.directory.join("t.py"), "src/t.py");
        // A text that runs itself ends.
        assert!(!words("C='eval \"$C\"'\neval \"$C\"").is_empty());
    }

    #[test]
    fn a_variable_set_in_a_branch_is_not_known() {
        let text = "if test -f x; then N=4; fi\necho $N\nM=1\nM=2\necho $M";
        let found = words(text);
        assert!(found[1][1].is_none() && found[2][1].is_none(), "{found:?}");
    }
}
