#![doc = include_str!("../README.md")]

pub mod contract;
mod endpoint;
mod faulty_run_store;
pub mod invariants;
mod latch;
mod polls;
mod probe;
#[cfg(feature = "random")]
pub mod random;
mod replay;
mod reply;
mod request;
mod script;
mod scripted;
mod server;
mod tools;
#[cfg(feature = "wire")]
pub mod wire;

pub use endpoint::{EndpointWire, ScriptedEndpoint};
pub use faulty_run_store::{FaultyRunStore, RecordWrite, WriteFault};
pub use latch::Latch;
pub use polls::{Interrupted, PollRun, cancel_after_polls, drop_after_polls, poll_n};
pub use probe::Probe;
pub use replay::{RecordedStep, ReplayHost, ReplayedChatClient};
pub use reply::Reply;
pub use request::{ScriptedRequest, outcome_word, transcript_lines};
pub use scripted::ScriptedChatClient;
pub use server::{HttpRequest, HttpResponse, HttpServer};
pub use tools::{
    Behaviour, CountingTool, EchoTool, FailingTool, HangingTool, PanickingTool, RecordedCall,
    ScriptedTool, ToolLog,
};
