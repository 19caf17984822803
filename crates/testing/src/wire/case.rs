//! A case file: what a server sends, or refuses, and what a client must make of it.

use std::path::Path;

use serde_json::{Map, Value};

use super::serve::{Cut, End, WireReply};

/// One case.
#[derive(Clone, Debug)]
pub struct WireCase {
    /// The file's name without its end: `NNN-slug`.
    pub name: String,
    /// What the file holds.
    pub json: Value,
}

/// All cases of a folder, by name.
///
/// # Panics
/// The folder or a file cannot be read.
pub fn load(folder: &Path) -> Vec<WireCase> {
    let files = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("the folder {} cannot be read: {error}", folder.display()));
    let mut cases: Vec<WireCase> = files
        .map(|file| file.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .map(|path| WireCase {
            name: path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            json: read(&path),
        })
        .collect();
    cases.sort_by(|left, right| left.name.cmp(&right.name));
    cases
}

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).expect("the case can be read");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

impl WireCase {
    /// `stream`, `body`, `http_error` or `request`.
    pub fn kind(&self) -> &str {
        self.json["kind"].as_str().unwrap_or("")
    }

    /// Which servers do so.
    pub fn server(&self) -> &str {
        self.json["server"].as_str().unwrap_or("")
    }

    /// What a client must make of it.
    pub fn expected(&self) -> &Value {
        &self.json["expected"]
    }

    /// What is acceptable: `expected`, and each of the alternatives laid over it.
    pub fn acceptable(&self) -> Vec<Map<String, Value>> {
        let expected = self.expected().as_object().cloned().unwrap_or_default();
        let over = |alternative: &Value| {
            let mut laid = expected.clone();
            laid.extend(alternative.as_object().cloned().unwrap_or_default());
            laid
        };
        let alternatives = self.json["alternatives"].as_array();
        std::iter::once(expected.clone())
            .chain(alternatives.into_iter().flatten().map(over))
            .collect()
    }

    /// Whether the case sends so much that a small limit must stop it.
    pub fn is_large(&self) -> bool {
        let reads = self.json["input"].as_array();
        reads.is_some_and(|reads| reads.iter().any(|read| read.get("repeat").is_some()))
    }

    /// What the server sends.
    pub fn reply(&self) -> WireReply {
        if self.kind() == "stream" {
            let response = &self.json["response"];
            let reads = self.json["input"].as_array().expect("a list of reads");
            return WireReply {
                status: status(response),
                headers: headers(response),
                reads: reads.iter().map(bytes).collect(),
                cut: Cut::AsWritten,
                end: match response["end"].as_str() {
                    Some("abort") => End::Abort,
                    Some("hang") => End::Hang,
                    _ => End::Eof,
                },
            };
        }
        reply_of(&self.json["input"])
    }
}

/// A whole reply: status, headers, body.
pub fn reply_of(input: &Value) -> WireReply {
    WireReply {
        status: status(input),
        headers: headers(input),
        reads: vec![bytes(&input["body"])],
        cut: Cut::AsWritten,
        end: End::Eof,
    }
}

fn status(value: &Value) -> u16 {
    value["status"]
        .as_u64()
        .and_then(|status| status.try_into().ok())
        .unwrap_or(200)
}

fn headers(value: &Value) -> Vec<(String, String)> {
    let headers = value["headers"].as_object();
    headers
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.clone(), value.as_str().unwrap_or("").to_owned()))
        .collect()
}

fn bytes(read: &Value) -> Vec<u8> {
    if let Some(text) = read.as_str() {
        return text.as_bytes().to_vec();
    }
    if let Some(text) = read["b64"].as_str() {
        return base64(text);
    }
    if let Some(repeat) = read["repeat"].as_object() {
        let text = |name: &str| repeat[name].as_str().unwrap_or("").to_owned();
        let times = repeat["times"]
            .as_u64()
            .unwrap_or(0)
            .try_into()
            .unwrap_or(0);
        return format!(
            "{}{}{}",
            text("prefix"),
            text("unit").repeat(times),
            text("suffix")
        )
        .into_bytes();
    }
    panic!("a read is a text, b64 or repeat, not {read}")
}

fn base64(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => panic!("no base64"),
    };
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text.bytes().filter(|byte| *byte != b'=') {
        bits = (bits << 6) | u32::from(digit(byte));
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from((bits >> count) & 0xff).expect("masked"));
        }
    }
    bytes
}
