//! What a response says of having failed, and what stands in its place.

use raf_core::{Error, Result};
use raf_wire::{Json, WireError, WireReply, exceeded, in_band, read_error};

use super::reply::ResponsesReply;

impl ResponsesReply {
    /// Says what it cost: the run failed.
    pub(crate) fn fail(&mut self) {
        self.report_usage();
    }

    pub(super) fn error(&self, found: &WireError) -> Error {
        self.in_band_error(found)
    }

    pub(super) fn wrong_protocol(&self) -> Error {
        self.reporter.protocol(
            "answered with Chat Completions where a response belongs: it does not speak the \
             Responses API; take OpenAiChatClient for it",
        )
    }

    pub(super) fn limit_argument_bytes(&self, at: usize) -> Result<()> {
        if self.items.0[at].arguments.size() > self.most_argument_bytes {
            return Err(exceeded("argument_bytes", self.most_argument_bytes));
        }
        Ok(())
    }

    /// The error of a response that holds one.
    pub(super) fn error_of(&self, response: &Json) -> Result<()> {
        match response.filled("error") {
            Some(_) => {
                let found = in_band(response).unwrap_or_default();
                Err(self.error(&found))
            }
            None => Ok(()),
        }
    }

    /// An error event. One that says nothing is kept for a moment: the next may say more.
    pub(super) fn error_event_of(&mut self, event: &Json) -> Result<()> {
        let found = event
            .filled("error")
            .or_else(|| event.present("response")?.filled("error"))
            .map_or_else(
                || read_error(event),
                |_| {
                    in_band(event)
                        .or_else(|| in_band(event.present("response")?))
                        .unwrap_or_default()
                },
            );
        self.fails(found)
    }

    /// The response failed; without a word it is seen first whether one follows (Azure:
    /// maximhq/bifrost#6419).
    pub(super) fn fails(&mut self, found: WireError) -> Result<()> {
        if found.message.is_empty() && found.codes.is_empty() && found.status.is_none() {
            self.unexplained = Some(found);
            return Ok(());
        }
        Err(self.error(&found))
    }

    /// Whether a failure without a word has one now.
    pub(super) fn failure_is_explained(&mut self, event: &Json) -> Result<()> {
        let Some(nothing) = self.unexplained.take() else {
            return Ok(());
        };
        let of_response = event.present("response").and_then(in_band);
        let found = of_response.or_else(|| in_band(event)).unwrap_or(nothing);
        Err(self.error(&found))
    }
}
