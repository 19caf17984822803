//! The kinds of blocks beside text, thinking and calls, and which of them go back.

/// The type of the part that holds the citations of the text before it:
/// `{"type": "citations", "citations": […]}`.
pub(crate) const CITATIONS: &str = "citations";

/// Blocks of the server's own that are part of a turn, beside those that end in `_tool_result`.
const SERVER_BLOCKS: &[&str] = &[
    "server_tool_use",
    "mcp_tool_use",
    "compaction",
    "container_upload",
];

/// Whether a block of this type, neither text nor thinking nor a call, is sent back with its turn.
/// Others (`fallback`, types that are not known) are refused by the API.
pub(crate) fn goes_back(kind: Option<&str>) -> bool {
    kind.is_some_and(|kind| SERVER_BLOCKS.contains(&kind) || kind.ends_with("_tool_result"))
}
