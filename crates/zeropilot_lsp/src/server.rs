//! The session over standard input and output.

use std::error::Error;

use gen_lsp_types::{
    CodeActionKind, CodeActionOptions, CompletionOptions, PositionEncodingKind, ServerCapabilities,
    TextDocumentSyncKind,
};
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use crate::options::Options;
use crate::session::Session;

/// Serves one editor until it says goodbye.
///
/// # Errors
///
/// When the editor breaks the protocol or its end of the streams.
pub fn serve(options: Options) -> Result<(), Box<dyn Error + Send + Sync>> {
    let (connection, threads) = Connection::stdio();
    talk(&connection, options)?;
    drop(connection);
    threads.join()?;
    Ok(())
}

fn talk(connection: &Connection, options: Options) -> Result<(), Box<dyn Error + Send + Sync>> {
    let (id, params) = connection.initialize_start()?;
    let locale = params["locale"].as_str();
    let (options, refused) = options.with_wishes(params.get("initializationOptions"), locale);
    let info = json!({ "name": "zeropilot", "version": env!("CARGO_PKG_VERSION") });
    connection
        .initialize_finish(id, json!({ "capabilities": capabilities(), "serverInfo": info }))?;
    for message in refused {
        let params = json!({ "type": 2, "message": message });
        connection
            .sender
            .send(Notification::new("window/showMessage".to_owned(), params).into())?;
    }
    let completion = "/capabilities/textDocument/completion/completionItem/snippetSupport";
    let snippets = params.pointer(completion).and_then(Json::as_bool).unwrap_or(false);
    let mut session = Session::new(options, snippets);
    for message in &connection.receiver {
        match message {
            Message::Request(request) => {
                if connection.handle_shutdown(&request)? {
                    return Ok(());
                }
                connection.sender.send(answer(&session, request).into())?;
            }
            Message::Notification(notification) => {
                if let Some(findings) = hear(&mut session, notification) {
                    connection.sender.send(findings.into())?;
                }
            }
            Message::Response(_) => {}
        }
    }
    Ok(())
}

fn capabilities() -> ServerCapabilities {
    ServerCapabilities {
        position_encoding: Some(PositionEncodingKind::UTF16),
        text_document_sync: Some(TextDocumentSyncKind::Incremental.into()),
        hover_provider: Some(true.into()),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some(["\"", ":", " "].map(str::to_owned).to_vec()),
            ..CompletionOptions::default()
        }),
        code_action_provider: Some(
            CodeActionOptions {
                code_action_kinds: Some(vec![CodeActionKind::QuickFix]),
                ..CodeActionOptions::default()
            }
            .into(),
        ),
        ..ServerCapabilities::default()
    }
}

fn answer(session: &Session, request: Request) -> Response {
    let Request { id, method, params } = request;
    let answered = match method.as_str() {
        "textDocument/hover" => with(params, |params| session.hover(&params)),
        "textDocument/completion" => with(params, |params| session.completion(&params)),
        "textDocument/codeAction" => with(params, |params| session.code_action(&params)),
        _ => Err((ErrorCode::MethodNotFound, format!("zeropilot does not support {method}"))),
    };
    match answered {
        Ok(result) => Response::new_ok(id, result),
        Err((code, message)) => Response::new_err(id, code as i32, message),
    }
}

fn with<P: DeserializeOwned, R: Serialize>(
    params: Json,
    answer: impl FnOnce(P) -> R,
) -> Result<Json, (ErrorCode, String)> {
    let wrong = |error: serde_json::Error| (ErrorCode::InvalidParams, error.to_string());
    let params = serde_json::from_value(params).map_err(wrong)?;
    serde_json::to_value(answer(params)).map_err(wrong)
}

/// Takes note of what the editor says; findings to be shown, if it concerns a file. What cannot be read is left alone,
/// as the protocol asks for notifications.
fn hear(session: &mut Session, notification: Notification) -> Option<Notification> {
    let Notification { method, params } = notification;
    let findings = match method.as_str() {
        "textDocument/didOpen" => session.open(serde_json::from_value(params).ok()?),
        "textDocument/didChange" => session.change(serde_json::from_value(params).ok()?),
        "textDocument/didClose" => session.close(serde_json::from_value(params).ok()?),
        _ => return None,
    };
    Some(Notification::new("textDocument/publishDiagnostics".to_owned(), findings))
}
