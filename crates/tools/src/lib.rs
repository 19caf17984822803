#![doc = include_str!("../README.md")]

mod approval;
mod arguments;
mod callbacks;
mod context;
mod error;
mod execution;
mod function;
mod handlers;
mod kept;
mod kinds;
mod middleware;
pub mod name;
mod namespace;
mod output;
mod registered;
mod registry;
mod schema;
mod source;
mod tool;
mod toolset;
mod typed_output;

pub use approval::ApprovalRequiredTool;
pub use arguments::{InvalidArguments, check_arguments, prepare_arguments};
pub use callbacks::{CallbackCall, IToolCallback};
pub use context::{NestedReport, Resumption, ToolContext, ToolContextBuilder};
pub use error::{Interrupt, ToolError, ToolErrorKind};
pub use execution::{
    Applied, Batch, BatchCall, BatchContext, BatchEvent, CallState, DoneCall, ErrorPolicy,
    ExecuteOptions, Execution, ExecutionMode, ExecutionOptions, ExecutionUpdate, FinishedCall,
    HoldPolicy, ICallRecorder, OpenBatch, Preparation, PreparedCall, QueuedCall, ReadyCall,
    ResultDigest, SettledCall, StartingCall, ToolExecutor, UnknownToolPolicy, address_of,
    cancelled, check_runtime, rejection,
};
pub use function::{
    FunctionTool, IntoToolOutput, IntoToolValue, Json, ToolParams, dynamic_tool, parameters_schema,
    tool_fn, tool_fn_with_context,
};
pub use handlers::{IArgumentHandler, IResultRenderer, RenderingCall, ToolAliases};
pub use kinds::{KindTool, KindToolBuilder, call_stream, call_whole};
pub use middleware::{IToolMiddleware, Next, PreparingCall, ToolInvocation};
pub use namespace::NamespacedTools;
pub use output::ToolOutput;
pub use registered::RegisteredTool;
pub use registry::{ExecuteError, ToolRegistry, ToolRegistryBuilder};
pub use schema::{ArgumentFault, CompiledSchema};
pub use schemars;
pub use source::{IToolSource, ToolOptionsExt};
pub use tool::{ITool, ToolArguments, ToolDeadline, ToolLimits};
pub use toolset::{ToolEntry, ToolEntryKind, ToolSet, ToolSetBuilder};
pub use typed_output::{TypedAttempt, TypedChatClientExt, TypedOutput, TypedResponse};

/// What `raf_macros` expands to. No part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use {schemars, serde};
}
