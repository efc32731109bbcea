//! The ways through a training script: functions, loops, what leaves them, and the conditions that decide what is
//! reached.

use tree_sitter::Node;

use crate::python::{Assigned, Block, Exit, Function, Guard, Leaving, Loop, PythonScript};
use crate::python_reader::{named, span};

/// In blocks that are longer, statements that leave are not looked for.
const LONGEST_BLOCK: u32 = 500;

pub(crate) struct Flow<'a> {
    pub(crate) text: &'a str,
    pub(crate) script: &'a mut PythonScript,
}

impl Flow<'_> {
    pub(crate) fn look(&mut self, node: Node<'_>, scope: usize) {
        match node.kind() {
            "function_definition" => self.function(node, scope),
            "for_statement" => {
                let left = node.child_by_field_name("left");
                let targets = left.map(|left| names(self.slice(left))).unwrap_or_default();
                self.a_loop(node, "right", targets, scope);
            }
            "while_statement" => self.a_loop(node, "condition", Vec::new(), scope),
            "with_statement" => {
                let enters = named(node).find(|child| child.kind() == "with_clause");
                let enters = enters.map_or("", |clause| self.slice(clause)).to_owned();
                self.script.blocks.push(Block { enters, span: span(node) });
            }
            "continue_statement" => self.exit(node, Leaving::Continue, scope),
            "break_statement" => self.exit(node, Leaving::Break, scope),
            "return_statement" => self.exit(node, Leaving::Return, scope),
            "assignment" => self.assignment(node, false, scope),
            "augmented_assignment" => {
                let operator = node.child_by_field_name("operator");
                if operator.is_some_and(|operator| self.slice(operator) == "+=") {
                    self.assignment(node, true, scope);
                }
            }
            _ => {}
        }
    }

    fn function(&mut self, node: Node<'_>, scope: usize) {
        let Some(name) = node.child_by_field_name("name") else { return };
        let parameters = node.child_by_field_name("parameters").into_iter().flat_map(named);
        let parameters = parameters.filter_map(|parameter| {
            let name = match parameter.kind() {
                "identifier" => Some(parameter),
                "typed_parameter" => parameter.named_child(0),
                _ => parameter.child_by_field_name("name"),
            };
            name.map(|name| self.slice(name).to_owned())
        });
        let function = Function {
            name: self.slice(name).to_owned(),
            parameters: parameters.collect(),
            class: self.class(node),
            scope,
            span: span(node),
        };
        self.script.functions.push(function);
    }

    /// The class whose method a function is.
    fn class(&self, function: Node<'_>) -> Option<(String, String)> {
        let mut around = function.parent()?;
        if around.kind() == "decorated_definition" {
            around = around.parent()?;
        }
        let class = around.parent().filter(|class| class.kind() == "class_definition")?;
        let name = class.child_by_field_name("name")?;
        let bases = class.child_by_field_name("superclasses");
        let bases = bases.map_or("", |bases| self.slice(bases));
        Some((self.slice(name).to_owned(), bases.to_owned()))
    }

    fn a_loop(&mut self, node: Node<'_>, over: &str, targets: Vec<String>, scope: usize) {
        let Some(over) = node.child_by_field_name(over) else { return };
        let over = self.slice(over).to_owned();
        self.script.loops.push(Loop { targets, over, scope, span: span(node) });
    }

    fn exit(&mut self, node: Node<'_>, how: Leaving, scope: usize) {
        let guards = guards(node, self.text);
        self.script.exits.push(Exit { how, guards, scope, span: span(node) });
    }

    fn assignment(&mut self, node: Node<'_>, adds: bool, scope: usize) {
        let field = |name| node.child_by_field_name(name);
        let (Some(left), Some(right)) = (field("left"), field("right")) else { return };
        for target in names(self.slice(left)) {
            let value = self.slice(right).to_owned();
            let span = span(node);
            self.script.assignments.push(Assigned { target, value, adds, scope, span });
        }
    }

    fn slice(&self, node: Node<'_>) -> &str {
        slice(node, self.text)
    }
}

