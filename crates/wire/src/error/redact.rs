//! Takes out of a server's words what must not be told on: keys, and what the request said.

use std::sync::Arc;

use bytes::Bytes;

/// What the messages of a request said: as the body has it, or as it was put together.
#[derive(Clone, Debug)]
pub struct Said(Pieces);

#[derive(Clone, Debug)]
enum Pieces {
    Body(Bytes),
    Messages(Vec<Arc<str>>),
}

impl Default for Said {
    /// Nothing.
    fn default() -> Self {
        Vec::new().into()
    }
}

impl From<Bytes> for Said {
    fn from(body: Bytes) -> Self {
        Self(Pieces::Body(body))
    }
}

impl From<Vec<Arc<str>>> for Said {
    fn from(messages: Vec<Arc<str>>) -> Self {
        Self(Pieces::Messages(messages))
    }
}

impl Said {
    fn is_empty(&self) -> bool {
        match &self.0 {
            Pieces::Body(body) => body.is_empty(),
            Pieces::Messages(messages) => messages.is_empty(),
        }
    }

    fn contains(&self, stretch: &[u8]) -> bool {
        let is_in = |text: &[u8]| memchr::memmem::find(text, stretch).is_some();
        match &self.0 {
            Pieces::Body(body) => is_in(body),
            Pieces::Messages(messages) => messages.iter().any(|text| is_in(text.as_bytes())),
        }
    }
}

/// The most characters of a server's message that are kept.
const LONGEST: usize = 500;

/// How many bytes of the request a message may repeat by chance.
const REPEATED: usize = 24;

/// Shorter values are words such as `none`, which servers without keys are given.
const SECRET: usize = 8;

const REDACTED: &str = "[redacted]";

/// Prefixes of keys as providers make them.
const KEY_PREFIXES: &[&str] = &[
    "sk-",
    "sk_",
    "gsk_",
    "xai-",
    "pplx-",
    "AIza",
    "hf_",
    "nvapi-",
    "fw_",
    "csk-",
    "r8_",
    "ghp_",
    "github_pat_",
    "dapi",
    "AKIA",
    "ya29.",
    "eyJ",
    "tgp_",
    "rk-",
    "pk-",
    "key-",
];

/// The message without keys (the configured one, and what looks like one) and without stretches of
/// the request, shortened.
pub(super) fn clean(message: &str, secrets: &[&str], request: &Said) -> String {
    let mut text: String = message
        .chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .take(4 * LONGEST)
        .collect();
    for secret in secrets.iter().filter(|secret| secret.len() >= SECRET) {
        text = text.replace(secret, REDACTED);
    }
    text = without_keys(&text);
    text = without_request(&text, request);
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn without_keys(text: &str) -> String {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-_.*+/=~".contains(letter);
    let mut cleaned = String::with_capacity(text.len());
    let mut after_bearer = false;
    let mut rest = text;
    while !rest.is_empty() {
        let length = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(length);
        if !word.is_empty() {
            let bare = word.trim_end_matches('.');
            let is_key = KEY_PREFIXES
                .iter()
                .any(|prefix| bare.starts_with(prefix) && bare.len() >= prefix.len() + 4);
            if is_key || (after_bearer && bare.len() >= 8) {
                cleaned.push_str(REDACTED);
                cleaned.push_str(&word[bare.len()..]);
            } else {
                cleaned.push_str(word);
            }
            after_bearer = bare.eq_ignore_ascii_case("bearer");
        }
        let separators = behind.find(is_part).unwrap_or(behind.len());
        cleaned.push_str(&behind[..separators]);
        rest = &behind[separators..];
    }
    cleaned
}

/// Replaces every stretch that also stands in the request.
fn without_request(text: &str, request: &Said) -> String {
    let bytes = text.as_bytes();
    if request.is_empty() || bytes.len() < REPEATED {
        return text.to_owned();
    }
    let mut cleaned = String::new();
    let mut kept = 0;
    let mut at = 0;
    while at + REPEATED <= bytes.len() {
        let window = &bytes[at..at + REPEATED];
        let is_start = text.is_char_boundary(at);
        if !is_start || !request.contains(window) {
            at += 1;
            continue;
        }
        let mut end = at + REPEATED;
        while end < bytes.len() && request.contains(&bytes[at..=end]) {
            end += 1;
        }
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        cleaned.push_str(&text[kept..at]);
        cleaned.push_str(REDACTED);
        kept = end;
        at = end;
    }
    cleaned.push_str(&text[kept..]);
    cleaned
}

#[cfg(test)]
mod tests {
    use super::Said;

    fn clean(message: &str, secrets: &[&str], request: &'static str) -> String {
        let body = Said::from(bytes::Bytes::from_static(request.as_bytes()));
        let cleaned = super::clean(message, secrets, &body);
        // Whether it is given whole or in pieces is the same.
        let pieces = Said::from(vec![request.into()]);
        assert_eq!(super::clean(message, secrets, &pieces), cleaned);
        cleaned
    }

    #[test]
    fn keys_are_taken_out() {
        assert_eq!(
            clean("Incorrect API key provided: sk-test-12345.", &[], ""),
            "Incorrect API key provided: [redacted]."
        );
        assert_eq!(
            clean("key hunter22 is bad", &["hunter22"], ""),
            "key [redacted] is bad"
        );
        assert_eq!(
            clean("Bearer abcdefgh12 refused", &[], ""),
            "Bearer [redacted] refused"
        );
        let innocent = "The model sk- gpt-4o-2024-11-20 (org-x) is not key-ed";
        assert_eq!(clean(innocent, &[], ""), innocent);
    }

    #[test]
    fn what_the_request_said_is_taken_out() {
        let request = r#"{"messages":[{"content":"my mother's maiden name is Smith"}]}"#;
        assert_eq!(
            clean(
                "bad input: my mother's maiden name is Smith, sorry",
                &[],
                request
            ),
            "bad input: [redacted], sorry"
        );
        assert_eq!(
            clean("the content is too long", &[], request),
            "the content is too long"
        );
    }

    #[test]
    fn long_messages_are_cut() {
        assert!(clean(&"ä".repeat(5000), &[], "").chars().count() <= 501);
    }
}
