//! Times as RFC 3339 has them, as Anthropic's rate limits do: `2026-01-01T00:00:30Z`.

use std::time::{Duration, SystemTime};

/// The time of a text in this form, without what is below a second; nothing for any other text, or
/// for a time before 1970.
pub(super) fn timestamp(text: &str) -> Option<SystemTime> {
    let text = text.trim();
    let (date, time) = (text.get(..10)?, text.get(10..)?);
    let mut date = date.split('-').map(str::parse::<i64>);
    let mut next = || date.next()?.ok();
    let (year, month, day) = (next()?, next()?, next()?);
    let time = time.strip_prefix(['T', 't', ' '])?;
    let clock = time.get(..8)?;
    let mut clock = clock.split(':').map(str::parse::<i64>);
    let mut next = || clock.next()?.ok();
    let (hour, minute, second) = (next()?, next()?, next()?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 {
        return None;
    }
    let offset = offset(time.get(8..)?)?;
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds.try_into().ok()?))
}

/// The seconds by which a clock is ahead of UTC, behind a fraction that does not count.
fn offset(text: &str) -> Option<i64> {
    let zone = text.trim_start_matches(|letter: char| letter == '.' || letter.is_ascii_digit());
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let (sign, zone) = match zone.split_at_checked(1)? {
        ("+", zone) => (1, zone),
        ("-", zone) => (-1, zone),
        _ => return None,
    };
    let (hours, minutes) = zone.split_once(':')?;
    Some(sign * (hours.parse::<i64>().ok()? * 3600 + minutes.parse::<i64>().ok()? * 60))
}

/// The days from 1970 to a date of the Gregorian calendar, counted in eras of 400 years that begin in
/// March.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let month = (month + 9) % 12;
    let of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::timestamp;

    #[test]
    fn times_are_read_and_nothing_else() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2026-01-01T00:00:30Z", Some(1_767_225_630)),
            ("2024-02-29T12:00:00.250Z", Some(1_709_208_000)),
            ("2026-01-01T01:00:30+01:00", Some(1_767_225_630)),
            ("2025-12-31t23:00:30-01:00", Some(1_767_225_630)),
            ("1969-12-31T23:59:59Z", None),
            ("12", None),
            ("6m0s", None),
            ("2026-13-01T00:00:00Z", None),
            ("2026-01-01T00:00:00", None),
        ] {
            let found = timestamp(text).map(|time| {
                let since = time.duration_since(SystemTime::UNIX_EPOCH);
                since.unwrap().as_secs()
            });
            assert_eq!(found, seconds, "{text}");
        }
    }
}
