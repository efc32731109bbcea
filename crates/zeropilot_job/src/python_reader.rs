//! Reads a training script: which calls, divisions and bindings it holds.

use tree_sitter::{Node, Parser};
use zeropilot_config::syntax::Span;

use crate::python::{Call, Division, PythonScript, SetMember, Value};
use crate::python_flow::{Flow, guards};

/// A script as it is written.
pub(crate) fn read(text: &str) -> PythonScript {
    let mut script = PythonScript::default();
    let mut parser = Parser::new();
    if parser.set_language(&tree_sitter_python::LANGUAGE.into()).is_err() {
        return script;
    }
    let Some(tree) = parser.parse(text, None) else { return script };
    let mut reader = Reader { text, script: &mut script };
    reader.walk(tree.root_node(), Reader::bind);
    reader.walk(tree.root_node(), Reader::look);
    reader.walk(tree.root_node(), |reader, node, scope| {
        Flow { text: reader.text, script: &mut *reader.script }.look(node, scope);
    });
    script
}

struct Reader<'a> {
    text: &'a str,
    script: &'a mut PythonScript,
}

/// Deeper than this nobody writes, and what a machine writes must not end the program.
pub(super) const DEEPEST: usize = 200;

impl Reader<'_> {
    /// Goes through everything, in the order of the text.
    fn walk(&mut self, root: Node<'_>, visit: fn(&mut Self, Node<'_>, usize)) {
        let mut open = vec![(root, 0, 0)];
        while let Some((node, scope, depth)) = open.pop() {
            let scope = match node.kind() {
                "function_definition" | "lambda" => node.start_byte() + 1,
                _ => scope,
            };
            visit(self, node, scope);
            if depth < DEEPEST {
                let below = named(node).map(|child| (child, scope, depth + 1));
                let start = open.len();
                open.extend(below);
                // The first one in the text is looked at first.
                open[start..].reverse();
            }
        }
    }

    fn look(&mut self, node: Node<'_>, scope: usize) {
        match node.kind() {
            "assignment" => {
                let left = node.child_by_field_name("left");
                let right = node.child_by_field_name("right");
                if let (Some(left), Some(right)) = (left, right)
                    && right.kind() == "binary_operator"
                {
                    self.division(self.slice(left).to_owned(), right, scope);
                }
                if let Some(left) = left.filter(|left| left.kind() == "subscript") {
                    self.member(left, scope);
                }
            }
            "augmented_assignment" => self.augmented(node, scope),
            "call" => self.call(node, scope),
            _ => {}
        }
    }

    /// Learns what names stand for.
    fn bind(&mut self, node: Node<'_>, _: usize) {
        match node.kind() {
            "assignment" => {
                let Some(left) = node.child_by_field_name("left") else { return };
                // What another name stands for is settled only when all are known.
                let value = node.child_by_field_name("right").map_or(Value::Unknown, |right| {
                    if right.kind() == "identifier" { Value::Unknown } else { self.value(right) }
                });
                match left.kind() {
                    "identifier" => self.bind_name(left, value),
                    "attribute" => {
                        if let Some((object, name)) = self.slice(left).rsplit_once('.') {
                            let pair = (object.to_owned(), name.to_owned());
                            self.script.set.push(pair);
                        }
                    }
                    _ => self.forget(left),
                }
            }
            "augmented_assignment" | "for_statement" | "for_in_clause" => {
                node.child_by_field_name("left").into_iter().for_each(|left| self.forget(left));
            }
            "parameters" | "lambda_parameters" | "as_pattern_target" | "global_statement"
            | "delete_statement" => self.forget(node),
            "named_expression" => {
                node.child_by_field_name("name").into_iter().for_each(|name| self.forget(name));
            }
            "call" => self.changed_in_place(node),
            _ => {}
        }
    }

    fn bind_name(&mut self, name: Node<'_>, value: Value) {
        let name = self.slice(name).to_owned();
        let is_first = !self.script.bindings.contains_key(&name);
        self.script.bindings.insert(name, if is_first { value } else { Value::Unknown });
    }

    /// Every name in a node is unknown from now on.
    fn forget(&mut self, node: Node<'_>) {
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            if node.kind() == "identifier" {
                let name = self.slice(node).to_owned();
                self.script.bindings.insert(name, Value::Unknown);
            }
            open.extend(named(node));
        }
    }

    /// A dictionary that is changed by a method is no longer what was written.
    fn changed_in_place(&mut self, node: Node<'_>) {
        let function = node.child_by_field_name("function").map(|node| self.slice(node));
        let Some((object, method)) = function.and_then(|text| text.rsplit_once('.')) else {
            return;
        };
        if matches!(method, "update" | "setdefault" | "pop" | "clear" | "append" | "extend") {
            self.script.bindings.insert(object.to_owned(), Value::Unknown);
        }
    }

    fn augmented(&mut self, node: Node<'_>, scope: usize) {
        let field = |name| node.child_by_field_name(name).map(|node| self.slice(node).to_owned());
        let (left, operator, right) = (field("left"), field("operator"), field("right"));
        if let (Some(target), Some("/="), Some(divisor)) = (left, operator.as_deref(), right) {
            let (dividend, span) = (target.clone(), span(node));
            self.script.divisions.push(Division { target, dividend, divisor, scope, span });
        }
    }

    fn division(&mut self, target: String, node: Node<'_>, scope: usize) {
        let operator = node.child_by_field_name("operator").map(|node| self.slice(node));
        if let (Some("/"), Some(right)) = (operator, node.child_by_field_name("right")) {
            let divisor = self.slice(right).to_owned();
            let left = node.child_by_field_name("left");
            let dividend = left.map_or_else(String::new, |left| self.slice(left).to_owned());
            let span = span(node);
            self.script.divisions.push(Division { target, dividend, divisor, scope, span });
        }
    }

    /// A member that is set by a name that is written out.
    fn member(&mut self, node: Node<'_>, scope: usize) {
        let Some(key) = node.child_by_field_name("subscript") else { return };
        if let Some(name) = self.string(key).filter(|_| key.kind() == "string") {
            let questions = self.questions(node);
            self.script.members.push(SetMember { name, questions, scope, span: span(node) });
        }
    }

    fn call(&mut self, node: Node<'_>, scope: usize) {
        let Some(function) = node.child_by_field_name("function") else { return };
        let callee: String = match function.kind() {
            "identifier" | "attribute" | "subscript" => {
                self.slice(function).split_whitespace().collect()
            }
            // `CrossEntropyLoss()(logits, labels)`
            "call" => match function.child_by_field_name("function") {
                Some(inner) => format!("{}()", self.slice(inner)),
                None => return,
            },
            _ => return,
        };
        let bound_names = self.bound_names(node);
        let mut call = Call {
            callee,
            keywords: Vec::new(),
            positional: Vec::new(),
            names: Vec::new(),
            has_more: false,
            condition: self.condition(node),
            questions: self.questions(node),
            guards: guards(node, self.text),
            bound_to: bound_names.first().cloned(),
            bound_names,
            scope,
            span: span(node),
        };
        for argument in node.child_by_field_name("arguments").into_iter().flat_map(named) {
            match argument.kind() {
                "keyword_argument" => {
                    let name = argument.child_by_field_name("name").map(|node| self.slice(node));
                    if let (Some(name), Some(value)) = (name, argument.child_by_field_name("value"))
                    {
                        let name = name.to_owned();
                        if value.kind() == "identifier" {
                            call.names.push((span(argument), self.slice(value).to_owned()));
                        }
                        call.keywords.push((name, self.value(value), span(argument)));
                    }
                }
                "dictionary_splat" | "list_splat" => call.has_more = true,
                "comment" => {}
                "binary_operator" if call.name() == "backward" => {
                    let left = argument.child_by_field_name("left");
                    let target = left.map_or_else(String::new, |left| self.slice(left).to_owned());
                    call.positional.push((Value::Unknown, span(argument)));
                    self.division(target, argument, scope);
                }
                kind => {
                    if kind == "identifier" {
                        call.names.push((span(argument), self.slice(argument).to_owned()));
                    }
                    call.positional.push((self.value(argument), span(argument)));
                }
            }
        }
        self.script.calls.push(call);
    }

    /// The condition under whose first branch a node stands, innermost first.
    fn condition(&self, node: Node<'_>) -> Option<String> {
        let mut inside = node;
        while let Some(around) = inside.parent() {
            match around.kind() {
                "if_statement" => {
                    let branch = around.child_by_field_name("consequence")?;
                    let condition = around.child_by_field_name("condition")?;
                    return (branch == inside).then(|| self.slice(condition).to_owned());
                }
                "function_definition" | "lambda" => return None,
                _ => inside = around,
            }
        }
        None
    }

    /// The conditions of everything around a node that decides whether it is reached.
    fn questions(&self, node: Node<'_>) -> Vec<String> {
        let mut asked = Vec::new();
        let mut inside = node;
        while let Some(around) = inside.parent() {
            let condition = match around.kind() {
                "if_statement" | "elif_clause" | "while_statement" => {
                    around.child_by_field_name("condition")
                }
                // `one if condition else other`
                "conditional_expression" => named(around).nth(1),
                "function_definition" | "lambda" => break,
                _ => None,
            };
            asked.extend(condition.map(|condition| self.slice(condition).to_owned()));
            inside = around;
        }
        asked
    }

    /// The names on the left of the assignment that a call is the right side of.
    fn bound_names(&self, node: Node<'_>) -> Vec<String> {
        let parent = node.parent().filter(|parent| parent.kind() == "assignment");
        let Some(left) = parent.and_then(|parent| parent.child_by_field_name("left")) else {
            return Vec::new();
        };
        let names = self.slice(left);
        let inside = names.trim_start_matches(['(', '[']);
        let names = if inside == names { names } else { inside.trim_end_matches([')', ']']) };
        names.split(',').map(|name| name.trim().to_owned()).collect()
    }

    fn value(&self, node: Node<'_>) -> Value {
        let text = self.slice(node);
        match node.kind() {
            "integer" | "float" => Value::Literal(text.replace('_', "")),
            "true" | "false" => Value::Literal(text.to_owned()),
            "none" => Value::None,
            "string" => self.string(node).map_or(Value::Unknown, Value::Literal),
            "unary_operator" if text.starts_with('-') => {
                match node.child_by_field_name("argument").map(|inner| self.value(inner)) {
                    Some(Value::Literal(number)) => Value::Literal(format!("-{number}")),
                    _ => Value::Unknown,
                }
            }
            "parenthesized_expression" => {
                node.named_child(0).map_or(Value::Unknown, |inner| self.value(inner))
            }
            "identifier" => self.script.bindings.get(text).cloned().unwrap_or(Value::Unknown),
            "attribute" => match text.split_once('.') {
                Some(("args" | "script_args" | "cfg" | "opt", name)) if !name.contains('.') => {
                    Value::Argument(name.to_owned())
                }
                _ => Value::Unknown,
            },
            "dictionary" => Value::Dict(span(node)),
            "list" | "tuple" => {
                let items = named(node).filter(|item| item.kind() != "comment");
                Value::List(items.map(|item| self.item(item)).collect())
            }
            "call" => node
                .child_by_field_name("function")
                .map_or(Value::Unknown, |function| Value::Call(self.slice(function).to_owned())),
            _ => Value::Unknown,
        }
    }

    /// One item of a list; what nests is unknown, since it may be deeper than the stack.
    fn item(&self, node: Node<'_>) -> Value {
        match node.kind() {
            "string" | "integer" | "float" | "true" | "false" | "none" | "identifier"
            | "attribute" => self.value(node),
            _ => Value::Unknown,
        }
    }

    /// A text without placeholders, escapes or a prefix that changes its meaning.
    fn string(&self, node: Node<'_>) -> Option<String> {
        let text = self.slice(node);
        let quote =
            ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| text.starts_with(quote))?;
        let inside = text.strip_prefix(quote)?.strip_suffix(quote)?;
        (!inside.contains('\\')).then(|| inside.to_owned())
    }

    fn slice(&self, node: Node<'_>) -> &str {
        self.text.get(node.byte_range()).unwrap_or("")
    }
}

