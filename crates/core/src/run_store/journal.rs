//! The journal of a run: what its steps came to, one behind another.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{Error, ErrorKind, Result};
use crate::identity::RunId;
use crate::record::read_form;

/// The version of the JSON form that this version writes.
const FORMAT: u32 = 1;

/// Whose journal: a run's own, below the root run whose claim guards it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JournalKey {
    /// The run that has a record and is claimed.
    pub root: RunId,
    /// The run whose steps these are: the root itself, or a run nested in it.
    pub run: RunId,
}

impl JournalKey {
    /// The journal of a root run.
    pub fn root(run_id: RunId) -> Self {
        Self {
            root: run_id.clone(),
            run: run_id,
        }
    }

    /// The journal of a run that is nested in a root run.
    pub fn nested(root: RunId, run: RunId) -> Self {
        Self { root, run }
    }
}

/// One entry of a journal. JSON form: the fields by name, with `format`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct JournalEntry {
    /// The version of this form.
    pub format: u32,
    /// The leg that wrote it, from 0.
    pub leg: u32,
    /// The step, by its stable name.
    pub step: String,
    /// What it says of the step.
    pub kind: JournalKind,
    /// The step's value, or what identifies the start or the outcome within it.
    #[serde(default)]
    pub value: Value,
    /// Members that this version does not know.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// What an entry says of its step. JSON form: snake case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum JournalKind {
    /// The step ended with this value.
    Step,
    /// A part of the step was begun: a call's body is about to be entered.
    Started,
    /// A part of the step has its outcome.
    Settled,
}

impl JournalEntry {
    /// An entry of this version's form.
    pub fn new(leg: u32, step: impl Into<String>, kind: JournalKind, value: Value) -> Self {
        Self {
            format: FORMAT,
            leg,
            step: step.into(),
            kind,
            value,
            unknown: Map::new(),
        }
    }

    /// The JSON form, as stores keep it.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| {
            Error::new(ErrorKind::Store, "a journal's entry has no JSON form").with_source(error)
        })
    }

    /// An entry from its JSON form. Members that this version does not know are kept.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] with the code `later_format` if a later version wrote it, with the code
    /// `corrupt` if it is no entry.
    pub fn from_json(json: &str) -> Result<Self> {
        read_form(json, "journal entry", FORMAT, |entry: &Self| entry.format)
    }
}
