//! A session as its head (all but the messages) and one text per message.

use raf_core::{ChatMessage, Error, ErrorKind, Result, SessionRecord};

/// The JSON form of a session without its messages: those stand in rows of their own.
pub(crate) fn head(record: &SessionRecord) -> Result<String> {
    debug_assert!(record.messages.is_empty(), "messages have their own rows");
    record.to_json()
}

/// The JSON form of one message.
pub(crate) fn message(message: &ChatMessage) -> Result<String> {
    serde_json::to_string(message).map_err(|error| {
        Error::new(ErrorKind::Store, "a message has no JSON form").with_source(error)
    })
}

/// A session from its head and its messages.
pub(crate) fn record<'a>(
    head: &str,
    revision: u64,
    messages: impl IntoIterator<Item = &'a str>,
) -> Result<SessionRecord> {
    let mut record = SessionRecord::from_json(head)?;
    record.revision = revision;
    for text in messages {
        let message: ChatMessage = serde_json::from_str(text).map_err(|error| {
            Error::new(
                ErrorKind::Store,
                format!(
                    "what is kept is no message (line {}, column {})",
                    error.line(),
                    error.column()
                ),
            )
            .with_code("corrupt")
        })?;
        record.messages.push(message);
    }
    Ok(record)
}
