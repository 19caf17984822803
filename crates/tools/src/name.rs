//! Which names every provider takes, and how to make one.

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

/// A legal name of a prefix and a name: `prefix__name`.
///
/// Characters that providers refuse become `_`, and what is over [`MAX_LENGTH`] is cut from the end.
/// A name that was changed in such a way ends in `_` and eight hexadecimal digits of a hash of both
/// parts, so that names which differed still differ, and the result is the same on every machine
/// and in every version.
pub fn join(prefix: &str, name: &str) -> String {
    let whole = format!("{prefix}{SEPARATOR}{name}");
    if is_valid(&whole) {
        return whole;
    }
    let mut legal: String = whole
        .chars()
        .map(|character| match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => character,
            _ => '_',
        })
        .take(MAX_LENGTH - 9)
        .collect();
    legal.push('_');
    legal.push_str(&format!("{:016x}", fnv1a(whole.as_bytes()))[8..]);
    legal
}

const SEPARATOR: &str = "__";

/// The 64-bit FNV-1a hash: fixed for ever, unlike the standard library's.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
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

#[cfg(test)]
mod tests {
    use super::{MAX_LENGTH, is_valid, join};

    #[test]
    fn valid_names() {
        for (name, expected) in [
            ("add", true),
            ("a-b_C9", true),
            ("", false),
            ("a b", false),
            ("a.b", false),
            ("größe", false),
            (&"x".repeat(64), true),
            (&"x".repeat(65), false),
        ] {
            assert_eq!(is_valid(name), expected, "{name}");
        }
    }

    #[test]
    fn joined_names_are_legal_and_stay_apart() {
        assert_eq!(join("files", "read"), "files__read");
        let long = "n".repeat(70);
        let cut = join("files", &long);
        assert_eq!(cut.len(), MAX_LENGTH);
        assert!(is_valid(&cut));
        assert_eq!(cut, join("files", &long), "the same each time");
        assert_ne!(cut, join("files", &format!("{long}x")));
        assert_ne!(join("a", "b.c"), join("a", "b c"));
        assert_eq!(join("a", "b.c"), "a__b_c_3cc8afcb");
    }
}
