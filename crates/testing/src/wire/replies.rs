//! Stream, body and error cases: served on loopback as written and re-cut, and compared.

use std::sync::Arc;
use std::time::Duration;

use raf_core::{ChatClientRunOptions, ChatMessage, Error, IChatClient};

use super::case::{WireCase, reply_of};
use super::compare::{Comparison, compare};
use super::outcome::Outcome;
use super::replay::replay;
use super::serve::{Cut, End, WireReply};

/// How the client of a case is set up.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ReplySetup<'a> {
    /// The case.
    pub case: &'a WireCase,
    /// The base URL, which ends in `/v1`.
    pub url: &'a str,
    /// Whether it asks for a stream.
    pub streaming: bool,
    /// How long it waits for the next bytes: short where the server falls silent, else out of the way.
    pub wait: Duration,
    /// The longest line that it takes, where the case sends more than that.
    pub line_bytes: Option<usize>,
}

/// A wait that nothing of a case takes, on a busy machine neither: megabytes in single bytes need seconds.
const OUT_OF_THE_WAY: Duration = Duration::from_mins(2);

/// The longest line that is taken where a case sends too much.
const LINE_BYTES: usize = 64 * 1024;

/// A provider's side of the reply cases.
pub struct Replies<'a> {
    /// Makes the client.
    pub client: &'a dyn Fn(ReplySetup<'_>) -> Arc<dyn IChatClient>,
    /// What a run is asked with.
    pub options: ChatClientRunOptions,
    /// What is compared beyond the usual.
    pub comparison: Comparison<'a>,
    /// What else must hold of an outcome.
    pub also: &'a dyn Fn(&Outcome) -> Result<(), String>,
}

impl std::fmt::Debug for Replies<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replies")
            .field("options", &self.options)
            .field("comparison", &self.comparison)
            .finish_non_exhaustive()
    }
}

impl Replies<'_> {
    /// Runs a case in all cuts, and once more with the client's other setting of streaming: what a server
    /// sends is read by its form, not by what was asked for.
    ///
    /// # Errors
    /// What is different, and in which cut.
    pub fn check(&self, case: &WireCase) -> Result<(), String> {
        let is_stream = case.kind() != "body";
        let cuts = Cut::ALL.map(|cut| (is_stream, cut));
        for (streaming, cut) in cuts.into_iter().chain([(!is_stream, Cut::AsWritten)]) {
            let reply = WireReply {
                cut,
                ..case.reply()
            };
            let outcome = self.run(case, reply, streaming);
            compare(case, &self.comparison, &outcome)
                .and_then(|()| (self.also)(&outcome))
                .map_err(|fault| format!("cut {cut:?}, streaming {streaming}: {fault}"))?;
        }
        Ok(())
    }

    /// Serves what a server answers to a request that it refuses, where a case says it.
    ///
    /// # Errors
    /// Another class of error than the case's, or another hint whether to try again.
    pub fn check_rejection(&self, case: &WireCase) -> Result<(), String> {
        let rejection = &case.json["input"]["server_rejection"];
        let wanted = &case.expected()["error"];
        if rejection.is_null() || wanted.is_null() {
            return Ok(());
        }
        let outcome = self.run(case, reply_of(rejection), true);
        let class = outcome.error_class();
        let retryable = outcome.error.as_ref().map(Error::is_temporary);
        if class == wanted["class"].as_str() && retryable == wanted["retryable"].as_bool() {
            return Ok(());
        }
        Err(format!(
            "server_rejection: wanted {wanted}, got {:?}",
            outcome.error
        ))
    }

    fn run(&self, case: &WireCase, reply: WireReply, streaming: bool) -> Outcome {
        let wait = if reply.end == End::Hang {
            Duration::from_millis(250)
        } else {
            OUT_OF_THE_WAY
        };
        let must_stop = case.is_large() && !case.expected()["error"].is_null();
        let asked = [ChatMessage::user("Hello")];
        replay(reply, &asked, self.options.clone(), |url| {
            (self.client)(ReplySetup {
                case,
                url,
                streaming,
                wait,
                line_bytes: must_stop.then_some(LINE_BYTES),
            })
        })
    }
}

/// The dialect of the server that a case names first, by the words that name servers.
pub fn named_first(server: &str, words: &[(&'static str, &'static str)]) -> Option<&'static str> {
    let server = server.to_ascii_lowercase();
    let found = words
        .iter()
        .filter_map(|(word, name)| Some((server.find(word)?, *name)));
    found.min().map(|(_, name)| name)
}
