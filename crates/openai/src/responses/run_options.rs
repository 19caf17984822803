//! What a caller says of one run that only the Responses API knows.

use raf_core::{ChatClientRunOptions, Content, UnknownContent};
use serde_json::{Value, json};

/// Options of a run for [`OpenAiResponsesChatClient`](crate::OpenAiResponsesChatClient), as they travel in
/// the extensions.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ResponsesRunOptions {
    pub(crate) conversation: Option<String>,
    pub(crate) previous: Option<String>,
    pub(crate) state: Option<bool>,
    pub(crate) background: bool,
    pub(crate) hosted_tools: Vec<Value>,
    pub(crate) allowed_tools: Vec<String>,
    pub(crate) continuation: Option<ResponsesContinuation>,
}

/// A response that goes on at the server, and how far it was read: what is needed to take it up again,
/// in another process too.
///
/// It is used once: a conversation that holds the response's message already is gone on with as usual.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct ResponsesContinuation {
    /// The response.
    pub response_id: String,
    /// The number of the last event that was read; what came before is not sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starting_after: Option<u64>,
}

impl ResponsesContinuation {
    /// The response from its beginning.
    pub fn new(response_id: impl Into<String>) -> Self {
        Self {
            response_id: response_id.into(),
            starting_after: None,
        }
    }

    /// Goes on behind this event.
    pub fn with_starting_after(mut self, sequence_number: u64) -> Self {
        self.starting_after = Some(sequence_number);
        self
    }
}

/// What only the Responses API knows, as options of a run.
///
/// ```
/// use raf_core::ChatClientRunOptions;
/// use raf_openai::ResponsesRunOptionsExt;
///
/// let options = ChatClientRunOptions::new().with_server_state(true);
/// ```
pub trait ResponsesRunOptionsExt: Sized {
    /// Goes on with a conversation that the server holds (`conv_…`): only what is new is sent.
    fn with_conversation_id(self, id: impl Into<String>) -> Self;

    /// Goes on behind a response that the server holds (`resp_…`): the messages are what came after it.
    /// Once a reply in the conversation has an id of its own, that one is named. A server that has lost it
    /// ends the run in its error: the messages alone are not the conversation.
    fn with_previous_response_id(self, id: impl Into<String>) -> Self;

    /// Sets whether the server keeps responses (`store`). Kept, each request names the last response that
    /// was finished, and sends only what came after it; else each sends the whole conversation, encrypted
    /// reasoning included, which is the default.
    fn with_server_state(self, state: bool) -> Self;

    /// Runs in the background: the response goes on at the server when the connection breaks, and is
    /// taken up again behind the last event that came. The server keeps it.
    fn with_background(self, background: bool) -> Self;

    /// Takes a response up that goes on at the server, instead of asking for a new one.
    fn with_continuation(self, continuation: ResponsesContinuation) -> Self;

    /// Adds a tool that the server runs itself, or one of a kind of its own, in the API's form:
    /// `{"type": "web_search"}`, `{"type": "mcp", …}`, `{"type": "custom", "name": …}`. Left out for
    /// servers that have none.
    fn with_hosted_tool(self, tool: Value) -> Self;

    /// Restricts the model to these of the declared tools; with a required tool choice it must call one.
    fn with_allowed_tools(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self;
}

impl ResponsesRunOptionsExt for ChatClientRunOptions {
    fn with_conversation_id(self, id: impl Into<String>) -> Self {
        change(self, |own| own.conversation = Some(id.into()))
    }

    fn with_previous_response_id(self, id: impl Into<String>) -> Self {
        change(self, |own| own.previous = Some(id.into()))
    }

    fn with_server_state(self, state: bool) -> Self {
        change(self, |own| own.state = Some(state))
    }

    fn with_background(self, background: bool) -> Self {
        change(self, |own| own.background = background)
    }

    fn with_continuation(self, continuation: ResponsesContinuation) -> Self {
        change(self, |own| own.continuation = Some(continuation))
    }

    fn with_hosted_tool(self, tool: Value) -> Self {
        change(self, |own| own.hosted_tools.push(tool))
    }

    fn with_allowed_tools(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let names = names.into_iter().map(Into::into);
        change(self, |own| own.allowed_tools.extend(names))
    }
}

fn change(
    mut options: ChatClientRunOptions,
    change: impl FnOnce(&mut ResponsesRunOptions),
) -> ChatClientRunOptions {
    let mut own = ResponsesRunOptions::of(&options);
    change(&mut own);
    options.extensions.insert(own);
    options
}

impl ResponsesRunOptions {
    pub(crate) fn of(options: &ChatClientRunOptions) -> Self {
        let own = options.extensions.get::<Self>();
        own.map(|own| (*own).clone()).unwrap_or_default()
    }

    /// Whether the server is to keep the response.
    pub(crate) fn keeps_state(&self) -> bool {
        self.state.unwrap_or(false)
            || self.background
            || self.conversation.is_some()
            || self.previous.is_some()
    }
}

/// The answer to an `mcp_approval_request` of the server, as a part of the user's next message.
///
/// ```
/// use raf_core::{ChatMessage, MessageRole};
/// use raf_openai::mcp_approval_response;
///
/// let answer = ChatMessage::new(MessageRole::User, [mcp_approval_response("mcpr_1", true)]);
/// ```
pub fn mcp_approval_response(approval_request_id: &str, approve: bool) -> Content {
    Content::Unknown(UnknownContent::new(json!({
        "type": "mcp_approval_response",
        "approval_request_id": approval_request_id,
        "approve": approve,
    })))
}
