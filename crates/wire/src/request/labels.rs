//! Call ids and tool names in the forms that servers take.
//!
//! What fits is sent as it is. What does not is mapped by a hash of the whole, so that the same text
//! always gives the same label (prompt caches hold, and a message's JSON can be kept) and different
//! texts different ones, up to the odds of a 53-bit hash.

use std::borrow::Cow;

/// The form of call ids in a request. Ids that fit are sent as they are, others are mapped by a
/// hash, calls and results alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallIds {
    /// At most this many bytes: 40 for OpenAI (agno-agi/agno#5382).
    UpTo(usize),
    /// Nine letters or digits: Mistral (anomalyco/opencode#1680).
    NineAlphanumeric,
    /// Letters, digits, `_` and `-` alone: Anthropic (`tool_use.id: String should match pattern
    /// '^[a-zA-Z0-9_-]+$'`).
    Word,
}

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The longest tool name that OpenAI and most others take (openai/codex#8174).
const NAME_LENGTH: usize = 64;

/// A call id as the dialect wants it.
pub fn call_id(id: &str, form: CallIds) -> Cow<'_, str> {
    match form {
        CallIds::UpTo(length) if id.len() <= length => Cow::Borrowed(id),
        CallIds::UpTo(length) => {
            let mut label = format!("call_{}", digits(hash(id), 10));
            label.truncate(length);
            Cow::Owned(label)
        }
        CallIds::NineAlphanumeric => {
            if id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                Cow::Borrowed(id)
            } else {
                Cow::Owned(digits(hash(id), 9))
            }
        }
        CallIds::Word => {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
            if !id.is_empty() && id.bytes().all(fits) {
                Cow::Borrowed(id)
            } else {
                Cow::Owned(format!("call_{}", digits(hash(id), 10)))
            }
        }
    }
}

/// A tool name as all servers take it: `^[a-zA-Z0-9_-]{1,64}$`.
pub fn tool_name(name: &str) -> Cow<'_, str> {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if (1..=NAME_LENGTH).contains(&name.len()) && name.bytes().all(is_fit) {
        return Cow::Borrowed(name);
    }
    let mut label: String = name
        .chars()
        .map(|letter| match letter {
            letter if letter.is_ascii() && is_fit(letter as u8) => letter,
            _ => '_',
        })
        .take(NAME_LENGTH - 7)
        .collect();
    label.push('_');
    label.push_str(&digits(hash(name), 6));
    Cow::Owned(label)
}

/// FNV-1a, with its bits mixed: short texts differ in the low bits only.
fn hash(text: &str) -> u64 {
    let mut hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    for shift in [33, 29, 32] {
        hash = (hash ^ (hash >> shift)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    }
    hash
}

fn digits(mut hash: u64, count: usize) -> String {
    (0..count)
        .map(|_| {
            let digit = usize::try_from(hash % 62).unwrap_or(0);
            hash /= 62;
            char::from(DIGITS[digit])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{CallIds, call_id, tool_name};

    #[test]
    fn what_fits_is_sent_as_it_is() {
        assert_eq!(call_id("Ab3dE6gH9", CallIds::NineAlphanumeric), "Ab3dE6gH9");
        assert_eq!(call_id("call_1", CallIds::UpTo(40)), "call_1");
        assert_eq!(tool_name("get-weather_2"), "get-weather_2");
    }

    #[test]
    fn what_does_not_fit_is_mapped_to_labels_that_differ() {
        let ids: Vec<String> = (0..10_000).map(|n| format!("call_abcdefgh_{n}")).collect();
        let labels: HashSet<_> = ids
            .iter()
            .map(|id| call_id(id, CallIds::NineAlphanumeric).into_owned())
            .collect();
        assert_eq!(labels.len(), ids.len());
        assert!(labels.iter().all(|label| label.len() == 9));
        assert!(call_id(&"x".repeat(60), CallIds::UpTo(40)).len() <= 40);

        let (slash, dot) = (tool_name("files.read/all"), tool_name("files/read.all"));
        assert!(slash.starts_with("files_read_all_"));
        assert_ne!(slash, dot);
        assert_eq!(tool_name(&"x".repeat(100)).len(), 64);
        assert!(!tool_name("").is_empty());
    }
}
