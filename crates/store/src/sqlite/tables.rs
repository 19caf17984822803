//! The names of the tables: a prefix keeps two stores in one file apart.

use std::borrow::Cow;

use raf_core::{Error, Result};

/// The prefix that the statements are written with.
const WRITTEN: &str = "raf_";

/// The prefix of a store's tables.
#[derive(Clone, Debug)]
pub(super) struct Tables(String);

impl Tables {
    /// Tables with this prefix.
    ///
    /// # Errors
    /// A prefix that is no plain name.
    pub(super) fn new(prefix: &str) -> Result<Self> {
        let plain =
            |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
        let begins = prefix.starts_with(|letter: char| letter.is_ascii_lowercase());
        if !begins || !prefix.chars().all(plain) || prefix.len() > 32 {
            return Err(Error::configuration(format!(
                "'{prefix}' is no prefix for a store's tables: a lower-case letter, then lower-case \
                 letters, digits and '_', 32 at most"
            )));
        }
        Ok(Self(prefix.to_owned()))
    }

    /// A statement with this store's names.
    pub(super) fn sql<'a>(&self, statement: &'a str) -> Cow<'a, str> {
        if self.0 == WRITTEN {
            Cow::Borrowed(statement)
        } else {
            Cow::Owned(statement.replace(WRITTEN, &self.0))
        }
    }
}
