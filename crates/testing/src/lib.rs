#![doc = include_str!("../README.md")]

mod latch;
mod probe;
mod reply;
mod request;
mod scripted;

pub use latch::Latch;
pub use probe::Probe;
pub use reply::Reply;
pub use request::{ScriptedRequest, outcome_word, transcript_lines};
pub use scripted::ScriptedChatClient;
