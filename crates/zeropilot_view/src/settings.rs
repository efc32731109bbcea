//! What is wrong with a settings file, with its place.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use zeropilot_lint::project::ProjectProblem;
use zeropilot_text::Text;

use crate::{Layout, escaped};

/// Every problem of a settings file, with the line it stands in.
pub fn problems(name: &str, text: &str, problems: &[ProjectProblem], layout: &Layout) -> String {
    let language = layout.language;
    let renderer = if layout.color { Renderer::styled() } else { Renderer::plain() };
    let name = escaped(name);
    let each = problems.iter().map(|problem| {
        let error = Text::new("error", "错误").get(language);
        let help = Text::new("help", "建议").get(language);
        let end = problem.span.end.clamp(problem.span.start, text.len());
        let place = AnnotationKind::Primary.span(problem.span.start.min(end)..end);
        let snippet = Snippet::source(text).path(name.as_ref()).annotation(place);
        let message = escaped(&problem.message(language)).into_owned();
        let advice = escaped(&problem.help(language)).into_owned();
        let group = Level::ERROR.with_name(error).primary_title(message).element(snippet);
        renderer.render(&[group.element(Level::HELP.with_name(help).message(advice))])
    });
    each.collect::<Vec<_>>().join("\n\n")
}
