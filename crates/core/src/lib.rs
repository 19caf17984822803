#![doc = include_str!("../README.md")]

mod approval;
mod builder;
mod cancellation;
mod client;
mod client_ext;
mod content;
mod declaration;
mod delegating;
mod emit;
mod error;
mod extensions;
mod finish;
mod fold;
mod identity;
mod json;
mod message;
mod normalise;
mod options;
mod record;
mod response;
mod run_store;
mod session;
mod session_store;
mod session_view;
mod step_host;
mod update;
mod usage;

pub use approval::{
    ApprovalDecision, ApprovalRequest, ApprovalScope, ClosedReason, PendingCall, RefusalReason,
    ToolApprovalResponse, WaitsFor,
};
pub use builder::{ChatClientBuilder, ChatClientLayer, LayerPlacement, LoopMarker};
pub use cancellation::Cancellation;
pub use client::{ChatClientMetadata, IChatClient, UpdateStream};
pub use client_ext::{ChatClientExt, collect, get_service};
pub use content::{
    ArgumentsFault, Content, ExtraFields, MediaContent, MediaSource, ProviderData,
    ReasoningContent, RefusalContent, SkipReason, TextContent, ToolCall, ToolCallBuilder,
    ToolErrorClass, ToolOutcome, ToolResult, ToolResultBuilder, TrustLabel, UnknownContent,
};
pub use declaration::ToolDeclaration;
pub use delegating::DelegatingChatClient;
pub use emit::{EmitStream, Emitter, emit_stream};
pub use error::{Error, ErrorKind, Result, RetryStatus};
pub use extensions::Extensions;
pub use finish::{AbandonedCall, BudgetLimit, Finish, FinishReason, TerminationCause};
pub use fold::ResponseFold;
pub use identity::{Occurrence, RunId, correlation_id};
pub use json::{canonical_json, canonical_object};
pub use message::{
    ChatMessage, ChatMessageBuilder, MessageRole, MessageSource, MessageStatus, RenderKey,
};
pub use normalise::{HistoryFault, all_differ, is_valid_history, normalise, validate_history};
pub use options::{
    ChatClientRunOptions, JsonSchemaFormat, ReasoningEffort, ResponseFormat, ToolChoice,
};
pub use record::{
    CallAnswer, CallFacts, CallRecord, CallStatus, PausedRun, RunRecord, SettledRequest, Settlement,
};
pub use response::{AgentResponse, LegSnapshot};
pub use run_store::{
    AnswerOutcome, ApprovalRule, ClaimOutcome, ClaimWatch, IRunStore, InMemoryRunStore,
    JournalEntry, JournalKey, JournalKind, PendingRequest, RunClaim, WriteOutcome,
};
pub use session::{BusyPolicy, ISession, Session, SessionChange, SessionLease, SessionRecord};
pub use session_store::{ISessionStore, InMemorySessionStore};
pub use session_view::SessionView;
pub use step_host::{
    BatchBody, DirectStepHost, DurableStepHost, IStepHost, IStepRecorder, Step, StepBody, StepCall,
    StepEntry, StepEvent,
};
pub use tokio_util::sync::CancellationToken;
pub use update::{
    AgentResponseUpdate, ErrorNotice, InterruptNotice, NestedUpdate, ResponseMetadata, ToolCallHead,
};
pub use usage::{NestedRun, RoundUsage, Usage};
