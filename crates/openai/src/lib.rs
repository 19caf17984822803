#![doc = include_str!("../README.md")]

mod arguments;
mod calls;
mod client;
mod decoder;
mod dialect;
mod error;
mod json;
mod limits;
mod models;
mod options;
mod request;
mod response;
mod sse;
mod stream;
mod think;
mod transport;
mod watch;
mod wire;

pub use client::OpenAiChatClient;
pub use dialect::{
    AssistantLast, CallIds, ContentBesideCalls, Dialect, ForcedToolChoice, KNOWN_DIALECTS,
    NameField, ReasoningEcho, SchemaForm, SchemaSupport, StrictForm, SystemRole, TokenLimitField,
};
pub use limits::{Limits, Timeouts};
pub use models::{EndpointHealth, ModelInfo};
pub use options::{DEFAULT_BASE_URL, OpenAiOptions};
pub use transport::{KeyHeader, reqwest};
