//! Pieces of HTML for notebooks and pages: no script, no style sheet, nothing unescaped.

use crate::escaped;

/// Text for an HTML or XML document: nothing in it is markup, nothing turns the direction of writing.
pub(crate) fn text(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in escaped(text).chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

/// A document that grows.
pub(crate) struct Html(String);

impl Html {
    pub(crate) fn new() -> Self {
        Self("<div class=\"zeropilot\">\n".to_owned())
    }

    pub(crate) fn title(&mut self, words: &str) -> &mut Self {
        self.element("h4", words)
    }

    /// Each line of the words a paragraph.
    pub(crate) fn lines(&mut self, words: &str) -> &mut Self {
        for line in words.lines().filter(|line| !line.trim().is_empty()) {
            self.element("p", line.trim());
        }
        self
    }

    /// Text whose spaces and line breaks count.
    pub(crate) fn block(&mut self, words: &str) -> &mut Self {
        let lines: Vec<String> = words.lines().map(text).collect();
        self.0.push_str("<pre>");
        self.0.push_str(&lines.join("\n"));
        self.0.push_str("</pre>\n");
        self
    }

    /// A block that opens on demand.
    pub(crate) fn folded(&mut self, title: &str, words: &str) -> &mut Self {
        self.0.push_str("<details>");
        self.element("summary", title);
        self.block(words);
        self.0.push_str("</details>\n");
        self
    }

    /// A table under a head; nothing without rows.
    pub(crate) fn table(&mut self, head: &str, rows: &[Vec<String>]) -> &mut Self {
        if rows.is_empty() {
            return self;
        }
        if !head.trim().is_empty() {
            self.element("p", head.trim());
        }
        self.0.push_str("<table>\n");
        for row in rows {
            let cells: String = row
                .iter()
                .map(|cell| format!("<td style=\"text-align:left\">{}</td>", text(cell)))
                .collect();
            self.0.push_str(&format!("<tr>{cells}</tr>\n"));
        }
        self.0.push_str("</table>\n");
        self
    }

    /// A picture, which escaped its own texts.
    pub(crate) fn picture(&mut self, svg: &str) -> &mut Self {
        self.0.push_str(svg);
        self
    }

    fn element(&mut self, name: &str, words: &str) -> &mut Self {
        self.0.push_str(&format!("<{name}>{}</{name}>\n", text(words)));
        self
    }

    pub(crate) fn finish(&mut self) -> String {
        std::mem::take(&mut self.0) + "</div>\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_a_user_writes_becomes_markup() {
        let mut html = Html::new();
        html.title("<script>alert('x')</script>").block("a & \u{1b}[0m\n<b>");
        let rows = [vec!["\"><img src=x>".to_owned()]];
        let html = html.table("<i>", &rows).finish();
        for markup in ["<script", "<b>", "<img", "<i>", "\u{1b}"] {
            assert!(!html.contains(markup), "{html}");
        }
        assert!(html.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"), "{html}");
    }
}
