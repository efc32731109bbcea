//! How every verb lays out its results on standard output.

use zeropilot_text::Language;
use zeropilot_view::{Format, Layout};

use crate::color;
use crate::options::GlobalOptions;

/// A format with the colours and the width of the terminal, which only people see.
pub(crate) fn layout(format: Format, global: &GlobalOptions, language: Language) -> Layout {
    let is_human = format == Format::Human;
    let terminal = is_human.then(terminal_size::terminal_size).flatten();
    Layout {
        format,
        language,
        color: is_human && color::for_stdout(global.color),
        width: terminal.map(|(width, _)| usize::from(width.0)),
        quiet: global.quiet,
    }
}
