//! Wire cases: how endpoints really behave, as files, and what a client must make of it.
//!
//! A case is a JSON file. It says what a server sends (`stream`: read by read; `body` and `http_error`:
//! status, headers, body) and what must come of it, or (`request`) which body a server refuses, which one
//! it takes, and the rules that the client's own must keep. Each reply is served on loopback in every
//! [`Cut`], and each run is held to the order of updates that the seam promises.
//!
//! A provider brings its client, its dialects and whatever only its own cases say; the rest is here:
//! [`run`] is the `main` of a test target without harness, one test per case.

mod case;
mod checks;
mod compare;
mod outcome;
mod replay;
mod replies;
mod serve;
mod suite;

pub use case::{WireCase, load, reply_of};
pub use checks::{OwnChecks, get, holds, is_filled, list};
pub use compare::{Comparison, compare, different_error};
pub use outcome::{Outcome, class, gather};
pub use replay::{check_rules, replay};
pub use replies::{Replies, ReplySetup, named_first};
pub use serve::{Cut, End, WireReply, serve};
pub use suite::{Suite, SuiteTest, run};
