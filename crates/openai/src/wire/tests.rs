//! The decoder under mutated wire cases: no panic, nothing out of bounds, the same in every cut.
//!
//! `PROPTEST_CASES=200000 cargo test --release -p raf-openai mutated` runs it for a while.

use std::path::Path;
use std::sync::OnceLock;

use bytes::Bytes;
use proptest::prelude::*;
use raf_core::AgentResponseUpdate;
use serde_json::Value;

use raf_wire::{Decoder, Json, Limits, Reporter, WireReply};

use crate::endpoint::CHAT_COMPLETIONS;
use crate::response::Reply;
use crate::wire::chunk::{Chunk, FrameHead};
use crate::wire::loose;

/// What the decoder makes of a body: updates and end, as text. Ids that it made up are left out.
fn decode(body: &[u8], cut: usize, limits: &Limits) -> Vec<String> {
    let reporter = Reporter::new(
        &CHAT_COMPLETIONS,
        "server",
        "model",
        Vec::new(),
        Bytes::new(),
    );
    let mut reply = Reply::new("test", reporter, limits, true);
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
    let mut said: Vec<String> = reply.updates.iter().map(said).collect();
    said.push(end);
    said
}

/// What a reply says of a single frame, read in one of the ways.
fn said_of_frame(read: impl FnOnce(&mut Reply) -> raf_core::Result<()>) -> Vec<String> {
    let reporter = Reporter::new(
        &CHAT_COMPLETIONS,
        "server",
        "model",
        Vec::new(),
        Bytes::new(),
    );
    let mut reply = Reply::new("test", reporter, &Limits::default(), false);
    let end = match read(&mut reply).and_then(|()| reply.conclude()) {
        Ok(finish) => format!("{finish:?}"),
        Err(error) => {
            reply.abandon();
            error.to_string()
        }
    };
    let mut said: Vec<String> = reply.updates.iter().map(said).collect();
    said.push(end);
    said
}

