//! What writers of requests share: labels, schemas, tools, and JSON text that grows piece by piece.

mod body;
mod labels;
mod media;
mod restore;
mod schema;
mod tools;

pub use body::{BodyWriter, push_member, push_string};
pub use labels::{CallIds, call_id, tool_name};
pub use media::data_url;
pub use restore::{Changed, Restore};
pub use schema::{Parameters, SchemaForm, schema_for_answer, schema_for_tool, takes_null};
pub use tools::{RenderedTools, StrictForm, ToolRules, ToolsCache, WireTool};
