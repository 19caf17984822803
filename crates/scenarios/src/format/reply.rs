//! What the model replies.

use schemars::JsonSchema;
use serde::Deserialize;

use super::request::Choice;

/// One reply of the model, or with `when` a rule for all requests that no other reply answers.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// Makes it a rule: it answers every request beyond the script that this fits. `{n}` in its call
    /// ids and arguments is the number of the request, from 1.
    #[serde(default)]
    pub when: Option<When>,
    /// What it thinks aloud before it speaks.
    #[serde(default)]
    pub reasoning: Option<String>,
    /// What it says.
    #[serde(default)]
    pub text: Option<String>,
    /// What it says, piece by piece.
    #[serde(default)]
    pub pieces: Vec<String>,
    /// The calls that it asks for: id, tool, raw argument text.
    #[serde(default)]
    pub calls: Vec<Call>,
    /// What it says and asks for in this order, where text, then calls is not enough.
    #[serde(default)]
    pub parts: Vec<ReplyPart>,
    /// Splits all texts and arguments into pieces of so many characters.
    #[serde(default)]
    pub in_pieces_of: Option<usize>,
    /// The provider's id of the message.
    #[serde(default)]
    pub message_id: Option<String>,
    /// Why it ends. Without it: tool if it holds calls, else end.
    #[serde(default)]
    pub stop: Option<Stop>,
    /// The tokens: input and output.
    #[serde(default)]
    pub usage: Option<(u64, u64)>,
    /// Counters of the provider's own, beside `usage`.
    #[serde(default)]
    pub counters: super::located::Ordered<u64>,
    /// How it breaks, behind all that stands above.
    #[serde(default)]
    pub breaks: Option<Break>,
}

/// A call: id, tool, raw argument text.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Call(pub String, pub String, pub String);

/// A part of a reply.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplyPart {
    /// Text.
    Text(String),
    /// Thinking.
    Reasoning(String),
    /// A call.
    Call(Call),
    /// A call whose argument text comes in pieces: id, tool, pieces.
    CallInPieces(String, String, Vec<String>),
    /// A call that ends although the model had not finished it.
    IncompleteCall(Call),
    /// A call that starts and never ends.
    OpenCall(Call),
    /// A report of tokens, cumulative within the reply.
    Usage(u64, u64),
    /// Goes on only when this latch is open.
    WaitsFor(String),
    /// The attempt fails and starts over: what was said is to be forgotten.
    AttemptReset(String),
    /// Refuses, in words.
    Refusal(String),
}

/// Why a reply ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It asks for tools.
    Tool,
    /// It has said all.
    End,
    /// The output limit was reached.
    Length,
    /// A filter stopped it.
    ContentFilter,
}

/// How a reply breaks.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Break {
    /// The provider refuses the request before there is a stream.
    Refused(BreakKind),
    /// The stream fails in the middle.
    Fails(BreakKind),
    /// The connection is lost: the stream ends without its end.
    Cut,
    /// The stream never goes on.
    Hangs,
    /// The stream never goes on, and notices a cancellation.
    HangsUntilCancelled,
}

/// Of which kind a failure of the model is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BreakKind {
    /// The connection broke.
    Transport,
    /// The provider failed.
    Server,
    /// The provider is overloaded.
    Overloaded,
    /// Too many requests.
    RateLimit,
    /// The key is not taken.
    Authentication,
    /// The request is not taken.
    InvalidRequest,
    /// The conversation is too long.
    ContextLength,
    /// The content is refused.
    ContentFilter,
    /// No answer in time.
    Timeout,
}

/// What a request must be like for a rule.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// Its tool choice.
    #[serde(default)]
    pub tool_choice: Option<Choice>,
    /// What the last message of the user holds.
    #[serde(default)]
    pub user_says: Option<String>,
}