fn said(update: &AgentResponseUpdate) -> String {
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

/// The bodies of all wire cases but the largest.
fn corpus() -> &'static [Vec<u8>] {
    static CORPUS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    CORPUS.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire/cases");
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
enum Mutation {
    Insert(u16, Vec<u8>),
    Delete(u16, u8),
    Repeat(u16, u8),
    /// Replaces what stands between two structural bytes: a token, mostly.
    Token(u16, &'static str),
    /// Goes on with another body.
    Splice(u16, u16),
    Truncate(u16),
}

fn mutation() -> impl Strategy<Value = Mutation> {
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

fn mutate(mut body: Vec<u8>, mutations: &[Mutation]) -> Vec<u8> {
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
                let all = corpus();
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
fn cases(default: u32) -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok();
    asked
        .and_then(|asked| asked.parse().ok())
        .unwrap_or(default)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(1500),
        failure_persistence: None,
        max_shrink_iters: 4000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn mutated_cases_are_read_alike_in_every_cut(
        case in any::<prop::sample::Index>(),
        mutations in prop::collection::vec(mutation(), 0..6),
    ) {
        let body = mutate(corpus()[case.index(corpus().len())].clone(), &mutations);
        let limits = Limits::default().with_calls(16).with_argument_bytes(2000);
        let whole = decode(&body, usize::MAX, &limits);
        for cut in [1, 7] {
            prop_assert_eq!(&decode(&body, cut, &limits), &whole, "{}", String::from_utf8_lossy(&body));
        }
        let length: usize = whole.iter().map(String::len).sum();
        prop_assert!(length <= 40 * body.len() + 4000, "{} bytes of {}", length, body.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(3000),
        failure_persistence: None,
        max_shrink_iters: 4000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_fast_reading_says_what_the_loose_one_says(
        case in any::<prop::sample::Index>(),
        mutations in prop::collection::vec(mutation(), 0..4),
    ) {
        let body = mutate(corpus()[case.index(corpus().len())].clone(), &mutations);
        let body = String::from_utf8_lossy(&body);
        let mut head = FrameHead::default();
        for line in body.lines().filter_map(|line| line.strip_prefix("data:")) {
            // By itself, and behind a head that an earlier frame had.
            let Some(chunk) = Chunk::parse(line, &mut FrameHead::default()) else {
                prop_assert!(Chunk::parse(line, &mut head).is_none(), "{}", line);
                continue;
            };
            let behind = Chunk::parse(line, &mut head).unwrap();
            let frame = Json::parse(line);
            prop_assert!(frame.is_ok(), "{}", line);
            let loosely = said_of_frame(|reply| loose::apply(&frame.unwrap(), reply));
            let fast = said_of_frame(|reply| chunk.apply(reply));
            prop_assert_eq!(&fast, &loosely, "{}", line);
            let fast = said_of_frame(|reply| {
                reply.identify(&chunk.id, &chunk.model);
                behind.apply(reply)
            });
            prop_assert_eq!(&fast, &loosely, "{}", line);
        }
    }
}

/// How many frames of the corpus are read fast: it is there for the plain ones.
#[test]
fn plain_frames_are_read_fast() {
    let frames: Vec<&str> = corpus()
        .iter()
        .filter_map(|body| std::str::from_utf8(body).ok())
        .flat_map(str::lines)
        .filter_map(|line| line.strip_prefix("data: {"))
        .collect();
    let fast =
        |line: &&&str| Chunk::parse(&format!("{{{line}"), &mut FrameHead::default()).is_some();
    let fast = frames.iter().filter(fast).count();
    assert!(fast * 3 > frames.len() * 2, "{fast} of {}", frames.len());
}

#[test]
fn each_limit_is_an_error_that_names_it() {
    let call = |index: usize| {
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":{index},\"id\":\"c{index}\",\
             \"function\":{{\"name\":\"f\",\"arguments\":\"aaaaaaaaaa\"}}}}]}}}}]}}\n\n"
        )
    };
    let calls: String = (0..4).map(call).collect();
    let arguments = call(0)
        .repeat(4)
        .replace("\"id\":\"c0\",", "")
        .replace("\"name\":\"f\",", "");
    let arguments = format!("{}{arguments}", call(0));
    let limits = Limits::default();
    for (limit, limits, body) in [
        ("calls", limits.with_calls(3), calls.as_str()),
        (
            "argument_bytes",
            limits.with_argument_bytes(30),
            arguments.as_str(),
        ),
        ("events", limits.with_events(3), calls.as_str()),
        (
            "stream_bytes",
            limits.with_stream_bytes(300),
            calls.as_str(),
        ),
        ("line_bytes", limits.with_line_bytes(60), calls.as_str()),
        (
            "event_bytes",
            limits.with_event_bytes(10),
            "data: {\ndata: {{{{{{{{{{{{{{{{\n",
        ),
        (
            "body_bytes",
            limits.with_body_bytes(20),
            "{\"choices\":                         ",
        ),
    ] {
        for cut in [1, 7, usize::MAX] {
            let end = decode(body.as_bytes(), cut, &limits).pop().unwrap();
            assert!(end.starts_with("protocol: "), "{limit}: {end}");
            assert!(end.contains(&format!("limit: {limit}")), "{limit}: {end}");
        }
    }
}

#[test]
fn lines_of_bare_json_are_a_stream() {
    let body = "{\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\
                {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n[DONE]\n";
    for cut in [1, 7, usize::MAX] {
        let said = decode(body.as_bytes(), cut, &Limits::default());
        assert!(said[1].contains("Hi"), "{said:?}");
        assert!(said.last().unwrap().contains("Stop"), "{said:?}");
    }
    // Told by the first line, so that text comes as it is sent.
    let first = body.split_inclusive('\n').next().unwrap();
    let reporter = Reporter::new(
        &CHAT_COMPLETIONS,
        "server",
        "model",
        Vec::new(),
        Bytes::new(),
    );
    let mut reply = Reply::new("test", reporter, &Limits::default(), false);
    Decoder::new(&Limits::default())
        .push(first.as_bytes(), &mut reply)
        .unwrap();
    assert_eq!(reply.updates.len(), 2);
}
