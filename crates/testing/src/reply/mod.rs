//! What a scripted model says: one builder for the scripted client and the scripted endpoint.

mod play;
mod step;

use std::fmt;
use std::sync::Arc;

use raf_core::{
    AgentResponseUpdate, Content, Error, FinishReason, ProviderData, ResponseMetadata, ToolCall,
    ToolCallHead, Usage,
};

use crate::latch::Latch;
use crate::request::ScriptedRequest;

pub(crate) use play::play;
pub(crate) use step::Step;

type Rule = Arc<dyn Fn(&ScriptedRequest) -> Reply + Send + Sync>;
type Expectation = Arc<dyn Fn(&ScriptedRequest) + Send + Sync>;

/// One reply of a scripted model, built step by step in the order in which it streams.
///
/// What is not said is added: the message's start and end, and the finish, whose reason is
/// [`FinishReason::ToolCalls`] if the reply holds calls, else [`FinishReason::Stop`]. A fault
/// ([`error`](Reply::error), [`hang`](Reply::hang), [`cut`](Reply::cut)) ends the script where it
/// stands: nothing after it is played.
///
/// ```
/// use raf_testing::Reply;
///
/// let reply = Reply::text("Let me look.")
///     .call("c1", "weather", r#"{"city": "Bern"}"#)
///     .usage(100, 10);
/// ```
#[derive(Clone, Default)]
pub struct Reply {
    pub(crate) steps: Vec<Step>,
    pub(crate) error_at_start: Option<Error>,
    pub(crate) finish: Option<FinishReason>,
    pub(crate) message_id: Option<Box<str>>,
    pub(crate) raw: bool,
    pub(crate) rule: Option<Rule>,
    pub(crate) expectation: Option<Expectation>,
    pieces_of: Option<usize>,
    next_position: u32,
}

impl Reply {
    /// An empty reply: a message that says nothing, then the finish.
    pub fn new() -> Self {
        Self::default()
    }

