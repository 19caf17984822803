//! The decoder under mutated wire cases: no panic, nothing out of bounds, the same in every cut.
//!
//! `PROPTEST_CASES=200000 cargo test --release -p raf-openai mutated` runs it for a while.

use bytes::Bytes;
use proptest::prelude::*;
use raf_wire::{Decoder, Json, Limits, Reporter, WireReply};

use crate::endpoint::CHAT_COMPLETIONS;
use crate::response::Reply;
use crate::tests::{CHAT_CASES, Corpus, cases, mutation, said};
use crate::wire::chunk::{Chunk, FrameHead};
use crate::wire::loose;

static CORPUS: Corpus = Corpus::of(CHAT_CASES);

/// What the decoder makes of a body: updates and end, as text. Ids that it made up are left out.
fn decode(body: &[u8], cut: usize, limits: &Limits) -> Vec<String> {
    let reporter = Reporter::new(
        &CHAT_COMPLETIONS,
        "server",
        "model",
        Vec::new(),
        Bytes::new(),
    );
    crate::tests::decode(
        body,
        cut,
        limits,
        Reply::new("test", reporter, limits, true),
    )
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
        let body = CORPUS.mutated(case, &mutations);
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
        let body = CORPUS.mutated(case, &mutations);
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
    let frames: Vec<&str> = CORPUS
        .bodies()
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
