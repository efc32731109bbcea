//! Files that cannot be read.

use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::syntax::{SyntaxError, SyntaxErrorKind};

use crate::diagnostic::Diagnostic;
use crate::rules::keys::{not_utf8, unreadable};

/// Words an error of the reader.
pub(crate) fn explain(error: &SyntaxError, front_end: FrontEnd) -> Diagnostic {
    match error.kind {
        SyntaxErrorKind::NotUtf8 => not_utf8::explain(error.span),
        _ => unreadable::explain(error, front_end),
    }
}
