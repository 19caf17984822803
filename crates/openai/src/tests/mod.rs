//! What the tests of both readings share: the wire cases, mutated, and a body read in every cut.

use std::path::Path;
use std::sync::OnceLock;

use proptest::prelude::*;
use proptest::sample::Index;
use raf_core::AgentResponseUpdate;
use raf_wire::{Decoder, Limits, WireReply};
use serde_json::Value;

/// What the decoder makes of a body: updates and end, as text. Ids that it made up are left out.
pub(crate) fn decode<R: WireReply>(
    body: &[u8],
    cut: usize,
    limits: &Limits,
    mut reply: R,
) -> Vec<String> {
    let mut decoder = Decoder::new(limits);
    let mut end = Ok(());
    for read in body.chunks(cut.max(1)) {
        end = decoder.push(read, &mut reply).map(|_| ());
        if end.is_err() || reply.is_done() {
            break;
        }
    }
    if end.is_ok() && !reply.is_done() {
        end = decoder.finish(&mut reply);
    }
    let end = match end.and_then(|()| reply.conclude()) {
        Ok(finish) => format!("{finish:?}"),
        Err(error) => {
            reply.abandon();
            error.to_string()
        }
    };
    let mut said: Vec<String> = reply.updates().iter().map(said).collect();
    said.push(end);
    said
}

pub(crate) fn said(update: &AgentResponseUpdate) -> String {
    match update {
        AgentResponseUpdate::ToolCallEnd { position, call } => {
            let is_own = call.id().len() == 17 && call.id().starts_with("call_");
            let id = if is_own { "?" } else { call.id() };
            format!(
                "{position} {id} {} {} {}",
                call.name(),
                call.arguments(),
                call.is_complete()
            )
        }
        other => format!("{other:?}"),
    }
}

/// The wire cases of Chat Completions.
pub(crate) const CHAT_CASES: &str = "tests/wire/cases";

/// Those of the Responses API.
pub(crate) const RESPONSE_CASES: &str = "tests/wire_responses/cases";

/// The bodies of all wire cases of a folder but the largest.
pub(crate) struct Corpus {
    folder: &'static str,
    bodies: OnceLock<Vec<Vec<u8>>>,
}

impl Corpus {
    pub(crate) const fn of(folder: &'static str) -> Self {
        Self {
            folder,
            bodies: OnceLock::new(),
        }
    }

    /// One of the bodies, changed.
    pub(crate) fn mutated(&self, case: Index, mutations: &[Mutation]) -> Vec<u8> {
        let bodies = self.bodies();
        mutate(bodies[case.index(bodies.len())].clone(), mutations, bodies)
    }

    pub(crate) fn bodies(&self) -> &[Vec<u8>] {
        self.bodies.get_or_init(|| {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(self.folder);
            let mut files: Vec<_> = std::fs::read_dir(folder)
                .unwrap()
                .map(|file| file.unwrap().path())
                .collect();
            files.sort();
            files
                .iter()
                .filter_map(|file| body(&std::fs::read_to_string(file).unwrap()))
                .collect()
        })
    }
}

fn body(case: &str) -> Option<Vec<u8>> {
    let case: Value = serde_json::from_str(case).unwrap();
    let input = &case["input"];
    match input.as_array() {
        Some(reads) => {
            let reads: Option<Vec<&str>> = reads.iter().map(Value::as_str).collect();
            Some(reads?.concat().into_bytes())
        }
        None => Some(input["body"].as_str()?.as_bytes().to_vec()),
    }
}

/// One change of a body. Places are fractions of its length.
#[derive(Clone, Debug)]
pub(crate) enum Mutation {
    Insert(u16, Vec<u8>),
    Delete(u16, u8),
    Repeat(u16, u8),
    /// Replaces what stands between two structural bytes: a token, mostly.
    Token(u16, &'static str),
    /// Goes on with another body.
    Splice(u16, u16),
    Truncate(u16),
}

pub(crate) fn mutation() -> impl Strategy<Value = Mutation> {
    let token = prop::sample::select(vec![
        "null",
        "\"\"",
        "0",
        "-1",
        "1e300",
        "true",
        "{}",
        "[]",
        "[null]",
        "\"\\ud800\"",
        "\"{}\"",
        "\"[DONE]\"",
        "[[[[[[",
        "\"call_1\"",
        "\"length\"",
        "\"error\"",
        "4000000000",
        "\"<think>\"",
        "\"</think>\"",
        "\n",
        "\r",
        "\n\ndata: ",
        "data: [DONE]\n",
        "event: error\n",
        "\u{feff}",
        "\"{\\\"a\\\":1}\"",
        "\"index\":0",
        "\"output_index\":0",
        "\"call_id\":\"x\"",
        "\"response.completed\"",
        "\"response.failed\"",
        "\"message\"",
        "\"id\":\"x\"",
        "\"name\":\"f\"",
    ]);
    let bytes = prop::collection::vec(any::<u8>(), 1..4);
    prop_oneof![
        2 => (any::<u16>(), bytes).prop_map(|(at, bytes)| Mutation::Insert(at, bytes)),
        2 => (any::<u16>(), any::<u8>()).prop_map(|(at, length)| Mutation::Delete(at, length)),
        2 => (any::<u16>(), any::<u8>()).prop_map(|(at, length)| Mutation::Repeat(at, length)),
        5 => (any::<u16>(), token).prop_map(|(at, token)| Mutation::Token(at, token)),
        1 => (any::<u16>(), any::<u16>()).prop_map(|(at, other)| Mutation::Splice(at, other)),
        1 => any::<u16>().prop_map(Mutation::Truncate),
    ]
}

fn mutate(mut body: Vec<u8>, mutations: &[Mutation], all: &[Vec<u8>]) -> Vec<u8> {
    for mutation in mutations {
        let place = |at: u16| usize::from(at) * body.len() / 65_536;
        let end = |from: usize, length: u8| (from + usize::from(length)).min(body.len());
        match mutation {
            Mutation::Insert(at, bytes) => {
                let at = place(*at);
                body.splice(at..at, bytes.iter().copied());
            }
            Mutation::Delete(at, length) => {
                let at = place(*at);
                body.drain(at..end(at, *length));
            }
            Mutation::Repeat(at, length) => {
                let at = place(*at);
                let again = body[at..end(at, *length)].to_vec();
                body.splice(at..at, again);
            }
            Mutation::Token(at, token) => {
                let at = place(*at);
                let is_edge = |byte: &u8| b",:[]{}\n".contains(byte);
                let from = body[..at]
                    .iter()
                    .rposition(is_edge)
                    .map_or(0, |edge| edge + 1);
                let length = body[from..].iter().position(is_edge).unwrap_or(0);
                body.splice(from..from + length, token.bytes());
            }
            Mutation::Splice(at, other) => {
                let other = &all[usize::from(*other) % all.len()];
                body.truncate(place(*at));
                body.extend_from_slice(&other[other.len() / 2..]);
            }
            Mutation::Truncate(at) => body.truncate(place(*at)),
        }
    }
    body
}

/// As many cases as the environment asks for.
pub(crate) fn cases(default: u32) -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok();
    asked
        .and_then(|asked| asked.parse().ok())
        .unwrap_or(default)
}
