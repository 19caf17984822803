//! A scripted model behind real HTTP: Chat Completions on loopback, streamed and whole.

mod error;
mod request;
mod stream;
mod whole;

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::reply::Reply;
use crate::request::ScriptedRequest;
use crate::script::Script;
use crate::server::{HttpRequest, HttpResponse, HttpServer};

/// An OpenAI-compatible endpoint that replies as scripted: the same [`Reply`] that a
/// [`ScriptedChatClient`](crate::ScriptedChatClient) plays, as bytes.
///
/// `POST …/chat/completions` takes the next reply and answers as a stream of server-sent events or
/// as one JSON object, as the request asks; usage is streamed only if the request's
/// `stream_options` ask for it. Faults are what they are over HTTP: an error before the stream is a
/// status, one within it an error object, a cut breaks the connection. Raw updates, attempt resets
/// and parts that Chat Completions has no place for are left out.
///
/// ```
/// use raf_testing::{Reply, ScriptedEndpoint};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let endpoint = ScriptedEndpoint::chat_completions([Reply::text("Hello").usage(3, 1)]);
/// let base_url = endpoint.url();
/// assert!(base_url.ends_with("/v1"));
/// # }
/// ```
pub struct ScriptedEndpoint {
    server: HttpServer,
    script: Script,
}

impl ScriptedEndpoint {
    /// Starts an endpoint that gives these replies, then no more.
    ///
    /// # Panics
    /// Outside a tokio runtime, or if loopback has no free port.
    pub fn chat_completions(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::start(replies, Arc::new(|response| response))
    }

    /// As [`chat_completions`](ScriptedEndpoint::chat_completions), with every response in pieces
    /// of this many bytes, cut in the middle of characters and events too.
    ///
    /// # Panics
    /// Outside a tokio runtime, or if loopback has no free port.
    pub fn chat_completions_in_pieces(
        replies: impl IntoIterator<Item = Reply>,
        bytes: usize,
    ) -> Self {
        Self::start(
            replies,
            Arc::new(move |response: HttpResponse| response.bytes_per_write(bytes)),
        )
    }

    fn start(
        replies: impl IntoIterator<Item = Reply>,
        shape: Arc<dyn Fn(HttpResponse) -> HttpResponse + Send + Sync>,
    ) -> Self {
        let script = Script::new(replies);
        let answers = script.clone();
        let server =
            HttpServer::start_with(move |request| shape(chat_completion(&answers, request)));
        Self { server, script }
    }

    /// Gives this reply to every request beyond the script.
    pub fn with_fallback(self, reply: Reply) -> Self {
        self.script.set_fallback(reply);
        self
    }

    /// Adds a reply at the end of the script, while it is in use too.
    pub fn push(&self, reply: Reply) {
        self.script.push(reply);
    }

    /// The base URL for a provider: `http://127.0.0.1:port/v1`.
    pub fn url(&self) -> String {
        format!("{}/v1", self.server.url())
    }

    /// The requests so far, read back from the wire. The outcome of a tool result is not on the
    /// wire: it reads as `ok`.
    pub fn requests(&self) -> Vec<ScriptedRequest> {
        self.script.requests()
    }

    /// The requests so far as HTTP.
    pub fn http_requests(&self) -> Vec<HttpRequest> {
        self.server.requests()
    }

    /// The server below: connections, clients that left.
    pub fn server(&self) -> &HttpServer {
        &self.server
    }

    /// What went against the script: requests beyond it, expectations that were not met.
    pub fn violations(&self) -> Vec<String> {
        self.script.violations()
    }

    /// Checks that the whole script was used and nothing went against it.
    ///
    /// # Panics
    /// If a reply is left, a request came beyond the script, or an expectation was not met.
    #[track_caller]
    pub fn assert_done(&self) {
        self.script.assert_done();
    }
}

fn chat_completion(script: &Script, request: &HttpRequest) -> HttpResponse {
    if !request.path.ends_with("/chat/completions") {
        return error::response(404, "not_found", &format!("no such path: {}", request.path));
    }
    let body = request.json();
    let Some(scripted) = request::decode(&body) else {
        return error::response(400, "invalid_request_error", "the body is no chat request");
    };
    let reply = match script.answer(scripted) {
        Ok(reply) => reply,
        Err(error) => return error::response(500, "script_not_followed", error.message()),
    };
    if let Some(error) = &reply.error_at_start {
        return error::of(error);
    }
    let number = script.request_count();
    if body.get("stream").and_then(Value::as_bool) == Some(true) {
        stream::response(&reply, &body, number)
    } else {
        whole::response(&reply, &body, number)
    }
}

/// The fields that every chunk and every whole completion begins with.
fn envelope(reply: &Reply, request: &Value, number: usize, object: &str) -> Value {
    let mut envelope = serde_json::json!({
        "id": format!("chatcmpl-{number}"),
        "object": object,
        "created": 1_700_000_000,
        "model": request.get("model").cloned().unwrap_or_else(|| "scripted-model".into()),
    });
    for metadata in reply.metadata_reports() {
        let given = [("id", &metadata.response_id), ("model", &metadata.model)];
        for (name, value) in given {
            if let Some(value) = value {
                envelope[name] = value.as_str().into();
            }
        }
        for (name, value) in &metadata.extra {
            envelope[name] = value.clone();
        }
    }
    envelope
}

/// The reply's end in the words of the wire.
fn finish_word(reply: &Reply) -> String {
    match reply.finish_reason() {
        raf_core::FinishReason::ToolCalls => "tool_calls".to_owned(),
        raf_core::FinishReason::Length => "length".to_owned(),
        raf_core::FinishReason::ContentFilter => "content_filter".to_owned(),
        raf_core::FinishReason::Other(word) => word,
        _ => "stop".to_owned(),
    }
}

/// Tokens as the wire has them.
fn usage_object(usage: &raf_core::Usage) -> Value {
    let mut object = serde_json::json!({
        "prompt_tokens": usage.input_tokens.unwrap_or(0),
        "completion_tokens": usage.output_tokens.unwrap_or(0),
        "total_tokens": usage.total_tokens.unwrap_or(0),
    });
    if let Some(cached) = usage.cached_tokens {
        object["prompt_tokens_details"] = serde_json::json!({"cached_tokens": cached});
    }
    if let Some(reasoning) = usage.reasoning_tokens {
        object["completion_tokens_details"] = serde_json::json!({"reasoning_tokens": reasoning});
    }
    for (name, count) in &usage.extra {
        object[name] = (*count).into();
    }
    object
}

impl fmt::Debug for ScriptedEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedEndpoint")
            .field("url", &self.url())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
