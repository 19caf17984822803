//! Types that cannot be arguments or results.

use raf_macros::tool;

struct Opaque;

/// Takes what has no schema.
#[tool]
async fn takes(value: Opaque) {
    drop(value);
}

/// Returns what does not serialise.
#[tool]
async fn returns() -> Opaque {
    Opaque
}

/// Returns what does not serialise, or fails.
#[tool]
async fn may_fail() -> Result<Opaque, String> {
    Ok(Opaque)
}

fn main() {}
