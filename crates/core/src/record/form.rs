//! The JSON form of what stores keep: versioned, and never read as what it is not.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{FORMAT, RunRecord};
use crate::error::{Error, ErrorKind, Result};

impl RunRecord {
    /// The JSON form, as stores keep it.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| {
            Error::new(ErrorKind::Store, "a run's record has no JSON form").with_source(error)
        })
    }

    /// A record from its JSON form. Members that this version does not know are kept.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] with the code `later_format` if a later version wrote it, with the code
    /// `corrupt` if it is no record.
    pub fn from_json(json: &str) -> Result<Self> {
        read_form(json, "run record", FORMAT, |record: &Self| record.format)
    }
}

/// Reads what a store keeps, and refuses what a later version wrote.
pub(crate) fn read_form<T: DeserializeOwned>(
    json: &str,
    what: &'static str,
    format: u32,
    format_of: impl FnOnce(&T) -> u32,
) -> Result<T> {
    let read: Result<T, _> = serde_json::from_str(json);
    let found = match &read {
        Ok(value) => Some(format_of(value)),
        Err(_) => serde_json::from_str(json)
            .ok()
            .map(|head: Head| head.format),
    };
    if let Some(found) = found.filter(|found| *found > format) {
        return Err(Error::new(
            ErrorKind::Store,
            format!(
                "a later version wrote this {what}: it has format {found}, this version reads up \
                 to {format}. It was left as it is; update raf here"
            ),
        )
        .with_code("later_format"));
    }
    read.map_err(|error| {
        // The error says a line and a column, not what stands there.
        Error::new(
            ErrorKind::Store,
            format!(
                "what is kept is no {what} (line {}, column {})",
                error.line(),
                error.column()
            ),
        )
        .with_code("corrupt")
    })
}

#[derive(Deserialize)]
struct Head {
    format: u32,
}
