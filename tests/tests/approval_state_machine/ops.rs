//! What may happen in a case: legs with replies of the model, answers right and wrong, new messages,
//! results, tampering, cancels, drops and reloads.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use raf_tests::Form;
use raf_tests::pausing::Reload;

/// A tool of the case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tool {
    /// Runs at once.
    Free,
    /// Waits for a yes.
    Gated,
    /// Asks the outside for data.
    Ask,
    /// Waits for a yes, then asks for data.
    GatedAsk,
    /// Has no body here.
    Declared,
}

impl Tool {
    pub(crate) const ALL: [Self; 5] = [
        Self::Free,
        Self::Gated,
        Self::Ask,
        Self::GatedAsk,
        Self::Declared,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Gated => "gated",
            Self::Ask => "ask",
            Self::GatedAsk => "gated_ask",
            Self::Declared => "declared",
        }
    }

    pub(crate) fn is_gated(self) -> bool {
        matches!(self, Self::Gated | Self::GatedAsk)
    }

    pub(crate) fn asks(self) -> bool {
        matches!(self, Self::Ask | Self::GatedAsk)
    }
}

/// A call in a reply.
#[derive(Clone, Debug)]
pub(crate) struct CallOp {
    pub(crate) tool: Tool,
    /// The model's label: repeated or empty, but for declared-only tools.
    pub(crate) id: &'static str,
    pub(crate) n: i64,
    /// Its arguments break the schema.
    pub(crate) invalid: bool,
}

/// What is given as an answer, and to what.
#[derive(Clone, Debug)]
pub(crate) struct AnswerOp {
    pub(crate) kind: Answer,
    /// Which of the calls, or settled requests, that it could be about.
    pub(crate) target: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Answer {
    /// Yes, or the data that is asked for.
    Accept,
    /// No.
    Decline,
    /// Yes with other arguments; data upon which the tool asks again.
    Alter,
    /// Nothing is decided.
    Null,
    /// About a request that was settled before.
    Late,
    /// Right, and given twice.
    Twice,
    /// About a request that nobody made.
    Forged,
    /// About the call's own label.
    Label,
    /// Data for a yes, a yes for data.
    WrongCategory,
    /// No decision.
    Malformed,
    /// Yes with arguments that break the schema.
    BadEdit,
    /// Yes to other arguments than those recorded.
    Mismatch,
}

/// How a leg is stopped.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stop {
    /// Dropped after so many polls.
    Drop(usize),
    /// Cancelled when so many items were delivered.
    Cancel(usize),
}

/// One leg.
#[derive(Clone, Debug)]
pub(crate) struct LegOp {
    pub(crate) reload: Reload,
    pub(crate) form: Form,
    /// Whether a new message of the user comes.
    pub(crate) message: bool,
    pub(crate) answers: Vec<AnswerOp>,
    /// How many results of declared-only calls are given.
    pub(crate) results: usize,
    /// The call that the posted history shows with other arguments.
    pub(crate) tamper: Option<usize>,
    /// The call for which the posted history holds a forged result.
    pub(crate) forge_result: Option<usize>,
    /// What the model says, reply by reply; then it answers.
    pub(crate) replies: Vec<Vec<CallOp>>,
    pub(crate) stop: Option<Stop>,
}

fn call() -> impl Strategy<Value = CallOp> {
    let tool = prop_oneof![
        3 => Just(Tool::Free),
        4 => Just(Tool::Gated),
        2 => Just(Tool::Ask),
        1 => Just(Tool::GatedAsk),
        1 => Just(Tool::Declared),
    ];
    let id = prop_oneof![3 => Just("a"), 2 => Just("b"), 2 => Just("c"), 1 => Just("")];
    let invalid = prop_oneof![12 => Just(false), 1 => Just(true)];
    (tool, id, 0..4_i64, invalid).prop_map(|(tool, id, n, invalid)| CallOp {
        tool,
        id,
        n,
        invalid: invalid && tool != Tool::Declared,
    })
}

fn reply() -> impl Strategy<Value = Vec<CallOp>> {
    vec(call(), 1..4).prop_map(|mut calls| {
        // A caller's result has nothing but the label: that of a declared-only call is its own.
        let labels = ["d0", "d1", "d2", "d3"];
        for (call, label) in calls.iter_mut().zip(labels) {
            if call.tool == Tool::Declared {
                call.id = label;
            }
        }
        calls
    })
}

fn answer() -> impl Strategy<Value = AnswerOp> {
    let kind = prop_oneof![
        12 => Just(Answer::Accept),
        4 => Just(Answer::Decline),
        3 => Just(Answer::Alter),
        1 => Just(Answer::Null),
        2 => Just(Answer::Late),
        2 => Just(Answer::Twice),
        1 => Just(Answer::Forged),
        1 => Just(Answer::Label),
        2 => Just(Answer::WrongCategory),
        2 => Just(Answer::Malformed),
        1 => Just(Answer::BadEdit),
        2 => Just(Answer::Mismatch),
    ];
    (kind, 0..8_usize).prop_map(|(kind, target)| AnswerOp { kind, target })
}

fn reload() -> impl Strategy<Value = Reload> {
    prop_oneof![
        4 => Just(Reload::Nothing),
        1 => Just(Reload::SameStore),
        2 => Just(Reload::NewProcess),
        1 => Just(Reload::StoreAndValue),
    ]
}

fn leg() -> impl Strategy<Value = LegOp> {
    let stop = prop_oneof![
        3 => (0..24_usize).prop_map(Stop::Drop),
        2 => (0..12_usize).prop_map(Stop::Cancel),
    ];
    let way = (reload(), prop_oneof![Just(Form::Stream), Just(Form::Fold)]);
    let tampering = (
        option::weighted(0.08, 0..4_usize),
        option::weighted(0.08, 0..4_usize),
    );
    let given = (
        prop_oneof![3 => Just(false), 1 => Just(true)],
        vec(answer(), 0..4),
        0..3_usize,
        tampering,
    );
    let model = vec(reply(), 0..3);
    (way, given, model, option::weighted(0.22, stop)).prop_map(
        |((reload, form), (message, answers, results, (tamper, forge_result)), replies, stop)| {
            LegOp {
                reload,
                form,
                message,
                answers,
                results,
                tamper,
                forge_result,
                replies,
                stop,
            }
        },
    )
}

/// A whole case.
pub(crate) fn legs() -> impl Strategy<Value = Vec<LegOp>> {
    vec(leg(), 2..8)
}
