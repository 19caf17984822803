//! Settings that there are not.

use raf_macros::tool;

/// Is unknown.
#[tool(aproval)]
async fn misspelt() {}

/// Is unknown, with a value.
#[tool(title = "x")]
async fn title() {}

/// Has a bad name.
#[tool(name = "my tool")]
async fn name() {}

/// Says it twice.
#[tool(approval, approval)]
async fn twice() {}

/// Has a name that providers refuse.
#[tool]
async fn größe() {}

fn main() {}
