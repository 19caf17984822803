//! Stops a response that goes on at the server.

use std::time::Duration;

use bytes::Bytes;
use raf_core::{ChatClientRunOptions, Error, Result};
use raf_wire::{Dialogue, Json};

use super::client::{Inner, OpenAiResponsesChatClient};

/// How long a run that was cancelled waits until the server knows it.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

impl OpenAiResponsesChatClient {
    /// Stops a background response, and returns the status that it has then: `cancelled`, or the one that
    /// it had ended with before. A second time does no harm.
    ///
    /// A run that is cancelled by its token does this by itself before it ends, where it knows the
    /// response. It cannot where its stream is dropped instead, which is what a tool loop does with a
    /// cancelled request: the response then goes on, and its id is that of the message
    /// ([`ChatMessage::message_id`](raf_core::ChatMessage::message_id)).
    ///
    /// Cancel-safe in the sense that a drop ends the request: the server may have had it.
    ///
    /// # Errors
    /// As a run's stream: [`ErrorKind::NotFound`](raf_core::ErrorKind::NotFound) for a response that the
    /// server does not have, `InvalidRequest` for one that is not in the background;
    /// [`ErrorKind::Misuse`](raf_core::ErrorKind::Misuse) for an id that is none.
    pub async fn cancel_response(&self, response_id: &str) -> Result<String> {
        self.inner().cancel(response_id, None).await
    }
}

impl Inner {
    /// Asks the server to stop a response, whatever becomes of the run that began it.
    pub(super) async fn cancel(&self, id: &str, patience: Option<Duration>) -> Result<String> {
        let is_id = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        if id.is_empty() || !id.bytes().all(is_id) {
            return Err(Error::misuse(format!("'{id}' is no id of a response")));
        }
        let url = self.url(&format!("/{id}/cancel"));
        let connection = self.connection();
        let reporter = connection.reporter(&url, "", Bytes::new());
        let mut setup = connection.setup(reporter, &ChatClientRunOptions::new());
        setup.deadline = patience;
        let mut dialogue = Dialogue::begin(setup)?;
        let opened = dialogue.post(&url, Bytes::from_static(b"{}")).await?;
        let body = dialogue.body(opened).await?;
        let text = String::from_utf8_lossy(&body);
        let response = Json::parse_repaired(text.trim()).unwrap_or(Json::Null);
        let status = response.get("status").and_then(Json::as_str);
        Ok(status.unwrap_or("cancelled").to_owned())
    }
}
