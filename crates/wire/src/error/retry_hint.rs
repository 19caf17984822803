//! How long a server asks to wait: headers, and texts where headers say nothing.

use std::time::{Duration, SystemTime};

use super::timestamp::timestamp;
use crate::transport::Head;

/// Waits beyond this are taken for mistakes.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// The headers of one rate limit: how much is left, and when there is more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimitHeaders {
    /// The header that counts down; at `0` the limit is used up.
    pub remaining: &'static str,
    /// The header that says when it is not: after a duration, or at a time (RFC 3339).
    pub reset: &'static str,
}

/// The wait that the headers name: `retry-after-ms` (OpenAI, Azure), `retry-after` in seconds or as a
/// date (seen from the `date` header where there is one), else the reset of whichever rate limit is
/// used up.
///
/// Negative and unreadable values are none.
pub(super) fn from_headers(head: &Head, limits: &[RateLimitHeaders]) -> Option<Duration> {
    let milliseconds = || number(head.get("retry-after-ms")?, Duration::from_millis(1));
    milliseconds()
        .or_else(|| retry_after(head))
        .or_else(|| rate_limit_reset(head, limits))
        .filter(|wait| *wait <= LONGEST)
}

/// Whether the server says by `x-should-retry` (OpenAI, Anthropic) that a retry can help.
pub(super) fn should_retry(head: &Head) -> Option<bool> {
    match head.get("x-should-retry")?.trim() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

fn retry_after(head: &Head) -> Option<Duration> {
    let value = head.get("retry-after")?.trim();
    if let Some(wait) = number(value, Duration::from_secs(1)) {
        return Some(wait);
    }
    let until = httpdate::parse_http_date(value).ok()?;
    until.duration_since(now(head)).ok()
}

/// The time at the server, where it says so.
fn now(head: &Head) -> SystemTime {
    head.get("date")
        .and_then(|date| httpdate::parse_http_date(date.trim()).ok())
        .unwrap_or_else(SystemTime::now)
}

fn rate_limit_reset(head: &Head, limits: &[RateLimitHeaders]) -> Option<Duration> {
    limits
        .iter()
        .filter(|limit| {
            let remaining = head.get(limit.remaining);
            remaining.is_some_and(|remaining| remaining.trim() == "0")
        })
        .filter_map(|limit| {
            let reset = head.get(limit.reset)?;
            timestamp(reset).map_or_else(
                || duration_text(reset),
                |until| until.duration_since(now(head)).ok(),
            )
        })
        .max()
}

/// A number of units, fractions allowed, not negative.
fn number(text: &str, unit: Duration) -> Option<Duration> {
    let text = text.trim();
    if text.is_empty()
        || !text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        return None;
    }
    decimal(text, unit)
}

/// The wait that a message names: Groq's `try again in 9m38.016s`, OpenAI's `try again in 20s`, and
/// the like of `retry after 5 seconds`.
pub(super) fn from_message(message: &str) -> Option<Duration> {
    const LEADS: &[&str] = &[
        "try again in ",
        "retry in ",
        "retry after ",
        "wait ",
        "again after ",
    ];
    let message = message.to_ascii_lowercase();
    LEADS
        .iter()
        .find_map(|lead| {
            let start = message.find(lead)? + lead.len();
            leading_duration(&message[start..])
        })
        .filter(|wait| *wait <= LONGEST)
}

/// A duration such as `1h2m3.5s`, `750ms` or `45.8s`; a bare number is seconds.
pub fn duration_text(text: &str) -> Option<Duration> {
    let text = text.trim();
    number(text, Duration::from_secs(1)).or_else(|| leading_duration(&text.to_ascii_lowercase()))
}

