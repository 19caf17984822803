//! What the tests of pausing leave out of their cases, each with its reason and the issue that brings
//! it.

use crate::left_out::LeftOut;

const fn out(id: &'static str, what: &'static str, reason: &'static str, issue: u32) -> LeftOut {
    LeftOut {
        id,
        what,
        reason,
        issue: Some(issue),
    }
}

const EARLIER_LEG: &str = "asks and answers are no messages: the record and the options hold them";

/// Everything that is left out.
pub const LEFT_OUT: &[LeftOut] = &[
    out(
        "fi20",
        "asks that are split over two assistant messages stay split",
        EARLIER_LEG,
        3,
    ),
    out(
        "fi24",
        "a switch that accepts unsolicited verdicts",
        "the contract has none (E3)",
        3,
    ),
    out(
        "fx08",
        "the pending batch can be resumed behind the new message",
        "it is superseded by default (E7); rejecting the message is tested",
        3,
    ),
    out(
        "te16",
        "the node as common parent, one write to a checkpoint store",
        "raf has no graph; the executor alone hands the batch over as one value",
        3,
    ),
];
