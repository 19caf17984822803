//! The protocols that an endpoint speaks: one row of functions each.

use raf_core::Error;
use serde_json::Value;

use super::{chat_completions, messages, responses};
use crate::reply::Reply;
use crate::request::ScriptedRequest;
use crate::server::HttpResponse;

/// Which protocol an endpoint speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EndpointWire {
    /// Chat Completions, of `OpenAI` and its imitators. The default.
    #[default]
    ChatCompletions,
    /// The Messages API, of Anthropic and its imitators.
    Messages,
    /// The Responses API, of `OpenAI` and its imitators.
    Responses,
}

impl EndpointWire {
    /// Every protocol.
    pub const ALL: [Self; 3] = [Self::ChatCompletions, Self::Messages, Self::Responses];

    /// Whether the arguments of a call are text in a reply of this form. In a whole reply of the
    /// Messages API they are a JSON object, which has no white space to keep.
    pub const fn keeps_argument_text(self, is_streamed: bool) -> bool {
        match self {
            Self::ChatCompletions | Self::Responses => true,
            Self::Messages => is_streamed,
        }
    }

    pub(super) const fn protocol(self) -> &'static Protocol {
        match self {
            Self::ChatCompletions => &chat_completions::PROTOCOL,
            Self::Messages => &messages::PROTOCOL,
            Self::Responses => &responses::PROTOCOL,
        }
    }
}

/// How requests of a protocol are read, and replies and errors written.
pub(super) struct Protocol {
    /// How the path of a request ends.
    pub(super) path: &'static str,
    /// The request; nothing if the body is none.
    pub(super) decode: fn(&Value) -> Option<ScriptedRequest>,
    /// An error of the endpoint itself: status, code, words.
    pub(super) refuse: fn(u16, &str, &str) -> HttpResponse,
    /// The response that means this error.
    pub(super) fail: fn(&Error) -> HttpResponse,
    /// A reply as a stream: the reply, the request's body, the number of the request.
    pub(super) stream: fn(&Reply, &Value, usize) -> HttpResponse,
    /// A reply as one object.
    pub(super) whole: fn(&Reply, &Value, usize) -> HttpResponse,
}
