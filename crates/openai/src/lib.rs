#![doc = include_str!("../README.md")]

mod client;
mod dialect;
mod endpoint;
mod models;
mod options;
mod request;
mod response;
mod responses;
mod wire;

#[cfg(test)]
mod tests;

pub use client::OpenAiChatClient;
pub use dialect::{
    AssistantLast, CallIds, ContentBesideCalls, Dialect, ForcedToolChoice, KNOWN_DIALECTS,
    NameField, ReasoningEcho, SchemaForm, SchemaSupport, StrictForm, SystemRole, TokenLimitField,
};
pub use options::{DEFAULT_BASE_URL, OpenAiOptions};
pub use raf_wire::{
    EndpointHealth, IRequestSigner, KeyHeader, Limits, ModelInfo, Timeouts, UnsignedRequest,
    reqwest,
};
pub use responses::{
    KNOWN_RESPONSES_DIALECTS, OpenAiResponsesChatClient, ReasoningModels, ReasoningReplay,
    ResponsesContinuation, ResponsesDialect, ResponsesRunOptionsExt, ToolOutputForm,
    mcp_approval_response,
};
