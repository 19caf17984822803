//! The practical floor: reqwest, eventsource-stream and serde with types for
//! exactly the fields that are needed, as someone would write it by hand. What
//! an API looks like stands in the binaries; request, reading and loop are here.

use bench_common::spec::{self, Scenario, Turn, Wire};
use bench_common::tools::{LookupArgs, WriteArgs, lookup};
use bench_common::{Library, Outcome, Result};
use eventsource_stream::Eventsource;
use futures_util::StreamExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The types of one API.
pub trait Api: Send + Sync + 'static {
    /// The column's name.
    const NAME: &'static str;
    const WIRE: Wire;

    type Message: Clone + Send + Sync;
    type Request<'a>: Serialize + Send;
    type Event: DeserializeOwned + Send;

    fn headers(request: reqwest::RequestBuilder) -> reqwest::RequestBuilder;

    /// The system prompt as a message, if it is one.
    fn system(text: &str) -> Option<Self::Message>;
    fn user(text: &str) -> Self::Message;
    fn assistant(text: &str) -> Self::Message;

    fn request<'a>(
        model: &'a str,
        messages: &'a [Self::Message],
        tools: &'a [Value],
    ) -> Self::Request<'a>;

    /// Takes in one event of a reply.
    fn add(reply: &mut Reply, event: Self::Event);

    /// Appends a reply with calls, and the result of each.
    fn append(messages: &mut Vec<Self::Message>, reply: Reply, results: Vec<String>) -> Result<()>;
}

/// A reply put together from its events.
#[derive(Default)]
pub struct Reply {
    pub text: String,
    pub calls: Vec<Call>,
    pub finish_reason: Option<String>,
    pub tokens: u64,
}

/// A tool call put together from its pieces.
#[derive(Default)]
pub struct Call {
    /// Where the API says that it stands.
    pub place: usize,
    pub id: String,
    pub name: String,
    pub arguments: String,
}

impl Reply {
    /// The call at this place, begun if there is none yet.
    pub fn call_at(&mut self, place: usize) -> &mut Call {
        let known = self.calls.iter().rposition(|call| call.place == place);
        let at = known.unwrap_or_else(|| {
            self.calls.push(Call {
                place,
                ..Call::default()
            });
            self.calls.len() - 1
        });
        &mut self.calls[at]
    }
}

/// A client of one API.
pub struct RawJson<A: Api> {
    http: reqwest::Client,
    url: String,
    model: String,
    tools: Vec<Value>,
    api: std::marker::PhantomData<A>,
}

impl<A: Api> Library for RawJson<A> {
    const NAME: &'static str = A::NAME;
    const WIRE: Wire = A::WIRE;
    type History = Vec<A::Message>;

    fn new(base_url: &str, scenario: Scenario) -> Result<Self> {
        Ok(Self {
            http: reqwest::Client::new(),
            url: format!("{base_url}{}", A::WIRE.path()),
            model: scenario.model(),
            tools: spec::TOOL_NAMES
                .iter()
                .map(|name| A::WIRE.tool_definition(name))
                .collect(),
            api: std::marker::PhantomData,
        })
    }

    fn history(&self, turns: &[Turn]) -> Self::History {
        let message = |turn: &Turn| match turn.from_user {
            true => A::user(&turn.text),
            false => A::assistant(&turn.text),
        };
        turns.iter().map(message).collect()
    }

    async fn stream_once(&self) -> Result<Outcome> {
        let mut messages: Vec<_> = A::system(spec::SYSTEM_PROMPT).into_iter().collect();
        messages.push(A::user(spec::USER_PROMPT));
        let reply = self.request(&messages, &[]).await?;
        let mut outcome = Outcome {
            rounds: 1,
            text_len: reply.text.len(),
            ..Outcome::default()
        };
        for call in &reply.calls {
            outcome.count_call(&serde_json::from_str::<WriteArgs>(&call.arguments)?);
        }
        Ok(outcome)
    }

    async fn agent_loop(&self, history: &Self::History) -> Result<Outcome> {
        let mut messages: Vec<_> = A::system(spec::SYSTEM_PROMPT).into_iter().collect();
        messages.extend_from_slice(history);
        messages.push(A::user(spec::USER_PROMPT));
        let mut outcome = Outcome::default();
        loop {
            let reply = self.request(&messages, &self.tools).await?;
            outcome.rounds += 1;
            if reply.calls.is_empty() {
                outcome.text_len = reply.text.len();
                return Ok(outcome);
            }
            let mut results = Vec::with_capacity(reply.calls.len());
            for call in &reply.calls {
                if !spec::TOOL_NAMES.contains(&call.name.as_str()) {
                    return Err(format!("no such tool: {}", call.name).into());
                }
                let args: LookupArgs = serde_json::from_str(&call.arguments)?;
                results.push(lookup(&args));
            }
            A::append(&mut messages, reply, results)?;
        }
    }
}

impl<A: Api> RawJson<A> {
    async fn request(&self, messages: &[A::Message], tools: &[Value]) -> Result<Reply> {
        let request = A::headers(self.http.post(&self.url));
        let response = request
            .json(&A::request(&self.model, messages, tools))
            .send()
            .await?
            .error_for_status()?;
        let mut events = response.bytes_stream().eventsource();
        let mut reply = Reply::default();
        while let Some(event) = events.next().await {
            let event = event?;
            // Read on to the end of the body, so that the connection is reused.
            if event.data != "[DONE]" {
                A::add(&mut reply, serde_json::from_str(&event.data)?);
            }
        }
        if reply.finish_reason.is_none() || reply.tokens == 0 {
            return Err("the response is incomplete".into());
        }
        Ok(reply)
    }
}
