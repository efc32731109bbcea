//! What an editor has open, and the answers to what it asks. No streams here.

use std::collections::BTreeMap;

use gen_lsp_types::{
    CodeActionParams, CodeActionResponse, CompletionItem, CompletionParams,
    DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams, Hover,
    HoverParams, PublishDiagnosticsParams, Uri,
};
use zeropilot_lint::check;
use zeropilot_text::Language;

use crate::actions::actions;
use crate::completion::{Style, completions};
use crate::diagnostics::diagnostic;
use crate::document::Document;
use crate::hover::hover;
use crate::options::Options;

/// An editor's session.
#[derive(Debug)]
pub struct Session {
    options: Options,
    snippets: bool,
    documents: BTreeMap<String, Document>,
}

impl Session {
    /// A session with nothing open. `snippets` says whether the editor knows placeholders.
    pub fn new(options: Options, snippets: bool) -> Self {
        // What is read once is read before the first keystroke.
        let _ = check(b"{\"train_batch_size\": 1}", &options.settings);
        Self { options, snippets, documents: BTreeMap::new() }
    }

    fn language(&self) -> Language {
        self.options.language.unwrap_or_default()
    }

    /// A file is opened; gives what is found in it.
    pub fn open(&mut self, params: DidOpenTextDocumentParams) -> PublishDiagnosticsParams {
        let opened = params.text_document;
        let document = Document::new(opened.uri.clone(), opened.version, opened.text);
        self.documents.insert(opened.uri.0.clone(), document);
        self.findings(&opened.uri)
    }

    /// A file is edited; gives what is found in it now.
    pub fn change(&mut self, params: DidChangeTextDocumentParams) -> PublishDiagnosticsParams {
        let identifier = params.text_document;
        let uri = identifier.text_document_identifier.uri;
        if let Some(document) = self.documents.get_mut(&uri.0) {
            params.content_changes.into_iter().for_each(|change| document.change(change));
            document.version = identifier.version;
        }
        self.findings(&uri)
    }

    /// A file is closed: nothing is to be shown about it any more.
    pub fn close(&mut self, params: DidCloseTextDocumentParams) -> PublishDiagnosticsParams {
        let uri = params.text_document.uri;
        self.documents.remove(&uri.0);
        PublishDiagnosticsParams { uri, version: None, diagnostics: Vec::new() }
    }

    fn findings(&self, uri: &Uri) -> PublishDiagnosticsParams {
        let document = self.documents.get(&uri.0);
        let version = document.map(|document| document.version);
        let diagnostics = self.config(uri).map_or_else(Vec::new, |document| {
            let report = check(document.text.as_bytes(), &self.options.settings);
            let shape = |found| diagnostic(found, document, self.language());
            report.diagnostics.iter().map(shape).collect()
        });
        PublishDiagnosticsParams { uri: uri.clone(), version, diagnostics }
    }

    /// An open file that concerns us.
    fn config(&self, uri: &Uri) -> Option<&Document> {
        self.documents.get(&uri.0).filter(|document| document.is_config())
    }

    /// What the key at a place does.
    pub fn hover(&self, params: &HoverParams) -> Option<Hover> {
        let at = &params.text_document_position_params;
        let document = self.config(&at.text_document.uri)?;
        hover(document, at.position, &self.options.settings, self.language())
    }

    /// What can be written at a place.
    pub fn completion(&self, params: &CompletionParams) -> Vec<CompletionItem> {
        let at = &params.text_document_position_params;
        let style = Style {
            version: self.options.settings.version,
            language: self.language(),
            snippets: self.snippets,
        };
        let document = self.config(&at.text_document.uri);
        document.map_or_else(Vec::new, |document| completions(document, at.position, style))
    }

    /// How findings in a range can be put right.
    pub fn code_action(&self, params: &CodeActionParams) -> Vec<CodeActionResponse> {
        let Some(document) = self.config(&params.text_document.uri) else { return Vec::new() };
        let report = check(document.text.as_bytes(), &self.options.settings);
        actions(&report, document, params.range, self.language())
    }
}
