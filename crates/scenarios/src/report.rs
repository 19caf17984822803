//! What became of a case: per way, what differs from what was expected.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::way::Way;

/// Something that differs, and the line of the file that says what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    line: u64,
    text: String,
}

impl Fault {
    pub(crate) fn new(line: u64, text: impl Into<String>) -> Self {
        Self {
            line,
            text: text.into(),
        }
    }

    /// The line, from 1; 0 if no line is meant.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// What differs.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// What became of a case in one way.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WayReport {
    /// The way.
    pub way: Way,
    /// What differs.
    pub faults: Vec<Fault>,
}

/// What became of a case.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CaseReport {
    /// The file.
    pub path: PathBuf,
    /// The case, and its variant.
    pub name: String,
    /// The ways that it was played in.
    pub ways: Vec<WayReport>,
    /// The kinds of ways that it was not played in, and why.
    pub left_out: Vec<String>,
}

impl CaseReport {
    pub(crate) fn new(path: &Path, name: String) -> Self {
        Self {
            path: path.to_owned(),
            name,
            ways: Vec::new(),
            left_out: Vec::new(),
        }
    }

    /// Whether nothing differs.
    pub fn passed(&self) -> bool {
        self.ways.iter().all(|way| way.faults.is_empty())
    }

    /// Fails with what differs.
    ///
    /// # Panics
    /// If something differs.
    #[track_caller]
    pub fn assert_passed(&self) {
        assert!(self.passed(), "{self}");
    }
}

/// One line if all is well, else what differs: each difference once, with the ways that it is in.
impl fmt::Display for CaseReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ways = self.ways.len();
        let path = self.path.display();
        if self.passed() {
            write!(f, "ok     {} ({path}), {ways} ways", self.name)?;
            for left_out in &self.left_out {
                write!(f, "; {left_out}")?;
            }
            return Ok(());
        }
        write!(f, "FAILED {} ({path})", self.name)?;
        let same = |one: &Fault, other: &Fault| {
            one.line == other.line && masked(&one.text) == masked(&other.text)
        };
        let mut shown: Vec<&Fault> = Vec::new();
        for fault in self.ways.iter().flat_map(|way| &way.faults) {
            if shown.iter().any(|other| same(other, fault)) {
                continue;
            }
            shown.push(fault);
            let within: Vec<String> = self
                .ways
                .iter()
                .filter(|way| way.faults.iter().any(|other| same(other, fault)))
                .map(|way| way.way.to_string())
                .collect();
            let within = match within.len() {
                all if all == ways => "every way".to_owned(),
                _ => within.join("; "),
            };
            match fault.line {
                0 => write!(f, "\n  {path}: ")?,
                line => write!(f, "\n  {path}:{line}: ")?,
            }
            write!(f, "{}\n    (in {within})", fault.text)?;
        }
        Ok(())
    }
}

/// A text without its random ids, which are long runs of hexadecimal digits.
fn masked(text: &str) -> String {
    let mut masked = String::new();
    let mut run = String::new();
    for character in text.chars().chain(['\n']) {
        if character.is_ascii_hexdigit() {
            run.push(character);
            continue;
        }
        masked.push_str(if run.len() >= 12 { "(id)" } else { &run });
        run.clear();
        masked.push(character);
    }
    masked
}
