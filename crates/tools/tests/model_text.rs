//! What a model reads of bad arguments is what the guide shows.

use raf_core::ToolCall;
use raf_tools::{RegisteredTool, prepare_arguments, schemars::JsonSchema, tool_fn};
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only the schema is read")]
struct Search {
    query: String,
    shelves: Option<Vec<Shelf>>,
    #[serde(default)]
    limit: u8,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Shelf {
    Novels,
    Maps,
}

#[test]
fn the_guide_shows_what_the_model_reads() {
    let search = tool_fn("search", "", |_: Search| async {});
    let tool = RegisteredTool::new(search).unwrap();
    let call = ToolCall::new("c1", "search", r#"{"limit": 1000, "shelves": ["cds"]}"#);
    let text = prepare_arguments(&call, tool.schema())
        .unwrap_err()
        .to_string();
    let guide = include_str!("../../../docs/tools.md");
    assert!(guide.contains(&text), "{text}");
}
