use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::problem::KeyPath;
use zeropilot_config::syntax::{Span, SyntaxError, SyntaxErrorKind, parse_json};

use crate::argument::Argument;
use crate::diagnostic::{Diagnostic, Fix};
use crate::edit::{Edit, apply};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K10",
    name: "not-strict-json",
    group: Group::Keys,
    severity: Severity::Error,
    summary: Text::new(
        "the HF Trainer and accelerate cannot read a file that DeepSpeed reads",
        "DeepSpeed 能读取这个文件，HF Trainer 和 accelerate 不能",
    ),
    wordings: &[&WORDING, &ELSEWHERE],
    sources: &["huggingface/transformers#42406"],
    examples: &[
        Example::new("{\"train_batch_size\": \"auto\", \"zero_optimization\": {\"stage\": 2},}").read_by(FrontEnd::HfTrainer),
        Example::new("{\n  // for 8 GPUs\n  \"train_micro_batch_size_per_gpu\": \"auto\",\n  \"zero_optimization\": {\"stage\": 2}\n}")
            .read_by(FrontEnd::Accelerate),
        Example::new("{\"train_batch_size\": 8, \"zero_optimization\": {\"stage\": 2},}").unsaid_reader(),
    ],
    good: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}}"#,
        )
        .read_by(FrontEnd::HfTrainer),
        Example::new("{\"train_batch_size\": 8, \"zero_optimization\": {\"stage\": 2},}"),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new("this is not JSON: {fault}", "这不是合法的 JSON：{fault}"),
    why: Text::new(
        "DeepSpeed itself reads Hjson and would accept the file, but {reader} reads strict JSON and fails with a `JSONDecodeError`.",
        "DeepSpeed 本身按 Hjson 读取，能接受这个文件；但{reader}按严格的 JSON 读取，会抛 `JSONDecodeError`。",
    ),
    help: Text::new(
        "write plain JSON, which every reader accepts",
        "写成标准 JSON，DeepSpeed 和各训练框架都能读取",
    ),
};

static ELSEWHERE: Wording = Wording {
    message: Text::new(
        "the HF Trainer and accelerate reject this file: {fault}",
        "HF Trainer 和 accelerate 会拒绝这个文件：{fault}",
    ),
    why: Text::new(
        "DeepSpeed itself reads Hjson and accepts the file. The HF Trainer and accelerate read strict JSON and fail with a `JSONDecodeError`.",
        "DeepSpeed 本身按 Hjson 读取，能接受这个文件；HF Trainer 和 accelerate 按严格的 JSON 读取，会抛 `JSONDecodeError`。",
    ),
    help: Text::new(
        "write plain JSON, or pass `--front-end deepspeed` if only DeepSpeed reads the file",
        "写成标准 JSON；如果只由 DeepSpeed 读取，可加上 `--front-end deepspeed`",
    ),
};

/// What other readers would say, where who reads the file is only guessed.
pub(crate) fn note(error: &SyntaxError) -> Diagnostic {
    Diagnostic::new(&RULE, &ELSEWHERE, KeyPath::default(), error.span)
        .with("fault", fault(&error.kind))
        .severity(Severity::Note)
}

/// Words the error of the JSON reader.
pub(crate) fn explain(error: &SyntaxError, text: &str, front_end: FrontEnd) -> Diagnostic {
    let reader = match front_end {
        FrontEnd::Accelerate => Text::new("accelerate", " accelerate "),
        _ => Text::new("the HF Trainer", " HF Trainer "),
    };
    Diagnostic::new(&RULE, &WORDING, KeyPath::default(), error.span)
        .with("fault", fault(&error.kind))
        .with("reader", reader)
        .fix(fix(error, text))
}

/// One edit that makes the text readable, if there is one.
fn fix(error: &SyntaxError, text: &str) -> Option<Fix> {
    let (title, edit) = match &error.kind {
        SyntaxErrorKind::ByteOrderMark => (
            Text::new("remove the byte-order mark", "去掉 BOM"),
            Edit::new(Span::new(0, '\u{feff}'.len_utf8()), ""),
        ),
        SyntaxErrorKind::TrailingComma { .. } => {
            (Text::new("remove the comma", "去掉这个逗号"), Edit::new(error.span, ""))
        }
        SyntaxErrorKind::CommentInJson => {
            (Text::new("remove the comment", "去掉这条注释"), Edit::new(error.span, ""))
        }
        SyntaxErrorKind::PythonLiteral { json } => {
            (Text::new("write this as JSON", "改成 JSON 的写法"), Edit::new(error.span, *json))
        }
        _ => return None,
    };
    let edits = vec![edit];
    parse_json(&apply(text, &edits)).is_ok().then(|| Fix::safe(title, edits))
}

