//! What a provider implements: a reply as far as it has come.

use raf_core::{AgentResponseUpdate, Error, Finish, Result};

use crate::error::{Reporter, WireError, read_body};
use crate::json::Json;
use crate::transport::Head;

/// A reply as far as it has come: takes in what the decoder finds in a body, and says it as updates.
///
/// A [`Decoder`](crate::Decoder) calls it for each event or document, a
/// [`Dialogue`](crate::Dialogue) for all else. Both are generic over it: nothing is boxed per event.
/// What came after the end was reached (`is_done`) is not handed in any more.
pub trait WireReply: Send {
    /// Looks at the head of the reply, before anything of its body: for the id of the request, say.
    fn head(&mut self, head: &Head);

    /// Takes a data line that is a whole event by itself: the fast way, for the common events in
    /// their plain form. `false` for any other: it comes again, as a frame.
    #[inline]
    fn line(&mut self, name: &[u8], line: &str) -> Result<bool> {
        let _ = (name, line);
        Ok(false)
    }

    /// Takes an event's object, or the object of a body that is JSON. `name` is the event's name,
    /// empty where it has none.
    fn frame(&mut self, name: &str, frame: &Json) -> Result<()>;

    /// Whether a line by itself is an event, where nothing but one line end follows it.
    fn is_frame(&self, line: &Json) -> bool;

    /// Whether a body that begins with this line of bare JSON is a stream of such lines.
    fn begins_stream(line: &Json) -> bool;

    /// Takes in that the body is JSON, and that this document of it came as frames.
    fn document_ends(&mut self, document: &Json) {
        let _ = document;
    }

    /// Takes in that a JSON body has ended, after all its documents came as frames.
    ///
    /// # Errors
    /// The documents are no reply.
    fn body_ends(&mut self, documents: &[Json]) -> Result<()>;

    /// Takes an event of the name `error`, whatever its data.
    ///
    /// # Errors
    /// The error that it is.
    fn error_event(&mut self, data: &str) -> Result<()> {
        Err(self.in_band_error(&read_body(data.as_bytes())))
    }

    /// Takes the end mark, `[DONE]`.
    fn end_mark(&mut self);

    /// Whether nothing counts any more that may come.
    fn is_done(&self) -> bool;

    /// Whether the reply has said that it ends; more may yet come.
    fn has_ended(&self) -> bool;

    /// Ends the reply well if it did, and says how; what is left to say is among the updates then.
    fn conclude(&mut self) -> Result<Finish>;

    /// Says what is left of a reply that failed: text held back, and what it cost.
    fn abandon(&mut self);

    /// The updates that have gathered; they are taken out.
    fn updates(&mut self) -> &mut Vec<AgentResponseUpdate>;

    /// Makes the errors of this exchange.
    fn reporter(&self) -> &Reporter;

    /// The provider's id of the request.
    fn request_id(&self) -> Option<&str>;

    /// The error that the reply holds.
    fn in_band_error(&self, found: &WireError) -> Error {
        self.reporter().in_band(found, self.request_id())
    }
}
