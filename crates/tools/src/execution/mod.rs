//! The execution engine: a batch of calls in, results out (contract D and H).

mod alone;
mod batch;
mod body;
mod digest;
mod executor;
mod invoke;
mod open_batch;
mod options;
mod permits;
mod prepare;
mod progress;
mod render;
mod runtime;
mod stopping;
mod unknown;

pub use alone::{ExecuteOptions, Execution, ExecutionUpdate};
pub use batch::{
    Batch, BatchContext, BatchEvent, FinishedCall, ICallRecorder, QueuedCall, StartingCall,
};
pub(crate) use body::panic_message;
pub use digest::ResultDigest;
pub use executor::ToolExecutor;
pub(crate) use invoke::{Terminal, panic_error};
pub use open_batch::{
    Applied, BatchCall, CallState, DoneCall, HoldPolicy, OpenBatch, address_of, rejection,
};
pub use options::{ErrorPolicy, ExecutionMode, ExecutionOptions, UnknownToolPolicy};
pub use prepare::{Preparation, PreparedCall, ReadyCall, SettledCall};
pub use runtime::check_runtime;
pub use stopping::cancelled;
