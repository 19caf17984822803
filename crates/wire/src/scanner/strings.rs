//! Inside of strings: where they end, and what escapes mean.

/// Where the next byte stands that a string does not hold as it is: a quote, a backslash, a control
/// character; or the end of the text.
#[inline]
pub(crate) fn string_end(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    // Eight at once. A byte above the first one that is found may be marked wrongly; it is not read.
    while let Some(eight) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*eight);
        let zero = |word: u64| word.wrapping_sub(ONES) & !word;
        let quotes = zero(word ^ (ONES * u64::from(b'"')));
        let slashes = zero(word ^ (ONES * u64::from(b'\\')));
        let controls = word.wrapping_sub(ONES * 0x20) & !word;
        let found = (quotes | slashes | controls) & HIGH;
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let is_end = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1f);
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(is_end).unwrap_or(rest.len())
}

/// What the escape at this place means, and where it ends. Half of a surrogate pair means nothing.
pub(super) fn escape(bytes: &[u8], at: usize) -> Option<(char, usize)> {
    let meant = match bytes.get(at + 1)? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'u' => {
            let unit = escaped_unit(bytes, at)?;
            if !(0xd800..0xe000).contains(&unit) {
                return Some((char::from_u32(unit)?, at + 6));
            }
            let low = escaped_unit(bytes, at + 6)?.checked_sub(0xdc00)?;
            let high = unit.checked_sub(0xd800).filter(|high| *high < 0x400)?;
            let whole = 0x10000 + (high << 10) + Some(low).filter(|low| *low < 0x400)?;
            return Some((char::from_u32(whole)?, at + 12));
        }
        _ => return None,
    };
    Some((meant, at + 2))
}

/// The UTF-16 unit that is escaped at this place as `\uXXXX`.
pub(crate) fn escaped_unit(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |unit, digit| {
        Some(unit << 4 | char::from(*digit).to_digit(16)?)
    })
}
