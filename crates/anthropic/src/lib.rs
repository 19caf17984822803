#![doc = include_str!("../README.md")]

mod blocks;
mod client;
mod dialect;
mod endpoint;
mod models;
mod options;
mod parts;
mod request;
mod response;
mod run_options;
mod said;
mod turn;
mod wire;

pub use client::AnthropicChatClient;
pub use dialect::{
    Dialect, EndpointForm, KNOWN_DIALECTS, Prefill, SchemaSupport, ThinkingBack, ThinkingForm,
};
pub use options::{API_VERSION, AnthropicOptions, Conflicts, DEFAULT_BASE_URL};
pub use raf_wire::{
    EndpointHealth, IRequestSigner, KeyHeader, Limits, ModelInfo, Timeouts, UnsignedRequest,
    reqwest,
};
pub use run_options::{
    AnthropicRunOptions, AnthropicRunOptionsExt, CacheLifetime, PromptCaching, Thinking,
};
