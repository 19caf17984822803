//! Functions that cannot be tools.

use raf_macros::tool;

/// Blocks.
#[tool]
fn not_async() {}

/// Takes any type.
#[tool]
async fn generic<T>(value: T) {}

/// Borrows.
#[tool]
async fn borrows(text: &str) {}

/// Borrows its context.
#[tool]
async fn borrows_context(context: &raf_tools::ToolContext) {}

/// Has two contexts.
#[tool]
async fn two(a: raf_tools::ToolContext, b: raf_tools::ToolContext) {}

/// Has no name for its parameter.
#[tool]
async fn pattern((a, b): (u8, u8)) {}

#[tool]
async fn undescribed() {}

struct Server;

impl Server {
    /// Has a receiver.
    #[tool]
    async fn method(&self) {}
}

fn main() {}