/// The names of `a, (b, c)`.
fn names(targets: &str) -> Vec<String> {
    let names = targets.split(',').map(|name| name.trim().trim_matches(['(', ')', '[', ']']));
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn slice<'t>(node: Node<'_>, text: &'t str) -> &'t str {
    text.get(node.byte_range()).unwrap_or("")
}

/// What must hold, or must not, for a node to be reached in its function, the innermost first.
pub(crate) fn guards(node: Node<'_>, text: &str) -> Vec<Guard> {
    let mut guards = Vec::new();
    let mut guard = |condition: Option<Node<'_>>, holds| {
        let condition = condition.map(|condition| slice(condition, text).to_owned());
        guards.extend(condition.map(|condition| Guard { condition, holds }));
    };
    let mut inside = node;
    while let Some(around) = inside.parent() {
        let condition = around.child_by_field_name("condition");
        match around.kind() {
            "if_statement" if around.child_by_field_name("consequence") == Some(inside) => {
                guard(condition, true);
            }
            // One of its other branches: none before it was taken.
            "if_statement" if condition != Some(inside) => {
                let before = named(around).take_while(|branch| *branch != inside);
                for branch in before.filter(|branch| branch.kind() == "elif_clause") {
                    guard(branch.child_by_field_name("condition"), false);
                }
                guard(condition, false);
            }
            "elif_clause" if condition != Some(inside) => guard(condition, true),
            // `one if condition else other`
            "conditional_expression" => {
                let parts: Vec<_> = named(around).collect();
                if let [one, condition, other] = parts.as_slice()
                    && inside != *condition
                {
                    guard(Some(*condition), inside == *one && inside != *other);
                }
            }
            "block" | "module" if around.child_count() <= LONGEST_BLOCK => {
                let before = named(around).take_while(|statement| *statement != inside);
                for statement in before.filter(|statement| leaves(*statement, text)) {
                    guard(statement.child_by_field_name("condition"), false);
                }
            }
            "function_definition" | "lambda" => break,
            _ => {}
        }
        inside = around;
    }
    guards
}

/// Whether a statement is an `if` without another branch that does not let go on behind it.
fn leaves(statement: Node<'_>, text: &str) -> bool {
    let branch = statement.child_by_field_name("consequence");
    let Some(branch) = branch.filter(|_| statement.kind() == "if_statement") else { return false };
    let is_alone = statement.child_by_field_name("alternative").is_none();
    let last = named(branch).filter(|node| node.kind() != "comment").last();
    is_alone
        && last.is_some_and(|last| match last.kind() {
            "return_statement" | "continue_statement" | "break_statement" | "raise_statement" => {
                true
            }
            "expression_statement" => {
                let ends = ["sys.exit(", "exit(", "quit(", "os._exit("];
                ends.iter().any(|call| slice(last, text).starts_with(call))
            }
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python_reader::read;

    fn guards_of(text: &str) -> Vec<(String, bool)> {
        let script = read(text);
        let call = script.calls.iter().find(|call| call.callee == "f").expect(text);
        call.guards.iter().map(|guard| (guard.condition.clone(), guard.holds)).collect()
    }

    #[test]
    fn conditions_on_the_way_to_a_call_are_known_with_their_side() {
        let is = |text: &str, expected: &[(&str, bool)]| {
            let expected: Vec<_> =
                expected.iter().map(|(text, holds)| ((*text).to_owned(), *holds)).collect();
            assert_eq!(guards_of(text), expected, "{text}");
        };
        is("if a:\n  if b:\n    f()\n", &[("b", true), ("a", true)]);
        is("if a:\n  g()\nelif b:\n  f()\n", &[("b", true), ("a", false)]);
        is("if a:\n  g()\nelif b:\n  g()\nelse:\n  f()\n", &[("b", false), ("a", false)]);
        is("if f():\n  g()\n", &[]);
        is("if a:\n  g()\nelif f():\n  g()\n", &[("a", false)]);
        is("def h():\n  if a:\n    return\n  f()\n", &[("a", false)]);
        is(
            "if a:\n  sys.exit(0)\nfor x in y:\n  if b:\n    continue\n  f()\n",
            &[("b", false), ("a", false)],
        );
        is("if a:\n  return\nelse:\n  g()\nf()\n", &[]);
        is("x = f() if a else g()\n", &[("a", true)]);
        is("x = g() if a else f()\n", &[("a", false)]);
        is("if a:\n  def h():\n    f()\n", &[]);
    }

    #[test]
    fn functions_loops_exits_and_assignments_are_read() {
        let script = read(
            "class M(nn.Module):\n  @cached\n  def forward(self, x: int, y=1, *, z):\n    return x\ndef h(a):\n  for i, (b, c) in enumerate(d):\n    if b:\n      continue\n    total += c\n",
        );
        let forward = &script.functions[0];
        assert_eq!(forward.parameters, ["self", "x", "y", "z"]);
        assert_eq!(forward.class, Some(("M".to_owned(), "(nn.Module)".to_owned())));
        assert!(script.function("h").is_some() && script.function("forward").is_none());
        assert_eq!(script.loops[0].targets, ["i", "b", "c"]);
        assert_eq!(script.loops[0].over, "enumerate(d)");
        let leaving: Vec<_> = script.exits.iter().map(|exit| exit.how).collect();
        assert_eq!(leaving, [Leaving::Return, Leaving::Continue]);
        let exit = &script.exits[1];
        assert_eq!(script.loop_around(exit.span).map(|it| it.span), Some(script.loops[0].span));
        assert_eq!(
            (script.assignments[0].target.as_str(), script.assignments[0].adds),
            ("total", true)
        );
    }
}
