//! What opens a seal, and what does not.

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use raf_core::{Error, ErrorKind, PausedRun, RunId, RunRecord};
use serde_json::json;

use super::{PausedRunSealer, SealFault, SealedPausedRun, SealingKey, SealingKeys};

const PREFIX: &str = "raf-paused-1.";

fn key(id: &str, byte: u8) -> SealingKey {
    SealingKey::new(id, [byte; 32]).unwrap()
}

fn paused() -> PausedRun {
    PausedRun::new(RunRecord::new(RunId::from("run-1")))
}

/// A sealer at second 1,000.
fn sealer() -> PausedRunSealer {
    SealingKeys::new(key("k1", 1))
        .for_audience("user-42")
        .with_clock(|| Duration::from_secs(1_000))
}

fn body_of(sealed: &SealedPausedRun) -> Vec<u8> {
    let body = sealed.as_str().strip_prefix(PREFIX).unwrap();
    URL_SAFE_NO_PAD.decode(body).unwrap()
}

fn open_body(body: &[u8]) -> Result<PausedRun, SealFault> {
    let text = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(body));
    sealer().open(&text.parse()?)
}

fn fields(parts: [&[u8]; 5]) -> Vec<u8> {
    let mut body = Vec::new();
    for part in parts {
        body.extend_from_slice(&u32::try_from(part.len()).unwrap().to_be_bytes());
        body.extend_from_slice(part);
    }
    body
}

#[test]
fn what_was_sealed_is_opened_by_way_of_text_and_json() {
    let sealed = sealer().seal(&paused());
    assert_eq!(sealer().open(&sealed).unwrap(), paused());
    let text: SealedPausedRun = sealed.to_string().parse().unwrap();
    assert_eq!(text, sealed);
    let json = serde_json::to_string(&sealed).unwrap();
    assert_eq!(json, format!("\"{sealed}\""));
    let back: SealedPausedRun = serde_json::from_str(&json).unwrap();
    assert_eq!(sealer().open(&back).unwrap(), paused());
    let no_seal = serde_json::from_value::<SealedPausedRun>(json!("raf-paused-1.!"));
    assert!(no_seal.is_err());
}

/// The form is stable: what earlier versions sealed is opened.
#[test]
fn golden_vector() {
    let payload = br#"{"format":1,"run_id":"run-1","revision":0,"closed":false,"round":0,"calls":[],"usage":{},"worked_ms":0,"counters":null}"#;
    // Made by another implementation: Python's `hmac`, `struct` and `base64`.
    let golden = concat!(
        "raf-paused-1.",
        "AAAAAmsxAAAAB3VzZXItNDIAAAAIAAAAAAABVWgAAAB3eyJmb3JtYXQiOjEsInJ1bl9pZCI6InJ1bi0xIiwicmV2",
        "aXNpb24iOjAsImNsb3NlZCI6ZmFsc2UsInJvdW5kIjowLCJjYWxscyI6W10sInVzYWdlIjp7fSwid29ya2VkX21z",
        "IjowLCJjb3VudGVycyI6bnVsbH0AAAAgN27TH0u7WU-iqPHnqRGabx7fBxsxw8wd1T9WMg7X5oM",
    );
    let sealed: SealedPausedRun = golden.parse().unwrap();
    assert_eq!(sealer().open(&sealed).unwrap(), paused());
    assert_eq!(serde_json::to_vec(&paused()).unwrap(), payload);
    assert_eq!(sealer().seal(&paused()), sealed);
}

#[test]
fn every_byte_that_is_changed_is_refused() {
    let sealed = sealer().seal(&paused());
    let body = body_of(&sealed);
    for place in 0..body.len() {
        for bit in 0..8 {
            let mut changed = body.clone();
            changed[place] ^= 1 << bit;
            let opened = open_body(&changed);
            assert!(opened.is_err(), "bit {bit} of byte {place} was changed");
        }
    }
    let text = sealed.as_str();
    for place in 0..text.len() {
        for with in ["A", "z", "-", ".", "=", " "] {
            let mut changed = text.to_owned();
            changed.replace_range(place..=place, with);
            let opened = changed.parse().and_then(|sealed| sealer().open(&sealed));
            assert!(
                changed == text || opened.is_err(),
                "character {place} is '{with}'"
            );
        }
        assert!(text[..place].parse::<SealedPausedRun>().is_err(), "cut");
    }
    for longer in [format!("{text}A"), format!("{text}\n"), format!(" {text}")] {
        assert!(longer.parse::<SealedPausedRun>().is_err());
    }
}

