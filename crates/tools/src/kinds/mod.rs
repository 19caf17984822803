//! The four kinds of tool, as one object over the one trait: invokable, streamable, and their enhanced
//! forms whose output is typed parts.
//!
//! A kind is a property of the output, not of an interface: every tool can be called whole
//! ([`call_whole`]) or as a stream ([`call_stream`]); conversion runs the body once.

mod convert;
mod tool;

pub(crate) use convert::join;
pub use convert::{call_stream, call_whole};
pub use tool::{KindTool, KindToolBuilder};

#[cfg(test)]
mod tests;