/// What is wrong with a text, as a part of a sentence.
#[expect(clippy::too_many_lines, reason = "one phrase for each fault")]
pub(crate) fn fault(kind: &SyntaxErrorKind) -> Argument {
    use SyntaxErrorKind as Kind;
    let with = |text: Text, character: char| {
        Argument::Nested(text, vec![("character", character.escape_debug().to_string().into())])
    };
    Argument::Phrase(match kind {
        Kind::UnterminatedString { quote } => {
            return with(
                Text::new(
                    "this string has no closing {character}",
                    "这个字符串缺少结尾的 {character}",
                ),
                *quote,
            );
        }
        Kind::UnterminatedMultilineString => {
            Text::new("this string has no closing '''", "这个字符串缺少结尾的 '''")
        }
        Kind::MultilineStringWithoutLineBreak => Text::new(
            "a ''' string needs at least one line break in the file",
            "使用 ''' 字符串时，文件里至少要有一个换行",
        ),
        Kind::UnterminatedComment => {
            Text::new("this comment has no closing */", "这条注释缺少结尾的 */")
        }
        Kind::UnterminatedArray => Text::new("this list has no closing ]", "这个数组缺少结尾的 ]"),
        Kind::UnterminatedObject => {
            Text::new("this object has no closing }", "这个对象缺少结尾的 }")
        }
        Kind::CloseSwallowedByUnquotedText { close } => {
            return with(
                Text::new(
                    "this unquoted text runs to the end of its line and includes the `{character}`",
                    "没加引号的文本会一直延伸到行尾，把 `{character}` 也包括了进去",
                ),
                *close,
            );
        }
        Kind::ControlCharacterInString { character } => {
            return with(
                Text::new(
                    "control character {character} inside a string",
                    "字符串里有控制字符 {character}",
                ),
                *character,
            );
        }
        Kind::BadEscape { character } => {
            return with(
                Text::new(
                    "\\{character} is not an escape sequence",
                    "\\{character} 不是合法的转义",
                ),
                *character,
            );
        }
        Kind::BadUnicodeEscape => Text::new(
            "\\u must be followed by four hexadecimal digits",
            "\\u 后面必须是四位十六进制数",
        ),
        Kind::MissingKey => Text::new("a key is missing before `:`", "`:` 前面缺少键"),
        Kind::KeyWithWhitespace => {
            Text::new("a key without quotes cannot contain whitespace", "不加引号的键里不能有空白")
        }
        Kind::PunctuatorWhereKeyExpected { character } => {
            return with(
                Text::new(
                    "found `{character}` where a key was expected",
                    "这里应该是键，却是 `{character}`",
                ),
                *character,
            );
        }
        Kind::MissingColon { .. } => Text::new("`:` is missing after the key", "键后面缺少 `:`"),
        Kind::PunctuatorWhereValueExpected { character } => {
            return with(
                Text::new(
                    "found `{character}` where a value was expected",
                    "这里应该是值，却是 `{character}`",
                ),
                *character,
            );
        }
        Kind::MissingValue => Text::new("a value is missing", "缺少值"),
        Kind::TrailingData => {
            Text::new("unexpected text after the end of the document", "文档结束之后还有多余的内容")
        }
        Kind::NumberOverflow => Text::new("this number is too large", "这个数太大"),
        Kind::TooManyDigits { .. } => Text::new(
            "this integer has more digits than Python accepts",
            "这个整数的位数超过了 Python 的上限",
        ),
        Kind::TooDeep { .. } => Text::new(
            "the nesting is too deep for Python's parser",
            "嵌套太深，超过了 Python 解析器的上限",
        ),
        Kind::NothingAfterByteOrderMark => {
            Text::new("the file contains only a byte-order mark", "文件里只有 BOM")
        }
        Kind::EmptyDocument => Text::new("the file is empty", "文件是空的"),
        Kind::ByteOrderMark => {
            Text::new("the file starts with a byte-order mark", "文件以 BOM 开头")
        }
        Kind::TrailingComma { close } => {
            return with(
                Text::new(
                    "a comma before the closing `{character}`",
                    "`{character}` 前面多了一个逗号",
                ),
                *close,
            );
        }
        Kind::MissingComma => {
            Text::new("a comma is missing before this value", "这个值前面缺少逗号")
        }
        Kind::MismatchedClose { expected, .. } => {
            return with(
                Text::new("`{character}` was expected here", "这里应该是 `{character}`"),
                *expected,
            );
        }
        Kind::SingleQuotes => Text::new("strings need double quotes", "字符串要用双引号"),
        Kind::CommentInJson => Text::new("JSON does not allow comments", "JSON 里不能写注释"),
        Kind::UnquotedKey => Text::new("keys need double quotes", "键要加双引号"),
        Kind::UnquotedValue => Text::new("strings need double quotes", "字符串要加双引号"),
        Kind::PythonLiteral { json } => {
            return Argument::Nested(
                Text::new("write this as `{json}`", "这里应写成 `{json}`"),
                vec![("json", (*json).into())],
            );
        }
        Kind::MalformedNumber => {
            Text::new("this is not a valid JSON number", "这不是合法的 JSON 数字")
        }
        Kind::UnexpectedCharacter { character } => {
            return with(
                Text::new("unexpected character `{character}`", "意外的字符 `{character}`"),
                *character,
            );
        }
        _ => Text::new("the syntax is invalid here", "这里的语法不合法"),
    })
}
