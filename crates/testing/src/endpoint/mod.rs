//! A scripted model behind real HTTP, in the words of a protocol, streamed and whole.

mod chat_completions;
mod messages;
mod reading;
mod responses;
mod wire;

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::reply::Reply;
use crate::request::ScriptedRequest;
use crate::script::Script;
use crate::server::{HttpRequest, HttpResponse, HttpServer};

pub use wire::EndpointWire;

/// An endpoint that replies as scripted: the same [`Reply`] that a
/// [`ScriptedChatClient`](crate::ScriptedChatClient) plays, as bytes of an [`EndpointWire`].
///
/// A `POST` to the protocol's path takes the next reply and answers as a stream of server-sent events or
/// as one JSON object, as the request asks. Faults are what they are over HTTP: an error before the
/// stream is a status, one within it an error object, a cut breaks the connection. Raw updates, attempt
/// resets and parts that the protocol has no place for are left out.
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
    /// Starts an endpoint of Chat Completions that gives these replies, then no more. Usage is streamed
    /// only if the request's `stream_options` ask for it.
    ///
    /// # Panics
    /// Outside a tokio runtime, or if loopback has no free port.
    pub fn chat_completions(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::speaking(EndpointWire::ChatCompletions, replies)
    }

    /// Starts an endpoint of this protocol that gives these replies, then no more.
    ///
    /// # Panics
    /// Outside a tokio runtime, or if loopback has no free port.
    pub fn speaking(wire: EndpointWire, replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::start(wire, replies, Arc::new(|response| response))
    }

    /// As [`speaking`](ScriptedEndpoint::speaking), with every response in pieces of this many bytes, cut
    /// in the middle of characters and events too.
    ///
    /// # Panics
    /// Outside a tokio runtime, or if loopback has no free port.
    pub fn speaking_in_pieces(
        wire: EndpointWire,
        replies: impl IntoIterator<Item = Reply>,
        bytes: usize,
    ) -> Self {
        Self::start(
            wire,
            replies,
            Arc::new(move |response: HttpResponse| response.bytes_per_write(bytes)),
        )
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
        Self::speaking_in_pieces(EndpointWire::ChatCompletions, replies, bytes)
    }

    fn start(
        wire: EndpointWire,
        replies: impl IntoIterator<Item = Reply>,
        shape: Arc<dyn Fn(HttpResponse) -> HttpResponse + Send + Sync>,
    ) -> Self {
        let script = Script::new(replies);
        let answers = script.clone();
        let server = HttpServer::start_with(move |request| shape(answer(wire, &answers, request)));
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

fn answer(wire: EndpointWire, script: &Script, request: &HttpRequest) -> HttpResponse {
    let protocol = wire.protocol();
    if !request.path.ends_with(protocol.path) {
        return (protocol.refuse)(404, "not_found", &format!("no such path: {}", request.path));
    }
    let body = request.json();
    let Some(scripted) = (protocol.decode)(&body) else {
        return (protocol.refuse)(400, "invalid_request_error", "the body is no chat request");
    };
    let reply = match script.answer(scripted) {
        Ok(reply) => reply,
        Err(error) => return (protocol.refuse)(500, "script_not_followed", error.message()),
    };
    if let Some(error) = &reply.error_at_start {
        return (protocol.fail)(error);
    }
    let number = script.request_count();
    if body.get("stream").and_then(Value::as_bool) == Some(true) {
        (protocol.stream)(&reply, &body, number)
    } else {
        (protocol.whole)(&reply, &body, number)
    }
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
