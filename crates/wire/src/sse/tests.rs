//! Our decoder against eventsource-stream: the same where that one is right, and the streams on which
//! it is not, which are why ours replaces it.

use eventsource_stream::Eventsource;
use futures::{FutureExt, StreamExt, stream};
use proptest::prelude::*;
use raf_core::Result;

use super::{EventDecoder, EventSink};
use crate::limits::Limits;

type Event = (String, String);

/// Takes no line by itself, so that events are what the standard says.
#[derive(Default)]
struct Events(Vec<Event>);

impl EventSink for Events {
    fn line(&mut self, _: &[u8], _: &[u8]) -> Result<bool> {
        Ok(false)
    }

    fn event(&mut self, name: &[u8], data: &[u8]) -> Result<()> {
        let name = if name.is_empty() { b"message" } else { name };
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        self.0.push((text(name), text(data)));
        Ok(())
    }
}

fn ours(reads: &[&[u8]]) -> Vec<Event> {
    let mut events = Events::default();
    let mut decoder = EventDecoder::new(&Limits::default());
    for read in reads {
        decoder.push(read, &mut events).unwrap();
    }
    decoder.finish(&mut events).unwrap();
    events.0
}

/// `None` if it fails.
fn theirs(reads: &[&[u8]]) -> Option<Vec<Event>> {
    let reads: Vec<_> = reads
        .iter()
        .map(|read| Ok::<_, std::io::Error>(read.to_vec()))
        .collect();
    let events = stream::iter(reads)
        .eventsource()
        .collect::<Vec<_>>()
        .now_or_never()?;
    let event = |event: eventsource_stream::Event| (event.event, event.data);
    events
        .into_iter()
        .map(|read| read.ok().map(event))
        .collect()
}

fn cut(bytes: &[u8], size: usize) -> Vec<&[u8]> {
    bytes.chunks(size.max(1)).collect()
}

/// A line of an event, without its end.
fn line() -> impl Strategy<Value = String> {
    let text = "[ -~äé€🎉]{0,12}";
    prop_oneof![
        4 => text.prop_map(|text| format!("data: {text}")),
        1 => text.prop_map(|text| format!("data:{text}")),
        1 => "[a-z]{1,8}".prop_map(|name| format!("event: {name}")),
        1 => text.prop_map(|text| format!(": {text}")),
        1 => "[a-z0-9]{0,6}".prop_map(|id| format!("id: {id}")),
        1 => (0_u32..5000).prop_map(|wait| format!("retry: {wait}")),
    ]
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
        cases: cases(400),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Whole events, lines ended alike throughout: both decoders see the same, in every cut.
    #[test]
    fn both_decoders_agree_on_what_is_common(
        events in prop::collection::vec(prop::collection::vec(line(), 1..5), 0..6),
        ending in prop_oneof![Just("\n"), Just("\r\n")],
        size in 1_usize..40,
    ) {
        let mut text = String::new();
        for event in &events {
            for line in event {
                text.push_str(line);
                text.push_str(ending);
            }
            text.push_str(ending);
        }
        let reads = cut(text.as_bytes(), size);
        // An event whose data is empty is one to us, which the layer above drops.
        let mut seen = ours(&reads);
        seen.retain(|(_, data)| !data.is_empty());
        let theirs = theirs(&reads);
        let theirs = theirs.map(|mut events| {
            events.retain(|(_, data)| !data.is_empty());
            events
        });
        prop_assert_eq!(Some(seen), theirs);
    }

    /// Any bytes at all: the same events in every cut, and no panic.
    #[test]
    fn cuts_change_nothing(
        bytes in prop::collection::vec(
            prop_oneof![
                3 => Just(b'\n'), 2 => Just(b'\r'), 2 => Just(b':'), 1 => Just(b' '),
                1 => Just(b'd'), 1 => Just(b'a'), 1 => Just(b't'), 1 => Just(b'{'), 1 => any::<u8>(),
            ],
            0..120,
        ),
        prefix in prop_oneof![Just(""), Just("data:"), Just("event: x\ndata: "), Just("\u{feff}data:")],
        size in 1_usize..9,
    ) {
        let bytes = [prefix.as_bytes(), &bytes].concat();
        prop_assert_eq!(ours(&cut(&bytes, size)), ours(&[&bytes]));
    }
}

/// Which wire cases and why, the reads, and the data of the events.
type Case = (
    &'static str,
    &'static [&'static [u8]],
    &'static [&'static str],
);

/// What the stream says, and what eventsource-stream makes of it: the reason for a decoder of our own.
#[test]
fn where_eventsource_stream_is_not_right() {
    let cases: &[Case] = &[
        // The event that nearly all servers leave open at the end.
        (
            "169, 170: the last event has no blank line",
            &[b"data: a\n\n", b"data: b"],
            &["a", "b"],
        ),
        ("134: a field named error", &[b"error: x\n\n"], &["x"]),
        (
            "135: bare JSON",
            &[b"{\"error\":1}\n\n"],
            &["{\"error\":1}"],
        ),
        (
            "179: bytes that are no UTF-8",
            &[b"data: a\xf0b\n\n"],
            &["a\u{fffd}b"],
        ),
        ("lines that end in CR alone", &[b"data: a\r\r"], &["a"]),
        ("field names in capitals", &[b"Data: a\n\n"], &["a"]),
    ];
    for (what, reads, wanted) in cases {
        let seen: Vec<String> = ours(reads).into_iter().map(|(_, data)| data).collect();
        assert_eq!(seen, *wanted, "{what}");
        assert_ne!(
            theirs(reads),
            Some(ours(reads)),
            "{what}: eventsource-stream is right by now"
        );
    }
}

#[test]
fn lines_and_events_are_bounded() {
    let limits = Limits::default().with_line_bytes(8).with_event_bytes(10);
    for (text, limit) in [
        ("data: 123456", "line_bytes"),
        ("data: 1234567890\n", "line_bytes"),
        ("data:123\ndata:456\ndata:789\ndata:0\n", "event_bytes"),
    ] {
        for size in [1, 3, 100] {
            let mut decoder = EventDecoder::new(&limits);
            let mut events = Events::default();
            let error = cut(text.as_bytes(), size)
                .into_iter()
                .find_map(|read| decoder.push(read, &mut events).err())
                .unwrap();
            assert_eq!(error.context(), [("limit".into(), limit.to_owned())]);
        }
    }
}
