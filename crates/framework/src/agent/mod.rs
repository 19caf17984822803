//! The agent runtime: a configured stack, and conversations that go through it.
//!
//! Reading order: `config` is what an agent is made of, `request` what it is asked, `runtime` a run,
//! `conversation` its session; `context` and `context_client` what comes from context providers,
//! `tool` and `nested_run` an agent that another one calls.

mod config;
mod context;
mod context_client;
mod conversation;
mod nested_run;
mod nested_store;
mod request;
mod runtime;
mod settings;
mod tool;

pub use self::config::{AgentConfig, AgentConfigBuilder};
pub use self::context::{
    ContextOutcome, ContextRequest, IContextProvider, ProvidedContext, ProviderFailure,
};
pub use self::context_client::ContextChatClient;
pub use self::request::AgentRequest;
pub use self::runtime::{AgentRun, AgentRuntime};
pub use self::tool::AgentTool;
