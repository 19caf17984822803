//! The model of a scenario: the scripted client, the endpoint on loopback, or the caller's own.

use std::sync::Arc;

use raf_anthropic::{AnthropicChatClient, AnthropicOptions};
use raf_core::{Error, ErrorKind, FinishReason, IChatClient, ToolChoice, Usage};
use raf_openai::{OpenAiChatClient, OpenAiOptions, OpenAiResponsesChatClient};
use raf_testing::{
    EndpointWire, Latch, Probe, Reply, ScriptedChatClient, ScriptedEndpoint, ScriptedRequest,
};

use super::body::Outside;
use crate::format::{self, Break, BreakKind, Choice, ReplyPart, Stop, When};

/// The model of a scenario.
pub(crate) enum Model {
    Scripted(ScriptedChatClient),
    Http(ScriptedEndpoint, Arc<dyn IChatClient>),
    Own(Arc<dyn IChatClient>),
}

impl Model {
    pub(crate) fn scripted(rules: Vec<format::Reply>, outside: &Outside) -> Self {
        let client = ScriptedChatClient::new([]);
        Self::Scripted(match rules_reply(rules, outside) {
            Some(rule) => client.with_fallback(rule),
            None => client,
        })
    }

    pub(crate) fn http(
        wire: EndpointWire,
        rules: Vec<format::Reply>,
        outside: &Outside,
    ) -> Result<Self, String> {
        let endpoint = ScriptedEndpoint::speaking(wire, []);
        let endpoint = match rules_reply(rules, outside) {
            Some(rule) => endpoint.with_fallback(rule),
            None => endpoint,
        };
        let client = provider(wire, &endpoint.url()).map_err(|error| error.to_string())?;
        Ok(Self::Http(endpoint, client))
    }

    pub(crate) fn client(&self) -> Arc<dyn IChatClient> {
        match self {
            Self::Scripted(client) => Arc::new(client.clone()),
            Self::Http(_, client) | Self::Own(client) => Arc::clone(client),
        }
    }

    pub(crate) fn probe(&self) -> Option<Probe> {
        match self {
            Self::Scripted(client) => Some(client.probe().clone()),
            Self::Http(..) | Self::Own(_) => None,
        }
    }

    pub(crate) fn push(&self, reply: Reply) {
        match self {
            Self::Scripted(client) => client.push(reply),
            Self::Http(endpoint, _) => endpoint.push(reply),
            Self::Own(_) => {}
        }
    }

    /// How many requests reached it; unknown of a caller's own.
    pub(crate) fn requests(&self) -> Option<usize> {
        match self {
            Self::Scripted(client) => Some(client.request_count()),
            Self::Http(endpoint, _) => Some(endpoint.requests().len()),
            Self::Own(_) => None,
        }
    }

    /// The requests as they were read back from the wire.
    pub(crate) fn wire_requests(&self) -> Vec<ScriptedRequest> {
        match self {
            Self::Http(endpoint, _) => endpoint.requests(),
            Self::Scripted(_) | Self::Own(_) => Vec::new(),
        }
    }

    /// What went against the script.
    pub(crate) fn violations(&self) -> Vec<String> {
        match self {
            Self::Scripted(client) => client.violations(),
            Self::Http(endpoint, _) => endpoint.violations(),
            Self::Own(_) => Vec::new(),
        }
    }
}

/// The provider that speaks this protocol.
fn provider(wire: EndpointWire, base_url: &str) -> raf_core::Result<Arc<dyn IChatClient>> {
    const MODEL: &str = "scripted-model";
    let openai = || {
        OpenAiOptions::new()
            .with_base_url(base_url)
            .with_model(MODEL)
    };
    Ok(match wire {
        EndpointWire::ChatCompletions => Arc::new(OpenAiChatClient::new(openai())?),
        EndpointWire::Responses => Arc::new(OpenAiResponsesChatClient::new(openai())?),
        EndpointWire::Messages => Arc::new(AnthropicChatClient::new(
            AnthropicOptions::new()
                .with_base_url(base_url)
                .with_model(MODEL),
        )?),
        other => {
            let text = format!("no provider speaks {other:?}");
            return Err(Error::new(ErrorKind::Configuration, text));
        }
    })
}

/// One reply that chooses among rules when the request is known.
fn rules_reply(rules: Vec<format::Reply>, outside: &Outside) -> Option<Reply> {
    if rules.is_empty() {
        return None;
    }
    let outside = outside.clone();
    Some(Reply::from_fn(move |request| {
        let fitting = rules
            .iter()
            .find(|rule| rule.when.as_ref().is_some_and(|when| holds(when, request)));
        match fitting {
            Some(rule) => scripted(&numbered(rule, request.index + 1), &outside),
            None => Reply::new().expect(|_| panic!("no reply and no rule fits it")),
        }
    }))
}

