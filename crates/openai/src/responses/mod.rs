//! The Responses API of OpenAI and of servers that copy it.

mod background;
mod cancel;
mod client;
mod dialect;
mod parts;
mod reading;
mod request;
mod run_options;

pub use client::OpenAiResponsesChatClient;
pub use dialect::{
    KNOWN_RESPONSES_DIALECTS, ReasoningModels, ReasoningReplay, ResponsesDialect, ToolOutputForm,
};
pub use run_options::{ResponsesContinuation, ResponsesRunOptionsExt, mcp_approval_response};
