//! Which names every provider takes.

use raf_core::{Error, Result};

/// The longest name, in characters.
pub const MAX_LENGTH: usize = 64;

/// Whether every provider takes this name: 1 to 64 of `a-z A-Z 0-9 _ -`.
pub fn is_valid(name: &str) -> bool {
    (1..=MAX_LENGTH).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

pub(crate) fn check(name: &str) -> Result<()> {
    if is_valid(name) {
        return Ok(());
    }
    Err(Error::configuration(format!(
        "'{}' is no tool name that every provider takes: use 1 to {MAX_LENGTH} of a-z, A-Z, 0-9, _ \
         and -",
        name.chars().take(80).collect::<String>()
    )))
}
