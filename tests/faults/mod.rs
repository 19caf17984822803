//! Faults that are planted around the loop, so that the checks are seen to catch them: decorators of
//! its stream, of what it sends, and of its tools. Nothing of this is in the engine.

mod around;
mod stream;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use raf_core::IChatClient;
use raf_tools::ITool;

use around::{FaultyRequest, FaultyTool};
use stream::FaultyLoop;

/// One way in which an engine could be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The result of a call that was not run is not emitted.
    FillerDropped,
    /// The result of a call that ran is not emitted.
    ResultDropped,
    /// Two results of one batch change places.
    ResultsSwapped,
    /// A body is entered twice for one call.
    BodyEnteredTwice,
    /// An outcome is emitted twice.
    OutcomeTwice,
    /// An outcome comes before the start of its body.
    OutcomeBeforeStart,
    /// A start is emitted twice.
    StartTwice,
    /// The terminal item is missing.
    NoTerminalItem,
    /// Something comes after the terminal item.
    ItemAfterTheEnd,
    /// The end comes while bodies are running.
    EndWhileBodiesRun,
    /// A piece of text is emitted that is not in the transcript.
    TextChanged,
    /// A message does not end.
    MessageEndMissing,
    /// A call that ended is not emitted.
    CallEndMissing,
    /// The sum of the tokens is wrong.
    UsageWrong,
    /// The tokens of one request are missing.
    RoundMissing,
    /// A failure does not say what the leg had done.
    FailureWithoutTranscript,
    /// The inner finish reason gets out.
    InnerFinish,
    /// A result is missing from what is sent.
    ResultNotSent,
    /// Two results are sent behind one another's calls.
    PairsCrossed,
    /// A message of an earlier request is sent changed.
    PrefixChanged,
    /// A cancelled call is said not to have started.
    CancelledSaysNotStarted,
}

impl Fault {
    /// Every fault.
    pub const ALL: [Self; 21] = [
        Self::FillerDropped,
        Self::ResultDropped,
        Self::ResultsSwapped,
        Self::BodyEnteredTwice,
        Self::OutcomeTwice,
        Self::OutcomeBeforeStart,
        Self::StartTwice,
        Self::NoTerminalItem,
        Self::ItemAfterTheEnd,
        Self::EndWhileBodiesRun,
        Self::TextChanged,
        Self::MessageEndMissing,
        Self::CallEndMissing,
        Self::UsageWrong,
        Self::RoundMissing,
        Self::FailureWithoutTranscript,
        Self::InnerFinish,
        Self::ResultNotSent,
        Self::PairsCrossed,
        Self::PrefixChanged,
        Self::CancelledSaysNotStarted,
    ];
}

/// A fault to be planted in a case, and how often it came to bear. A cheap handle.
#[derive(Clone, Debug)]
pub struct Plant {
    fault: Fault,
    count: Arc<AtomicUsize>,
}

impl Plant {
    /// The fault, not yet planted.
    pub fn new(fault: Fault) -> Self {
        let count = Arc::default();
        Self { fault, count }
    }

    /// How often it came to bear.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// The loop's stream with the fault.
    pub fn above(&self, inner: Arc<dyn IChatClient>) -> Arc<dyn IChatClient> {
        let plant = self.clone();
        Arc::new(FaultyLoop { inner, plant })
    }

    /// What the loop sends, with the fault.
    pub fn below(&self, inner: Arc<dyn IChatClient>) -> Arc<dyn IChatClient> {
        match self.fault {
            Fault::ResultNotSent | Fault::PairsCrossed | Fault::PrefixChanged => {
                let plant = self.clone();
                Arc::new(FaultyRequest { inner, plant })
            }
            _ => inner,
        }
    }

    /// A tool with the fault.
    pub fn tool(&self, inner: Arc<dyn ITool>) -> Arc<dyn ITool> {
        match self.fault {
            Fault::BodyEnteredTwice => {
                let plant = self.clone();
                Arc::new(FaultyTool { inner, plant })
            }
            _ => inner,
        }
    }

    fn bears(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
    }
}
