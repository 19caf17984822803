#![doc = include_str!("../README.md")]

mod context;
mod error;
mod execution;
pub mod name;
mod output;
mod registered;
mod schema;
mod tool;

pub use context::{Resumption, ToolContext, ToolContextBuilder};
pub use error::{Interrupt, ToolError, ToolErrorKind};
pub use output::ToolOutput;
pub use registered::RegisteredTool;
pub use schema::{ArgumentFault, CompiledSchema};
pub use tool::{ITool, ToolArguments, ToolDeadline, ToolLimits};
