//! Reads Rust as far as the rules need it: text without comments and literals, words, blocks.
//!
//! It is no parser. It knows what can hide a brace or a word: comments, strings, characters.

use std::ops::Range;

/// The code of a source file: comments and the insides of literals are spaces, lines stay lines.
pub(crate) fn code(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match literal_end(bytes, at) {
            Some(end) => end,
            None if is_word(bytes[at]) => {
                at += word_length(&bytes[at..]);
                continue;
            }
            None => {
                at += 1;
                continue;
            }
        };
        for byte in &mut out[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    String::from_utf8(out).expect("whole characters were replaced")
}

/// Where the comment or literal that begins here ends.
fn literal_end(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    let until = |pattern: &[u8], from: usize| {
        rest[from..]
            .windows(pattern.len())
            .position(|window| window == pattern)
            .map_or(bytes.len(), |found| at + from + found + pattern.len())
    };
    match rest {
        [b'/', b'/', ..] => Some(until(b"\n", 0)),
        [b'/', b'*', ..] => Some(at + block_comment_length(rest)),
        [b'"', ..] | [b'b' | b'c', b'"', ..] => {
            let open = usize::from(rest[0] != b'"');
            Some(at + quoted_length(rest, open, b'"'))
        }
        [b'b', b'\'', ..] => Some(at + quoted_length(rest, 1, b'\'')),
        [b'\'', b'\\', ..] => Some(at + quoted_length(rest, 0, b'\'')),
        // A character, not a lifetime: a quote follows after one of whatever width.
        [b'\'', first, ..] => {
            let width = match first {
                0x00..=0x7f => 1,
                0x80..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xff => 4,
            };
            (rest.get(1 + width) == Some(&b'\'')).then_some(at + width + 2)
        }
        [b'r', ..] | [b'b' | b'c', b'r', ..] => {
            let open = usize::from(rest[0] != b'r') + 1;
            let hashes = rest[open..]
                .iter()
                .take_while(|&&byte| byte == b'#')
                .count();
            if rest.get(open + hashes) != Some(&b'"') {
                return None;
            }
            let mut close = vec![b'"'];
            close.resize(1 + hashes, b'#');
            Some(until(&close, open + hashes + 1))
        }
        _ => None,
    }
}

fn quoted_length(rest: &[u8], open: usize, quote: u8) -> usize {
    let mut at = open + 1;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    rest.len().min(at + 1)
}

fn block_comment_length(rest: &[u8]) -> usize {
    let mut depth = 0_u32;
    let mut at = 0;
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn word_length(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|&&byte| is_word(byte)).count()
}

/// Where a whole word stands.
pub(crate) fn words(code: &str, word: &str) -> Vec<usize> {
    let bytes = code.as_bytes();
    code.match_indices(word)
        .map(|(at, _)| at)
        .filter(|&at| at == 0 || !is_word(bytes[at - 1]))
        .filter(|&at| {
            bytes
                .get(at + word.len())
                .is_none_or(|&byte| !is_word(byte))
        })
        .collect()
}

/// The line of a place, from 1.
pub(crate) fn line(code: &str, at: usize) -> usize {
    1 + code[..at].matches('\n').count()
}

/// The next bracketed block from a place on, brackets included.
pub(crate) fn block(code: &str, from: usize, open: char, close: char) -> Option<Range<usize>> {
    let start = from + code[from..].find(open)?;
    let mut depth = 0_i32;
    for (at, found) in code[start..].char_indices() {
        if found == open {
            depth += 1;
        } else if found == close {
            depth -= 1;
        }
        if depth == 0 {
            return Some(start..start + at + 1);
        }
    }
    None
}

/// Code without its `#[cfg(test)]` modules; lines stay lines.
pub(crate) fn without_tests(code: &str) -> String {
    let mut out = code.to_owned();
    for (at, attribute) in code.match_indices("#[cfg(test)]") {
        let after = at + attribute.len();
        let item = code[after..].trim_start();
        if !item.starts_with("mod ") {
            continue;
        }
        let ends_at_once = match (item.find(';'), item.find('{')) {
            (Some(semicolon), Some(brace)) => semicolon < brace,
            _ => true,
        };
        if let (false, Some(block)) = (ends_at_once, block(code, after, '{', '}')) {
            let blank: String = code[block.clone()]
                .chars()
                .map(|found| if found == '\n' { '\n' } else { ' ' })
                .collect();
            out.replace_range(block, &blank);
        }
    }
    out
}

/// An `impl` of a trait.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Impl {
    /// The name of the type, without path and parameters.
    pub(crate) of: String,
    /// Where it stands, from 1.
    pub(crate) line: usize,
    /// Its attributes.
    pub(crate) attributes: String,
}