    /// A reply that says this.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new().then_text(text)
    }

    /// A reply that says this, one update per piece.
    pub fn text_pieces(pieces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        pieces.into_iter().fold(Self::new(), Self::then_text)
    }

    /// A reply that asks for these calls: id, tool and raw argument text of each.
    pub fn calls<'a>(calls: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>) -> Self {
        calls
            .into_iter()
            .fold(Self::new(), |reply, (id, tool, arguments)| {
                reply.call(id, tool, arguments)
            })
    }

    /// Exactly these updates and nothing else: no message is framed, no finish is added.
    pub fn raw(updates: impl IntoIterator<Item = AgentResponseUpdate>) -> Self {
        let mut reply = Self::new().updates(updates);
        reply.raw = true;
        reply
    }

    /// A reply that is made when the request is known: "if the tool choice is auto, then …".
    pub fn from_fn(rule: impl Fn(&ScriptedRequest) -> Self + Send + Sync + 'static) -> Self {
        Self {
            rule: Some(Arc::new(rule)),
            ..Self::default()
        }
    }

    /// A reply that is refused before there is a stream: `run` itself returns this error. An
    /// endpoint turns it into an HTTP error.
    pub fn error_at_start(error: Error) -> Self {
        Self {
            error_at_start: Some(error),
            ..Self::default()
        }
    }

    /// Says more: one update, unless [`in_pieces_of`](Reply::in_pieces_of) splits it.
    pub fn then_text(self, text: impl Into<String>) -> Self {
        self.step(Step::Text(text.into()))
    }

    /// Thinks aloud.
    pub fn reasoning(self, text: impl Into<String>) -> Self {
        self.step(Step::Reasoning(text.into()))
    }

    /// Gives opaque data of the reasoning before it.
    pub fn reasoning_data(self, data: ProviderData) -> Self {
        self.step(Step::ReasoningData(data))
    }

    /// Adds a whole part: refusal, media, unknown content.
    pub fn content(self, content: impl Into<Content>) -> Self {
        self.step(Step::Content(content.into()))
    }

    /// Asks for a call, with its argument text exactly as given.
    pub fn call(self, id: &str, tool: &str, arguments: &str) -> Self {
        self.call_in_pieces(id, tool, [arguments])
    }

    /// Asks for a call whose argument text comes in these pieces.
    pub fn call_in_pieces<'a>(
        self,
        id: &str,
        tool: &str,
        pieces: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let pieces: Vec<&str> = pieces.into_iter().collect();
        let (reply, position) = self.start_call(id, tool);
        let reply = pieces.iter().fold(reply, |reply, piece| {
            reply.call_piece(position, (*piece).to_owned())
        });
        reply.end_call(position, ToolCall::new(id, tool, pieces.concat()))
    }

    /// Asks for calls that stream at the same time: all start, their pieces come in turn, all end.
    pub fn interleaved_calls<'a, P>(
        mut self,
        calls: impl IntoIterator<Item = (&'a str, &'a str, P)>,
    ) -> Self
    where
        P: IntoIterator<Item = &'a str>,
    {
        let mut open = Vec::new();
        for (id, tool, pieces) in calls {
            let (reply, position) = self.start_call(id, tool);
            self = reply;
            open.push((position, id, tool, pieces.into_iter().collect::<Vec<_>>()));
        }
        let most = open.iter().map(|(.., pieces)| pieces.len()).max();
        for turn in 0..most.unwrap_or(0) {
            for (position, .., pieces) in &open {
                if let Some(piece) = pieces.get(turn) {
                    self = self.call_piece(*position, (*piece).to_owned());
                }
            }
        }
        for (position, id, tool, pieces) in open {
            self = self.end_call(position, ToolCall::new(id, tool, pieces.concat()));
        }
        self
    }

    /// A call that ends although the model had not finished it, as a reply cut by its limit has.
    pub fn incomplete_call(self, id: &str, tool: &str, arguments: &str) -> Self {
        let (reply, position) = self.start_call(id, tool);
        let call = ToolCall::builder(id, tool, arguments).complete(false);
        reply
            .call_piece(position, arguments.to_owned())
            .end_call(position, call.build())
    }

    /// A call that starts and never ends: put a fault behind it.
    pub fn open_call(self, id: &str, tool: &str, arguments: &str) -> Self {
        let (reply, position) = self.start_call(id, tool);
        reply.call_piece(position, arguments.to_owned())
    }

    /// Reports tokens. Reports of one reply are cumulative: the last one counts.
    pub fn usage(self, input_tokens: u64, output_tokens: u64) -> Self {
        self.usage_report(Usage::new(input_tokens, output_tokens))
    }

    /// Reports tokens with counters beyond input and output.
    pub fn usage_report(self, usage: Usage) -> Self {
        self.step(Step::Usage(usage))
    }

    /// Says something of the reply as a whole.
    pub fn metadata(self, metadata: ResponseMetadata) -> Self {
        self.step(Step::Metadata(metadata))
    }

    /// Gives the message a provider's id.
    pub fn message_id(mut self, id: impl Into<Box<str>>) -> Self {
        self.message_id = Some(id.into());
        self
    }

    /// Fails and starts over: what the reply has said so far is to be forgotten.
    pub fn attempt_reset(mut self, reason: impl Into<String>) -> Self {
        self.next_position = 0;
        self.step(Step::Reset(reason.into()))
    }

    /// Any update, at this place.
    pub fn update(self, update: AgentResponseUpdate) -> Self {
        self.step(Step::Update(update))
    }

    /// Any updates, at this place.
    pub fn updates(self, updates: impl IntoIterator<Item = AgentResponseUpdate>) -> Self {
        updates.into_iter().fold(self, Self::update)
    }

    /// Ends for this reason.
    pub fn finish(mut self, reason: FinishReason) -> Self {
        self.finish = Some(reason);
        self
    }

    /// Ends because the output limit was reached. The message is marked incomplete.
    pub fn length(self) -> Self {
        self.finish(FinishReason::Length)
    }

    /// Goes on only when the test opens this latch.
    pub fn gate(self, latch: &Latch) -> Self {
        self.step(Step::Gate(latch.clone()))
    }

    /// Fails here: the error is the last item.
    pub fn error(self, error: Error) -> Self {
        self.step(Step::Error(error))
    }

    /// Never goes on: pending until it is dropped, whatever the token says.
    pub fn hang(self) -> Self {
        self.step(Step::Hang)
    }

    /// Goes on only when the run is cancelled, then fails as a provider does that sees the token.
    pub fn hang_until_cancelled(self) -> Self {
        self.step(Step::HangUntilCancelled)
    }

    /// Ends here without a terminal item. (A real provider reports that as an error: use
    /// [`error`](Reply::error) to play one. Over HTTP the connection breaks.)
    pub fn cut(self) -> Self {
        self.step(Step::Cut { clean: false })
    }

    /// As [`cut`](Reply::cut); over HTTP the body ends in order, as if the reply were whole.
    pub fn cut_cleanly(self) -> Self {
        self.step(Step::Cut { clean: true })
    }

    /// Splits every text and argument text into pieces of this many characters.
    pub fn in_pieces_of(mut self, characters: usize) -> Self {
        self.pieces_of = Some(characters.max(1));
        self
    }

    /// Looks at the request when it comes: a panic in `check` (`assert!` and its like) is recorded
    /// as a violation, and the reply is an error instead.
    pub fn expect(mut self, check: impl Fn(&ScriptedRequest) + Send + Sync + 'static) -> Self {
        self.expectation = Some(Arc::new(check));
        self
    }

    /// The steps as they stream, texts split.
    pub(crate) fn streamed_steps(&self) -> Vec<Step> {
        match self.pieces_of {
            Some(characters) => step::split(&self.steps, characters),
            None => self.steps.clone(),
        }
    }

    /// What the reply says of itself as a whole.
    pub(crate) fn metadata_reports(&self) -> impl Iterator<Item = &ResponseMetadata> {
        self.steps.iter().filter_map(|step| match step {
            Step::Metadata(metadata) => Some(metadata),
            _ => None,
        })
    }

    /// Why the reply ends.
    pub(crate) fn finish_reason(&self) -> FinishReason {
        self.finish.clone().unwrap_or_else(|| {
            let attempt = self.steps.rsplit(|step| matches!(step, Step::Reset(_)));
            let mut last = attempt.take(1).flatten();
            if last.any(|step| matches!(step, Step::CallEnd { .. })) {
                FinishReason::ToolCalls
            } else {
                FinishReason::Stop
            }
        })
    }

    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    fn start_call(mut self, id: &str, tool: &str) -> (Self, u32) {
        let position = self.next_position;
        self.next_position += 1;
        let head = ToolCallHead::new(id, tool);
        (self.step(Step::CallStart { position, head }), position)
    }

    fn call_piece(self, position: u32, delta: String) -> Self {
        self.step(Step::CallArguments { position, delta })
    }

    fn end_call(self, position: u32, call: ToolCall) -> Self {
        self.step(Step::CallEnd { position, call })
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("steps", &self.steps.len())
            .field("rule", &self.rule.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
