//! The runtime that bodies and timers need.

use std::panic::catch_unwind;
use std::time::Duration;

use raf_core::{Error, Result};

/// Checks that a tokio runtime with timers runs here.
///
/// # Errors
/// [`ErrorKind::Misuse`](raf_core::ErrorKind::Misuse) if none runs, or it has no timers.
pub fn check_runtime() -> Result<()> {
    if tokio::runtime::Handle::try_current().is_err() {
        return Err(Error::misuse(
            "tools and timers need a tokio runtime, and none is running here: call this, and poll \
             its stream, from inside `#[tokio::main]` or `Runtime::block_on`",
        ));
    }
    // tokio tells of missing timers by a panic alone.
    catch_unwind(|| drop(tokio::time::sleep(Duration::ZERO))).map_err(|_| {
        Error::misuse(
            "the tokio runtime that runs here has no timers, and deadlines need them: build it with \
             `Builder::enable_time` or `enable_all`",
        )
    })
}
