//! What the tests of the loop leave out of the cases for now, each with its reason and the issue that
//! brings it.

/// A part of a case that is not tested yet.
#[derive(Clone, Copy, Debug)]
pub struct LeftOut {
    /// The case.
    pub id: &'static str,
    /// Which part of it.
    pub what: &'static str,
    /// Why.
    pub reason: &'static str,
    /// The issue that brings it; unset where it comes behind all of them.
    pub issue: Option<u32>,
}

const fn out(id: &'static str, what: &'static str, reason: &'static str, issue: u32) -> LeftOut {
    LeftOut {
        id,
        what,
        reason,
        issue: if issue == 0 { None } else { Some(issue) },
    }
}

const STORES: &str = "there is no store yet that outlives the process";

/// Everything that is left out.
pub const LEFT_OUT: &[LeftOut] = &[
    out(
        "c01",
        "the process is killed instead of cancelled",
        STORES,
        8,
    ),
    out(
        "c17",
        "the session is reloaded from a store (JSON and back is tested)",
        STORES,
        8,
    ),
    out(
        "c18",
        "the step that breaks and is retried",
        "the retry layer comes later",
        0,
    ),
    out(
        "c19",
        "one retry, with its attempt reset",
        "the retry layer comes later",
        0,
    ),
];
