//! SARIF 2.1.0: one run, its rules, and a result per finding.

use serde_json::{Value, json};
use zeropilot_lint::{Diagnostic, Page, RULES, Rule, Severity};
use zeropilot_text::{Language, Text};

use crate::FileResult;
use crate::json::written;
use crate::place::{Place, Places};

/// What closes the results, the run and the log.
pub(crate) const CLOSING: &str = "]}]}\n";

/// The log up to its results.
pub(crate) fn opening(language: Language) -> String {
    let rules: Vec<Value> = RULES.iter().map(|rule| descriptor(rule, language)).collect();
    let driver = json!({
        "name": "zeropilot",
        "version": env!("CARGO_PKG_VERSION"),
        "rules": rules,
    });
    let language = Text::new("en-US", "zh-CN").get(language);
    format!(
        "{{\"$schema\":\"https://json.schemastore.org/sarif-2.1.0.json\",\"version\":\"2.1.0\",\
         \"runs\":[{{\"tool\":{{\"driver\":{}}},\"language\":\"{language}\",\
         \"columnKind\":\"unicodeCodePoints\",\"results\":[",
        written(&driver)
    )
}

/// A rule with the words of its manual page.
fn descriptor(rule: &'static Rule, language: Language) -> Value {
    let page = Page::of(rule);
    let mut descriptor = json!({
        "id": rule.code,
        "name": rule.name,
        "shortDescription": { "text": rule.summary.get(language) },
        "defaultConfiguration": { "level": level(rule.severity) },
    });
    let wordings = page.wordings();
    if !wordings.is_empty() {
        let joined = |sentence: fn(&Diagnostic, Language) -> String| {
            let sentences: Vec<_> =
                wordings.iter().map(|found| sentence(found, language)).collect();
            sentences.join("\n")
        };
        descriptor["fullDescription"] = json!({ "text": joined(Diagnostic::why) });
        descriptor["help"] = json!({ "text": joined(Diagnostic::help) });
    }
    descriptor
}

fn level(severity: Severity) -> &'static str {
    severity.name()
}

/// The results of a file.
pub(crate) fn file(language: Language, file: &FileResult<'_>) -> String {
    if file.report.diagnostics.is_empty() {
        return String::new();
    }
    let places = Places::new(file.bytes);
    let uri = uri(file.name);
    let results: Vec<String> = file
        .report
        .diagnostics
        .iter()
        .map(|diagnostic| written(&result(diagnostic, &uri, &places, language)))
        .collect();
    results.join(",\n")
}

fn result(diagnostic: &Diagnostic, uri: &str, places: &Places, language: Language) -> Value {
    let text = format!(
        "{}\n{}\n{}",
        diagnostic.message(language),
        diagnostic.why(language),
        diagnostic.help(language)
    );
    let mut result = json!({
        "ruleId": diagnostic.rule.code,
        "ruleIndex": RULES.iter().position(|rule| rule.code == diagnostic.rule.code),
        "level": level(diagnostic.severity),
        "message": { "text": text },
        "locations": [location(uri, places.place(diagnostic.span))],
    });
    if !diagnostic.related.is_empty() {
        let related: Vec<Value> = diagnostic
            .related
            .iter()
            .map(|related| {
                let mut location = location(uri, places.place(related.span));
                location["message"] = json!({ "text": related.label.get(language) });
                location
            })
            .collect();
        result["relatedLocations"] = related.into();
    }
    if let Some(fix) = &diagnostic.fix {
        let replacements: Vec<Value> = fix
            .edits
            .iter()
            .map(|edit| {
                json!({
                    "deletedRegion": region(places.place(edit.span)),
                    "insertedContent": { "text": edit.text },
                })
            })
            .collect();
        result["fixes"] = json!([{
            "description": { "text": diagnostic.fix_title(language) },
            "artifactChanges": [{
                "artifactLocation": { "uri": uri },
                "replacements": replacements,
            }],
        }]);
    }
    result
}

fn location(uri: &str, place: Place) -> Value {
    json!({
        "physicalLocation": {
            "artifactLocation": { "uri": uri },
            "region": region(place),
        }
    })
}

fn region(place: Place) -> Value {
    json!({
        "startLine": place.line,
        "startColumn": place.column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
    })
}

/// A path as a URI reference: everything but what may stand there is percent-encoded.
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte));
            }
            b'\\' if cfg!(windows) => uri.push('/'),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_uris() {
        assert_eq!(uri("configs/zero 3.json"), "configs/zero%203.json");
        assert_eq!(uri("<stdin>"), "%3Cstdin%3E");
        assert_eq!(uri("é"), "%C3%A9");
    }
}