pub(super) fn named(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    (0..node.child_count())
        .filter_map(move |index| node.child(index))
        .filter(|child| child.is_named())
}

pub(super) fn span(node: Node<'_>) -> Span {
    Span::new(node.start_byte(), node.end_byte())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_on_opposite_sides_of_a_condition_are_exclusive() {
        let are = |text: &str| {
            let script = read(text);
            let call = |name| script.call(name).expect(text);
            script.are_exclusive(call("f"), call("g"))
        };
        assert!(are("for b in c:\n  if a.d:\n    f()\n  else:\n    g()\n"));
        assert!(are("if a:\n  f()\nelif b:\n  g()\n"));
        assert!(are("if a:\n  f()\nif not a:\n  g()\n"));
        assert!(are("for b in c:\n  if a:\n    f()\n    continue\n  g()\n"));
        assert!(!are("if a:\n  f()\nif b:\n  g()\n"));
        assert!(!are("if a:\n  f()\n  g()\n"));
        assert!(!are("if a:\n  f()\ng()\n"));
        // Passes of a loop take turns.
        assert!(!are("for i, b in c:\n  if i % 2:\n    f()\n  else:\n    g()\n"));
        assert!(!are("for b in c:\n  n += 1\n  if n % 2:\n    f()\n  else:\n    g()\n"));
    }

    #[test]
    fn calls_have_their_literals_and_the_rest_is_unknown() {
        let script = read(
            "LR = 1e-4\nX = 1\nX = 2\nargs = parse()\nt = TrainingArguments(\n  learning_rate=LR, bf16=True, max_steps=X,\n  warmup_steps=-1, output_dir=f'{a}', per_device_train_batch_size=args.bs, **more)\n",
        );
        let call = script.calls.iter().find(|call| call.name() == "TrainingArguments").expect("it");
        let value = |name| call.keyword(name).map(|(value, _)| value.clone()).expect("a keyword");
        assert_eq!(value("learning_rate"), Value::Literal("1e-4".to_owned()));
        assert_eq!(value("bf16"), Value::Literal("True".to_owned()));
        assert_eq!(value("warmup_steps"), Value::Literal("-1".to_owned()));
        assert_eq!(value("per_device_train_batch_size"), Value::Argument("bs".to_owned()));
        assert_eq!((value("max_steps"), value("output_dir")), (Value::Unknown, Value::Unknown));
        assert!(call.has_more);
        for open in [
            "def f(n):\n  g(x=n)\nn = 1\n",
            "c = {'a': 1}\nc['a'] = 2\ng(x=c)\n",
            "c = {'a': 1}\nc.update(d)\ng(x=c)\n",
            "for c in d: pass\nc = 1\ng(x=c)\n",
            "c = 1\nc += 1\ng(x=c)\n",
            "def h():\n  g(x=c)\nc = 1\nc = 2\n",
        ] {
            let script = read(open);
            let call = script.calls.iter().find(|call| call.callee == "g").expect(open);
            assert_eq!(call.keyword("x").map(|(value, _)| value), Some(&Value::Unknown), "{open}");
        }
        let listed = read("names = ['a', b]\ng(x=names)\n");
        let literal = Value::Literal("a".to_owned());
        assert_eq!(
            listed.calls[0].keyword("x").map(|(value, _)| value),
            Some(&Value::List(vec![literal, Value::Unknown]))
        );
        let set = read("if images:\n  b['pixel_values'] = f(images)\n");
        assert_eq!(set.members[0].name, "pixel_values");
        assert_eq!(set.members[0].questions, ["images"]);
        assert!(read("a.lr = 2").sets("a", "lr"));
        assert_eq!(call.bound_to.as_deref(), Some("t"));
    }
}
