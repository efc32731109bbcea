//! Why a command does nothing: what is wrong, why it matters, what to do.

use unicode_width::UnicodeWidthStr as _;
use zeropilot_lint::Argument;
use zeropilot_text::{Language, Text};

use crate::escaped;
use crate::wrap::wrap;

/// Columns of a line.
const WIDTH: usize = 100;

/// An objection with what its sentences speak of.
pub(crate) struct Objection {
    pub(crate) what: Text,
    pub(crate) why: Text,
    pub(crate) help: Text,
    pub(crate) arguments: Vec<(&'static str, Argument)>,
}

impl Objection {
    pub(crate) fn new(what: Text, why: Text, help: Text) -> Self {
        Self { what, why, help, arguments: Vec::new() }
    }

    /// With a piece that the sentences name.
    pub(crate) fn with(mut self, name: &'static str, piece: impl ToString) -> Self {
        let piece = escaped(&piece.to_string()).into_owned();
        self.arguments.push((name, Argument::from(piece)));
        self
    }

    /// In words, with a line break at the end.
    pub(crate) fn words(&self, language: Language) -> String {
        let fill = |text: Text| text.fill(language, &self.arguments);
        let error = Text::new("error: ", "错误：").get(language);
        let reasons = [
            (Text::new("why", "原因").get(language), fill(self.why)),
            (Text::new("help", "建议").get(language), fill(self.help)),
        ];
        let mut words = format!("{error}{}\n", fill(self.what));
        for (name, text) in reasons {
            let lead = format!("  = {name}: ");
            let margin = lead.width();
            let lines = wrap(&text, WIDTH - margin).replace('\n', &format!("\n{:margin$}", ""));
            words.push_str(&format!("{lead}{lines}\n"));
        }
        words
    }
}