fn holds(when: &When, request: &ScriptedRequest) -> bool {
    let choice = request.options.tool_choice.as_ref();
    when.tool_choice
        .as_ref()
        .is_none_or(|wanted| is_choice(choice, wanted))
        && when
            .user_says
            .as_ref()
            .is_none_or(|text| request.user_text().contains(text))
}

/// Whether a request's tool choice is this one.
pub(crate) fn is_choice(choice: Option<&ToolChoice>, wanted: &Choice) -> bool {
    match wanted {
        Choice::Unset => choice.is_none(),
        Choice::Auto => matches!(choice, None | Some(ToolChoice::Auto)),
        Choice::None => choice == Some(&ToolChoice::None),
        Choice::Required => choice == Some(&ToolChoice::Required),
        Choice::Forced => choice.is_some_and(ToolChoice::is_forced),
        Choice::Tool(name) => {
            matches!(choice, Some(ToolChoice::Named(own)) if own == name)
        }
    }
}

/// A rule's reply with the number of the request in its call ids and arguments.
fn numbered(rule: &format::Reply, number: usize) -> format::Reply {
    let mut reply = rule.clone();
    for call in &mut reply.calls {
        call.0 = call.0.replace("{n}", &number.to_string());
        call.2 = call.2.replace("{n}", &number.to_string());
    }
    reply
}

/// A reply as the fakes play it.
pub(crate) fn scripted(reply: &format::Reply, outside: &Outside) -> Reply {
    if let Some(Break::Refused(kind)) = &reply.breaks {
        return Reply::error_at_start(error(*kind));
    }
    let mut built = Reply::new();
    if let Some(text) = &reply.reasoning {
        built = built.reasoning(text);
    }
    for text in reply.text.iter().chain(&reply.pieces) {
        built = built.then_text(text);
    }
    for call in &reply.calls {
        built = built.call(&call.0, &call.1, &call.2);
    }
    for one in &reply.parts {
        built = part(built, one, outside);
    }
    if let Some((input, output)) = reply.usage {
        let mut usage = Usage::new(input, output);
        for (name, count) in reply.counters.iter() {
            usage = usage.with_extra(name, *count);
        }
        built = built.usage_report(usage);
    }
    if let Some(id) = &reply.message_id {
        built = built.message_id(id.as_str());
    }
    if let Some(characters) = reply.in_pieces_of {
        built = built.in_pieces_of(characters);
    }
    built = match reply.stop {
        None => built,
        Some(Stop::Tool) => built.finish(FinishReason::ToolCalls),
        Some(Stop::End) => built.finish(FinishReason::Stop),
        Some(Stop::Length) => built.length(),
        Some(Stop::ContentFilter) => built.finish(FinishReason::ContentFilter),
    };
    match &reply.breaks {
        None | Some(Break::Refused(_)) => built,
        Some(Break::Fails(kind)) => built.error(error(*kind)),
        Some(Break::Cut) => built.cut(),
        Some(Break::Hangs) => built.hang(),
        Some(Break::HangsUntilCancelled) => built.hang_until_cancelled(),
    }
}

fn part(reply: Reply, part: &ReplyPart, outside: &Outside) -> Reply {
    match part {
        ReplyPart::Text(text) => reply.then_text(text),
        ReplyPart::Reasoning(text) => reply.reasoning(text),
        ReplyPart::Call(call) => reply.call(&call.0, &call.1, &call.2),
        ReplyPart::CallInPieces(id, tool, pieces) => {
            reply.call_in_pieces(id, tool, pieces.iter().map(String::as_str))
        }
        ReplyPart::IncompleteCall(call) => reply.incomplete_call(&call.0, &call.1, &call.2),
        ReplyPart::OpenCall(call) => reply.open_call(&call.0, &call.1, &call.2),
        ReplyPart::Usage(input, output) => reply.usage(*input, *output),
        ReplyPart::WaitsFor(latch) => {
            let latch: Latch = outside.latch(latch);
            reply.gate(&latch)
        }
        ReplyPart::AttemptReset(reason) => reply.attempt_reset(reason),
        ReplyPart::Refusal(text) => reply.content(raf_core::Content::Refusal(
            raf_core::RefusalContent::new(text),
        )),
    }
}

fn error(kind: BreakKind) -> Error {
    let (kind, text) = match kind {
        BreakKind::Transport => (ErrorKind::Transport, "connection lost"),
        BreakKind::Server => (ErrorKind::Server, "the provider failed"),
        BreakKind::Overloaded => (ErrorKind::Overloaded, "the provider is overloaded"),
        BreakKind::RateLimit => (ErrorKind::RateLimit, "too many requests"),
        BreakKind::Authentication => (ErrorKind::Authentication, "the key is not taken"),
        BreakKind::InvalidRequest => (ErrorKind::InvalidRequest, "the request is not taken"),
        BreakKind::ContextLength => (ErrorKind::ContextLength, "the conversation is too long"),
        BreakKind::ContentFilter => (ErrorKind::ContentFilter, "the content is refused"),
        BreakKind::Timeout => (ErrorKind::Timeout, "no answer in time"),
    };
    Error::new(kind, text)
}
