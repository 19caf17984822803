#![doc = include_str!("../README.md")]

pub mod arguments;
mod aws_events;
mod calls;
mod connection;
mod decoder;
mod dialogue;
mod endpoint;
mod error;
mod json;
mod limits;
mod models;
mod options;
mod outline;
mod parts;
mod reply;
mod request;
mod scanner;
mod signing;
mod sse;
mod think;
mod transport;
mod watch;

pub use calls::{CallAssembler, CallPiece, LEGACY_CALL};
pub use connection::Connection;
pub use decoder::Decoder;
pub use dialogue::{Dialogue, DialogueSetup, Opened, drive};
pub use endpoint::EndpointKind;
pub use error::{
    ErrorSign, RateLimitHeaders, Reporter, Said, SignRow, WireError, duration_text, in_band,
    read_body, read_error,
};
pub use json::{Json, repair};
pub use limits::{Limits, Timeouts, exceeded};
pub use models::{EndpointHealth, ModelInfo, read_models};
pub use options::EndpointOptions;
pub use outline::Outline;
pub use parts::{own_part, part_owner, provider_part};
pub use reply::WireReply;
pub use request::{
    BodyWriter, CallIds, Changed, Parameters, RenderedTools, Restore, SchemaForm, StrictForm,
    ToolRules, ToolsCache, WireTool, call_id, data_url, push_member, push_string,
    schema_for_answer, schema_for_tool, takes_null, tool_name,
};
pub use reqwest;
pub use scanner::JsonScanner;
pub use signing::{IRequestSigner, UnsignedRequest};
pub use sse::{EventDecoder, EventSink};
pub use think::{ThinkPart, ThinkTags};
pub use transport::{Address, Exchange, Head, HttpClient, KeyHeader, ReadFault, Transport};
