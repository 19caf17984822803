//! What the model says in one answer, before any wire puts it into words.

use serde_json::json;

/// The content of one answer.
pub enum Answer {
    /// Text in this many tokens, each a delta of its own.
    Text { tokens: usize },
    /// Tool calls, the arguments of each in this many fragments.
    Calls { calls: Vec<Call>, fragments: usize },
}

/// One tool call.
pub struct Call {
    pub name: &'static str,
    pub id: String,
    pub arguments: String,
}

impl Call {
    /// The call at this place of an answer.
    pub fn new(index: usize, name: &'static str, arguments: String) -> Self {
        Self {
            name,
            id: call_id(index, &arguments),
            arguments,
        }
    }

    /// The arguments, cut into fragments of about the same length.
    pub fn fragments(&self, fragments: usize) -> impl Iterator<Item = &str> {
        let arguments = &self.arguments;
        assert!(arguments.is_ascii() && arguments.len() >= fragments);
        let cut = move |n: usize| n * arguments.len() / fragments;
        (0..fragments).map(move |n| &arguments[cut(n)..cut(n + 1)])
    }
}

/// The n-th token of the endless text: about four characters, some of which
/// JSON has to escape.
pub fn token(n: usize) -> &'static str {
    const TOKENS: [&str; 32] = [
        " the", " city", " of", " light", " has", " many", " small", " cafes", ",", " and", " old",
        " stone", " roads", " that", " lead", " to", " the", " river", ".", "\n\n", " You", " can",
        " walk", " \"slow", "ly\"", " from", " one", " bank", " to", " next", " in", " spring",
    ];
    TOKENS[n % TOKENS.len()]
}

/// The first tokens of the endless text.
pub fn text(tokens: usize) -> String {
    (0..tokens).map(token).collect()
}

/// Bytes of [`text`], without making it.
pub fn text_len(tokens: usize) -> usize {
    (0..tokens).map(|n| token(n).len()).sum()
}

pub fn lookup_number(round: usize, call: usize) -> u64 {
    (round * super::CALLS_PER_ROUND + call + 1) as u64
}

/// Arguments of a small call, see [`crate::tools::LookupArgs`].
pub fn lookup_arguments(round: usize, call: usize) -> String {
    json!({"city": format!("City {round}.{call}"), "number": lookup_number(round, call)})
        .to_string()
}

/// Arguments of a large call, see [`crate::tools::WriteArgs`].
pub fn big_arguments(call: usize) -> String {
    json!({"path": format!("src/module_{call}.rs"), "content": big_content(call)}).to_string()
}

pub fn big_content(call: usize) -> String {
    (0..300).map(|n| token(n + call)).collect()
}

/// The model's label of a call. Labels must differ between rounds; a hash of
/// the arguments does that.
pub fn call_id(index: usize, arguments: &str) -> String {
    let hash = arguments.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("call_{index}{hash:016x}AbCdEf")
}
