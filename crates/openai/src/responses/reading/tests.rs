//! The reading under mutated wire cases: no panic, the same in every cut, lawful updates.

use bytes::Bytes;
use proptest::prelude::*;
use raf_core::AgentResponseUpdate;
use raf_wire::{Decoder, Json, Limits, Reporter, WireReply};

use super::delta::{Delta, Surroundings};
use super::event;
use super::{Asked, ResponsesReply};
use crate::endpoint::RESPONSES;
use crate::tests::{Corpus, RESPONSE_CASES, cases, decode, mutation, said};

static CORPUS: Corpus = Corpus::of(RESPONSE_CASES);

fn reply(limits: &Limits) -> ResponsesReply {
    let reporter = Reporter::new(&RESPONSES, "server", "model", Vec::new(), Bytes::new());
    let asked = Asked {
        provider: "test".to_owned(),
        model: "m".to_owned(),
        is_stored: true,
        ..Asked::default()
    };
    ResponsesReply::new(asked, reporter, limits)
}

/// What a reply says to the data lines of a body, each of them an event: by the quick reading where it
/// takes them, or all of them loosely.
fn said_to_lines(body: &str, is_quick: bool) -> Vec<String> {
    let mut reply = reply(&Limits::default());
    let mut end = Ok(());
    for line in body.lines().filter_map(|line| line.strip_prefix("data:")) {
        let is_read = if is_quick {
            reply.line(b"", line)
        } else {
            Ok(false)
        };
        end = is_read.and_then(|is_read| match Json::parse_repaired(line) {
            Ok(event) if !is_read && event.is_object() => reply.frame("", &event),
            _ => Ok(()),
        });
        if end.is_err() || reply.is_done() {
            break;
        }
    }
    let end = end.and_then(|()| reply.conclude());
    let mut words: Vec<String> = reply.updates().iter().map(said).collect();
    words.push(end.map_or_else(|error| error.to_string(), |finish| format!("{finish:?}")));
    words
}

/// Calls start, go on and end in order, and the message is begun before anything in it.
fn check_order(updates: &[AgentResponseUpdate]) -> Result<(), TestCaseError> {
    let mut is_begun = false;
    let mut calls: Vec<bool> = Vec::new();
    for update in updates {
        match update {
            AgentResponseUpdate::MessageStart { .. } => {
                prop_assert!(!is_begun);
                is_begun = true;
            }
            AgentResponseUpdate::ToolCallStart { position, .. } => {
                prop_assert_eq!(*position as usize, calls.len());
                calls.push(false);
            }
            AgentResponseUpdate::ToolCallArgs { position, .. } => {
                prop_assert_eq!(calls.get(*position as usize), Some(&false));
            }
            AgentResponseUpdate::ToolCallEnd { position, .. } => {
                prop_assert_eq!(calls.get(*position as usize), Some(&false));
                calls[*position as usize] = true;
            }
            AgentResponseUpdate::MessageEnd { .. } => {
                prop_assert!(is_begun && calls.iter().all(|ended| *ended));
            }
            AgentResponseUpdate::Usage { .. } | AgentResponseUpdate::ResponseMetadata { .. } => {}
            _ => prop_assert!(is_begun, "{:?}", update),
        }
    }
    Ok(())
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
        let whole = decode(&body, usize::MAX, &limits, reply(&limits));
        for cut in [1, 7] {
            let again = decode(&body, cut, &limits, reply(&limits));
            prop_assert_eq!(&again, &whole, "{}", String::from_utf8_lossy(&body));
        }
        let length: usize = whole.iter().map(String::len).sum();
        prop_assert!(length <= 40 * body.len() + 4000, "{} bytes of {}", length, body.len());
        let mut reply = reply(&limits);
        let mut decoder = Decoder::new(&limits);
        let pushed = decoder.push(&body, &mut reply).map(|_| ());
        if pushed.is_ok() && (reply.is_done() || decoder.finish(&mut reply).is_ok()) {
            let _ = reply.conclude();
        }
        check_order(reply.updates())?;
    }

    #[test]
    fn the_fast_reading_says_what_the_loose_one_says(
        case in any::<prop::sample::Index>(),
        mutations in prop::collection::vec(mutation(), 0..4),
    ) {
        let body = CORPUS.mutated(case, &mutations);
        let body = String::from_utf8_lossy(&body);
        let limits = Limits::default();
        let mut surroundings = Surroundings::default();
        for line in body.lines().filter_map(|line| line.strip_prefix("data:")) {
            // By itself, and behind another of which it may have the beginning.
            let delta = Delta::parse(line, &mut Surroundings::default());
            prop_assert_eq!(&Delta::parse(line, &mut surroundings), &delta, "{}", line);
            let Some(delta) = delta else { continue };
            let frame = Json::parse(line);
            prop_assert!(frame.is_ok(), "{}", line);
            let mut fast = reply(&limits);
            let _ = delta.apply(&mut fast);
            let mut loose = reply(&limits);
            let _ = event::apply("", &frame.unwrap(), &mut loose);
            let words = |reply: &mut ResponsesReply| -> Vec<String> {
                reply.updates().iter().map(said).collect()
            };
            prop_assert_eq!(words(&mut fast), words(&mut loose), "{}", line);
        }
    }
    #[test]
    fn a_reply_that_is_read_quickly_is_the_one_that_is_read_loosely(
        case in any::<prop::sample::Index>(),
        mutations in prop::collection::vec(mutation(), 0..4),
    ) {
        let body = CORPUS.mutated(case, &mutations);
        let body = String::from_utf8_lossy(&body);
        prop_assert_eq!(said_to_lines(&body, true), said_to_lines(&body, false), "{}", body);
    }
}