/// The impls of a trait in code.
pub(crate) fn impls(code: &str, of_trait: &str) -> Vec<Impl> {
    words(code, of_trait)
        .into_iter()
        .filter_map(|at| {
            let rest = code[at + of_trait.len()..].trim_start();
            let of = rest.strip_prefix("for ")?.trim_start();
            let path = of.split(['<', ' ', '{']).next().unwrap_or(of);
            let head = code[..at].rfind("impl")?;
            // Between `impl` and the trait stand generics and a path, no statement or block.
            if code[head..at].contains([';', '{', '}']) {
                return None;
            }
            let before = &code[..head];
            let start = before.rfind([';', '{', '}']).map_or(0, |end| end + 1);
            Some(Impl {
                of: path.rsplit("::").next().unwrap_or(path).trim().to_owned(),
                line: line(code, head),
                attributes: before[start..].trim().to_owned(),
            })
        })
        .collect()
}

/// What stands between the braces of a struct, if it has fields with names.
pub(crate) fn fields<'a>(code: &'a str, name: &str) -> Option<&'a str> {
    let at = words(code, name)
        .into_iter()
        .find(|&at| code[..at].trim_end().ends_with("struct"))?;
    let body = block(code, at, '{', '}')?;
    (!code[at..body.start].contains(';')).then(|| &code[body])
}

#[cfg(test)]
mod tests {
    use super::{Impl, code, fields, impls, line, without_tests, words};

    #[test]
    fn comments_and_literals_are_no_code() {
        let source = "a // b\n/* c /* d */ e */ f \"g\\\" h\" 'i' '\\'' 'é' &'j k r#\"l\"m\"# b\"n\" r\"o\" for p";
        let seen: Vec<String> = code(source).split_whitespace().map(str::to_owned).collect();
        assert_eq!(seen, ["a", "f", "&'j", "k", "for", "p"]);
        assert_eq!(code(source).len(), source.len());
    }

    #[test]
    fn a_word_is_whole() {
        assert_eq!(words("spawn respawn spawn_local .spawn(", "spawn"), [0, 27]);
        assert_eq!(line("a\nb\nc", 4), 3);
    }

    #[test]
    fn test_modules_are_left_out() {
        let source = "a();\n#[cfg(test)]\nmod tests {\n  fn b() { c(); }\n}\nd();\n";
        let left = without_tests(source);
        assert!(left.contains("a()") && left.contains("d()") && !left.contains("c()"));
        assert_eq!(left.lines().count(), source.lines().count());
        let in_a_file = "#[cfg(test)]\nmod tests;\nfn a() { b(); }";
        assert_eq!(without_tests(in_a_file), in_a_file);
    }

    #[test]
    fn impls_are_found_with_their_attributes() {
        let source =
            "struct A;\n#[x]\n#[deny(y)]\nimpl<C: T> core::T for path::A<C> {}\nfn f(t: T) {}";
        let expected = Impl {
            of: "A".to_owned(),
            line: 4,
            attributes: "#[x]\n#[deny(y)]".to_owned(),
        };
        assert_eq!(impls(source, "T"), [expected]);
    }

    #[test]
    fn fields_are_those_of_the_struct() {
        let source = "struct AB { x: u8 }\nstruct A { inner: u8 }\nstruct C;\nstruct D { y: u8 }";
        assert_eq!(fields(source, "A"), Some("{ inner: u8 }"));
        assert_eq!(fields(source, "C"), None);
    }
}
