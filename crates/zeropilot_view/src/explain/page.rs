//! Paragraphs, labelled rows and drawings for a terminal.

use unicode_width::UnicodeWidthStr;

use crate::Layout;
use crate::wrap::wrap;

/// Columns where there is no terminal to ask.
const WIDTH: usize = 100;

/// A text being laid out.
pub(crate) struct Page {
    text: String,
    width: usize,
    color: bool,
}

impl Page {
    pub(crate) fn new(layout: &Layout) -> Self {
        let width = layout.width.unwrap_or(WIDTH).clamp(40, 100);
        Self { text: String::new(), width, color: layout.color }
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    pub(crate) fn blank(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// A line in bold.
    pub(crate) fn title(&mut self, title: &str) {
        let title = self.bold(title);
        self.line(&title);
    }

    /// A line as it stands.
    pub(crate) fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// A paragraph, wrapped, with every line indented.
    pub(crate) fn paragraph(&mut self, indent: usize, text: &str) {
        let width = self.width.saturating_sub(indent).max(24);
        for line in lines(text, width) {
            self.line(&format!("{:indent$}{line}", ""));
        }
    }

    /// A paragraph that must not be overlooked.
    pub(crate) fn warning(&mut self, indent: usize, text: &str) {
        let width = self.width.saturating_sub(indent).max(24);
        for line in lines(text, width) {
            let line = self.styled("33", &line);
            self.line(&format!("{:indent$}{line}", ""));
        }
    }

    /// A label, and beside it a text that keeps clear of it.
    pub(crate) fn row(&mut self, indent: usize, label: &str, label_width: usize, text: &str) {
        let margin = indent + label_width + 2;
        let width = self.width.saturating_sub(margin).max(24);
        let padding = label_width.saturating_sub(label.width()) + 2;
        let mut lead = format!("{:indent$}{}{:padding$}", "", self.dim(label), "");
        for line in text.lines().flat_map(|line| lines(line, width)) {
            self.line(&format!("{lead}{line}"));
            lead = " ".repeat(margin);
        }
    }

    /// Labelled rows with their texts aligned.
    pub(crate) fn rows(&mut self, indent: usize, rows: &[(&str, String)]) {
        let widest = rows.iter().map(|(label, _)| label.width()).max().unwrap_or(0);
        for (label, text) in rows {
            self.row(indent, label, widest, text);
        }
    }

    /// Markdown as far as the texts use it: a title, paragraphs, one kind of drawing.
    pub(crate) fn markdown(&mut self, text: &str) {
        let mut is_drawing = false;
        for line in text.lines() {
            if line.starts_with("```") {
                is_drawing = !is_drawing;
            } else if is_drawing {
                self.line(format!("    {line}").trim_end());
            } else if let Some(title) = line.strip_prefix("# ") {
                self.title(title);
            } else if line.is_empty() {
                self.blank();
            } else {
                self.paragraph(2, line);
            }
        }
    }

    pub(crate) fn bold(&self, text: &str) -> String {
        self.styled("1", text)
    }

    pub(crate) fn dim(&self, text: &str) -> String {
        self.styled("2", text)
    }

    fn styled(&self, code: &str, text: &str) -> String {
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

fn lines(text: &str, width: usize) -> Vec<String> {
    wrap(text, width).lines().map(str::to_owned).collect()
}