fn leading_duration(text: &str) -> Option<Duration> {
    const UNITS: &[(&str, Duration)] = &[
        ("milliseconds", Duration::from_millis(1)),
        ("millisecond", Duration::from_millis(1)),
        ("ms", Duration::from_millis(1)),
        ("seconds", Duration::from_secs(1)),
        ("second", Duration::from_secs(1)),
        ("sec", Duration::from_secs(1)),
        ("minutes", Duration::from_secs(60)),
        ("minute", Duration::from_secs(60)),
        ("min", Duration::from_secs(60)),
        ("hours", Duration::from_secs(3600)),
        ("hour", Duration::from_secs(3600)),
        ("s", Duration::from_secs(1)),
        ("m", Duration::from_secs(60)),
        ("h", Duration::from_secs(3600)),
        ("d", Duration::from_secs(86400)),
    ];
    let mut total: Option<Duration> = None;
    let mut rest = text.trim_start();
    loop {
        let digits = rest
            .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
            .unwrap_or(rest.len());
        let (value, behind) = rest.split_at(digits);
        let behind = behind.trim_start();
        let unit = UNITS.iter().find(|(unit, _)| {
            behind.strip_prefix(unit).is_some_and(|after| {
                !after.starts_with(|letter: char| letter.is_ascii_alphabetic())
            })
        });
        let (false, Some((unit, length))) = (value.is_empty(), unit) else {
            return total;
        };
        let part = decimal(value.trim_end_matches('.'), *length)?;
        total = Some(total.unwrap_or_default().checked_add(part)?);
        rest = behind[unit.len()..].trim_start();
    }
}

/// Exact, since a wait that is rounded up by floating point is not the one that was asked for.
fn decimal(text: &str, unit: Duration) -> Option<Duration> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let whole: u32 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let mut total = unit.checked_mul(whole)?;
    let mut place = unit;
    for digit in fraction.bytes().take(9) {
        place /= 10;
        total = total.checked_add(place * u32::from(digit - b'0'))?;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{RateLimitHeaders, duration_text, from_headers, from_message};
    use crate::transport::Head;

    const LIMITS: &[RateLimitHeaders] = &[
        RateLimitHeaders {
            remaining: "x-ratelimit-remaining-requests",
            reset: "x-ratelimit-reset-requests",
        },
        RateLimitHeaders {
            remaining: "x-ratelimit-remaining-tokens",
            reset: "x-ratelimit-reset-tokens",
        },
    ];

    fn wait(headers: &[(&'static str, &str)]) -> Option<u128> {
        from_headers(&Head::of(429, headers), LIMITS).map(|wait| wait.as_millis())
    }

    #[test]
    fn headers_name_a_wait() {
        assert_eq!(wait(&[("retry-after", "7")]), Some(7000));
        assert_eq!(wait(&[("retry-after", "0.5")]), Some(500));
        assert_eq!(
            wait(&[("retry-after-ms", "1250"), ("retry-after", "2")]),
            Some(1250)
        );
        assert_eq!(
            wait(&[("retry-after-ms", "-5"), ("retry-after", "2")]),
            Some(2000)
        );
        for nonsense in ["-1", "soon", "", "1e9", "NaN", "99999999999", "7s"] {
            assert_eq!(wait(&[("retry-after", nonsense)]), None, "{nonsense}");
        }
        let date = [
            ("date", "Wed, 01 Jan 2025 00:00:00 GMT"),
            ("retry-after", "Wed, 01 Jan 2025 00:00:30 GMT"),
        ];
        assert_eq!(wait(&date), Some(30_000));
        let reset = [
            ("x-ratelimit-remaining-requests", "12"),
            ("x-ratelimit-reset-requests", "6h"),
            ("x-ratelimit-remaining-tokens", "0"),
            ("x-ratelimit-reset-tokens", "6m0s"),
        ];
        assert_eq!(wait(&reset), Some(360_000));
    }

    #[test]
    fn messages_name_a_wait() {
        for (message, milliseconds) in [
            ("Please try again in 5.289s.", Some(5289)),
            ("Please try again in 9m38.016s.", Some(578_016)),
            ("Try again in 20 seconds", Some(20_000)),
            ("try again in 250ms.", Some(250)),
            ("Retry after 1 minute", Some(60_000)),
            ("please wait before trying again", None),
            ("try again in a while", None),
        ] {
            let wait = from_message(message).map(|wait| wait.as_millis());
            assert_eq!(wait, milliseconds, "{message}");
        }
        let exact = Duration::new(45, 837_906_927);
        assert_eq!(duration_text("45.837906927s"), Some(exact));
    }
}
