//! The agent runtime: a configured stack, and conversations that go through it.
//!
//! Reading order: `config` is what an agent is made of, `request` what it is asked, `runtime` a run,
//! `conversation` its session; `context` and `context_client` what comes from context providers.

mod config;
mod context;
mod context_client;
mod conversation;
mod request;
mod runtime;
mod settings;

pub use self::config::{AgentConfig, AgentConfigBuilder};
pub use self::context::{
    ContextOutcome, ContextRequest, IContextProvider, ProvidedContext, ProviderFailure,
};
pub use self::context_client::ContextChatClient;
pub use self::request::AgentRequest;
pub use self::runtime::{AgentRun, AgentRuntime};
