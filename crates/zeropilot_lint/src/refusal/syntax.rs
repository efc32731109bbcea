//! Files that a reader refuses.

use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::syntax::{DuplicateKey, Node, SyntaxError, SyntaxErrorKind};

use crate::diagnostic::Diagnostic;
use crate::rules::keys;
use crate::subject::Subject;

/// Words an error of the reader.
pub(crate) fn explain(error: &SyntaxError, front_end: FrontEnd) -> Diagnostic {
    match error.kind {
        SyntaxErrorKind::NotUtf8 => keys::not_utf8::explain(error.span),
        _ => keys::unreadable::explain(error, front_end),
    }
}

/// Words an error of a reader of JSON in a text that is Hjson.
pub(crate) fn not_strict(error: &SyntaxError, text: &str, front_end: FrontEnd) -> Diagnostic {
    keys::not_strict_json::explain(error, text, front_end)
}

/// Words what the readers of JSON say of a text that DeepSpeed's own reader takes.
pub(crate) fn not_for_others(error: &SyntaxError) -> Diagnostic {
    keys::not_strict_json::note(error)
}

/// Words a key that occurs again, which one reader refuses and the others take.
pub(crate) fn duplicate_key(
    duplicate: &DuplicateKey<'_>,
    root: &Node,
    subject: &Subject<'_>,
) -> Diagnostic {
    keys::duplicate_key::explain(duplicate, root, subject)
}
