//! A word to a model that repeats itself, in the last result of the round (contract F4).

use raf_core::{AgentResponseUpdate, Content, Occurrence, ToolResult};
use raf_tools::{CallState, OpenBatch};

use super::leg::Leg;
use super::no_progress::WARNING;
use super::options::FunctionInvokingOptions;

/// The last result of a round that may have to carry a warning: it is held until all are known.
pub(super) struct Warning {
    hold: Option<Occurrence>,
    held: Option<(Occurrence, ToolResult)>,
}

impl Warning {
    /// Whether one may be due, before it is known.
    pub(super) fn foresee(batch: &OpenBatch, leg: &Leg, options: &FunctionInvokingOptions) -> Self {
        let calls = batch.calls();
        let no_pause = calls.iter().all(|call| {
            !call.state.is_undecided() && !matches!(call.state, CallState::DeclaredOnly)
        });
        let repeated = || {
            let limit = options.no_progress_rounds;
            leg.run.no_progress.may_warn(calls, limit)
        };
        Self {
            hold: calls
                .last()
                .filter(|_| no_pause && repeated())
                .map(|call| call.occurrence),
            held: None,
        }
    }

    /// Emits a result, or holds it.
    pub(super) async fn emit_or_hold(
        &mut self,
        leg: &mut Leg,
        occurrence: Occurrence,
        result: ToolResult,
    ) {
        if self.hold == Some(occurrence) {
            self.held = Some((occurrence, result));
        } else {
            emit(leg, occurrence, result).await;
        }
    }

    /// Puts the warning into the held result.
    pub(super) fn append(&mut self) {
        if let Some((_, result)) = &mut self.held {
            let mut content = result.content().to_vec();
            content.push(Content::text(WARNING));
            *result = result.to_builder().content(content).build();
        }
    }

    /// Emits what is held.
    pub(super) async fn release(&mut self, leg: &mut Leg) {
        if let Some((occurrence, result)) = self.held.take() {
            emit(leg, occurrence, result).await;
        }
    }
}

async fn emit(leg: &mut Leg, occurrence: Occurrence, result: ToolResult) {
    leg.emit(AgentResponseUpdate::ToolCalled { occurrence, result })
        .await;
}