#[test]
fn bytes_cannot_move_from_one_field_to_the_next() {
    let sealed = sealer().seal(&paused());
    let body = body_of(&sealed);
    let signature = &body[body.len() - 32..];
    let payload = serde_json::to_vec(&paused()).unwrap();
    let at = (1_000_u64 + 24 * 60 * 60).to_be_bytes();
    let whole = fields([b"k1", b"user-42", &at, &payload, signature]);
    assert_eq!(body, whole);
    assert!(open_body(&whole).is_ok());
    let moved: [[&[u8]; 5]; 4] = [
        [b"k1u", b"ser-42", &at, &payload, signature],
        [b"k1", b"user-4", b"2\0\0\0\0\0\0\0", &payload, signature],
        [b"k1", b"user-42", b"", &payload, signature],
        [
            b"k1",
            b"user-42",
            b"",
            &[&at[..], &payload].concat(),
            signature,
        ],
    ];
    for parts in moved {
        assert!(open_body(&fields(parts)).is_err(), "{parts:?}");
    }
    let extra = [&whole[..], b"more"].concat();
    assert_eq!(open_body(&extra).unwrap_err(), SealFault::Malformed);
    let short = fields([b"k1", b"user-42", &at, &payload, &signature[..31]]);
    assert_eq!(open_body(&short).unwrap_err(), SealFault::Malformed);
    let none = fields([b"k1", b"user-42", &at, &payload, b""]);
    assert_eq!(open_body(&none).unwrap_err(), SealFault::Malformed);
}

#[test]
fn keys_are_changed_without_losing_what_is_open() {
    let before = SealingKeys::new(key("k1", 1)).for_audience("a");
    let prepared = SealingKeys::new(key("k1", 1)).with_previous(key("k2", 2));
    let changed = SealingKeys::new(key("k2", 2)).with_previous(key("k1", 1));
    let after = SealingKeys::new(key("k2", 2)).for_audience("a");
    let old = before.seal(&paused());
    let new = changed.for_audience("a").seal(&paused());
    assert!(changed.for_audience("a").open(&old).is_ok());
    assert!(prepared.for_audience("a").open(&new).is_ok());
    assert!(after.open(&new).is_ok());
    assert_eq!(after.open(&old), Err(SealFault::UnknownKey));
    let same_id = SealingKeys::new(key("k1", 3)).for_audience("a");
    assert_eq!(same_id.open(&old), Err(SealFault::Tampered));
    let both = SealingKeys::new(key("k1", 3)).with_previous(key("k1", 1));
    assert!(both.for_audience("a").open(&old).is_ok());
}

#[test]
fn it_is_opened_until_its_time_is_over() {
    let now = Arc::new(AtomicU64::new(1_000));
    let clock = Arc::clone(&now);
    let sealer = SealingKeys::new(key("k1", 1))
        .for_audience("a")
        .with_lifetime(Duration::from_secs(60))
        .with_clock(move || Duration::from_secs(clock.load(Ordering::Relaxed)));
    let sealed = sealer.seal(&paused());
    let for_ever = sealer.clone().without_expiry().seal(&paused());
    now.store(1_059, Ordering::Relaxed);
    assert!(sealer.open(&sealed).is_ok());
    now.store(1_060, Ordering::Relaxed);
    assert_eq!(sealer.open(&sealed), Err(SealFault::Expired));
    now.store(u64::MAX, Ordering::Relaxed);
    assert!(sealer.open(&for_ever).is_ok());
    let longest = sealer.with_lifetime(Duration::MAX);
    assert_eq!(longest.open(&sealed), Err(SealFault::Expired));
}

#[test]
fn it_is_opened_for_its_audience_alone() {
    let keys = SealingKeys::new(key("k1", 1));
    let sealed = keys.for_audience("user-4").seal(&paused());
    for other in ["user-42", "user-", "", "USER-4"] {
        let opened = keys.for_audience(other).open(&sealed);
        assert_eq!(opened, Err(SealFault::WrongAudience));
    }
}

#[test]
fn the_seal_is_looked_at_before_anything_else() {
    let sealed = sealer().with_lifetime(Duration::ZERO).seal(&paused());
    let other = SealingKeys::new(key("k1", 9)).for_audience("b");
    assert_eq!(other.open(&sealed), Err(SealFault::Tampered));
}

#[test]
fn a_form_of_the_future_is_told_apart() {
    let mut record = paused().into_record();
    record.format = 99;
    let sealed = sealer().seal(&PausedRun::new(record));
    assert_eq!(sealer().open(&sealed), Err(SealFault::Unsupported));
}

#[test]
fn weak_keys_are_refused_and_no_secret_is_shown() {
    let secret = "0123456789abcdef0123456789abcdef";
    let error = SealingKey::new("k1", &secret[1..]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(!format!("{error:?} {error}").contains("abcdef"));
    assert!(SealingKey::new("", secret).is_err());
    assert!(SealingKey::new("k".repeat(65), secret).is_err());
    let keys = SealingKeys::new(SealingKey::new("k1", secret).unwrap());
    let sealer = keys.for_audience("a");
    let sealed = sealer.seal(&paused());
    let shown = format!("{keys:?} {sealer:?} {sealed:?}");
    assert!(shown.contains("k1"));
    assert!(!shown.contains("abcdef") && !shown.contains("48, 49"));
    assert!(!shown.contains(sealed.as_str()));
}

#[test]
fn as_an_error_of_raf_it_is_a_refusal_with_a_code() {
    for fault in [
        SealFault::Malformed,
        SealFault::UnknownKey,
        SealFault::Tampered,
        SealFault::WrongAudience,
        SealFault::Expired,
        SealFault::Unsupported,
    ] {
        let error = Error::from(fault);
        assert_eq!(error.kind(), ErrorKind::ApprovalRefused);
        assert_eq!(error.code(), Some(fault.as_str()));
        assert!(error.source().unwrap().is::<SealFault>());
    }
}
