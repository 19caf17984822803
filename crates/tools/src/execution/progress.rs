//! What running bodies say meanwhile: a bounded, coalescing buffer that never blocks a body.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use raf_core::{AgentResponseUpdate, Content, NestedUpdate, Occurrence};
use tokio::sync::Notify;

/// The most pieces that wait for a slow consumer.
const MAX_PIECES: usize = 256;
/// The most bytes that one joined text piece grows to.
const MAX_TEXT: usize = 64 * 1024;

#[derive(Debug, Default)]
pub(super) struct Progress {
    pieces: Mutex<VecDeque<(Occurrence, Piece)>>,
    changed: Notify,
}

/// What a running body says.
#[derive(Debug)]
pub(super) enum Piece {
    /// It is being entered.
    Entered,
    /// Something for the consumer.
    Said(Content),
    /// An update of a run nested in it.
    Nested(NestedUpdate),
}

impl Progress {
    /// Adds a piece. Text is joined to unread text of the same call; beyond the bound pieces are
    /// dropped, for the result holds what counts.
    pub(super) fn push(&self, occurrence: Occurrence, piece: Content) {
        let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some((of, Piece::Said(Content::Text(last)))), Content::Text(text)) =
            (pieces.back_mut(), &piece)
            && *of == occurrence
            && last.extra.is_empty()
            && text.extra.is_empty()
            && last.text.len() + text.text.len() <= MAX_TEXT
        {
            last.text.push_str(&text.text);
        } else if pieces.len() < MAX_PIECES {
            pieces.push_back((occurrence, Piece::Said(piece)));
        }
        drop(pieces);
        self.changed.notify_one();
    }

    /// Adds an update of a nested run. Deltas are joined to unread ones; beyond the bound updates are
    /// dropped, but for requests to the outside and their ends.
    pub(super) fn push_nested(&self, occurrence: Occurrence, update: NestedUpdate) {
        let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        let joined = match pieces.back_mut() {
            Some((of, Piece::Nested(last))) if *of == occurrence => join_nested(last, &update),
            _ => false,
        };
        if !joined && (pieces.len() < MAX_PIECES || is_request(&update.update)) {
            pieces.push_back((occurrence, Piece::Nested(update)));
        }
        drop(pieces);
        self.changed.notify_one();
    }

    /// Says that a body is being entered. Never dropped.
    pub(super) fn entered(&self, occurrence: Occurrence) {
        self.pieces
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_back((occurrence, Piece::Entered));
        self.changed.notify_one();
    }

    /// Takes the oldest unread piece.
    pub(super) fn pop(&self) -> Option<(Occurrence, Piece)> {
        self.pieces
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    }

    /// Completes when a piece was added since the last time.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// Joins a delta to the unread one before it.
fn join_nested(last: &mut NestedUpdate, next: &NestedUpdate) -> bool {
    last.run_id == next.run_id && join(&mut last.update, &next.update)
}

fn join(last: &mut AgentResponseUpdate, next: &AgentResponseUpdate) -> bool {
    use AgentResponseUpdate::{Nested, ReasoningDelta, TextDelta, ToolCallArgs};
    let (text, more) = match (last, next) {
        (TextDelta { text }, TextDelta { text: more })
        | (ReasoningDelta { text }, ReasoningDelta { text: more }) => (text, more),
        (
            ToolCallArgs { position, delta },
            ToolCallArgs {
                position: of,
                delta: more,
            },
        ) if position == of => (delta, more),
        (
            Nested { occurrence, nested },
            Nested {
                occurrence: of,
                nested: next,
            },
        ) if occurrence == of => return join_nested(nested, next),
        _ => return false,
    };
    let fits = text.len() + more.len() <= MAX_TEXT;
    if fits {
        text.push_str(more);
    }
    fits
}

/// Whether somebody outside waits for this: it is never dropped.
fn is_request(update: &AgentResponseUpdate) -> bool {
    match update {
        AgentResponseUpdate::Nested { nested, .. } => is_request(&nested.update),
        AgentResponseUpdate::ToolApprovalRequest { .. }
        | AgentResponseUpdate::ToolInterrupted { .. }
        | AgentResponseUpdate::ToolApprovalRefused { .. }
        | AgentResponseUpdate::ToolApprovalClosed { .. } => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use raf_core::{AgentResponseUpdate, Content, NestedUpdate, Occurrence, RefusalReason};

    use super::{MAX_PIECES, Piece, Progress};

    #[test]
    fn b5_unread_text_of_one_call_is_joined_and_the_buffer_is_bounded() {
        let progress = Progress::default();
        let (a, b) = (Occurrence::new(0, 0), Occurrence::new(0, 1));
        for (call, text) in [(a, "x"), (a, "y"), (b, "z"), (a, "w")] {
            progress.push(call, Content::text(text));
        }
        let mut read = Vec::new();
        while let Some((call, Piece::Said(piece))) = progress.pop() {
            read.push((call.position, piece.as_text().unwrap().to_owned()));
        }
        assert_eq!(read, [(0, "xy".into()), (1, "z".into()), (0, "w".into())]);

        for index in 0..10 * MAX_PIECES {
            progress.push(if index % 2 == 0 { a } else { b }, Content::text("x"));
        }
        let mut count = 0;
        while progress.pop().is_some() {
            count += 1;
        }
        assert_eq!(count, MAX_PIECES);
    }

    #[test]
    fn b5_deltas_of_a_nested_run_are_joined_and_its_requests_are_never_dropped() {
        let progress = Progress::default();
        let call = Occurrence::new(0, 0);
        let push = |update: AgentResponseUpdate, depth: u32| {
            let mut nested = NestedUpdate {
                run_id: "inner".into(),
                update,
            };
            for _ in 0..depth {
                nested = NestedUpdate {
                    run_id: "outer".into(),
                    update: AgentResponseUpdate::Nested {
                        occurrence: call,
                        nested: Box::new(nested),
                    },
                };
            }
            progress.push_nested(call, nested);
        };
        for _ in 0..3 {
            push(AgentResponseUpdate::text("x"), 1);
        }
        push(AgentResponseUpdate::message_end(), 1);
        let Some((_, Piece::Nested(joined))) = progress.pop() else {
            panic!("nothing was pushed");
        };
        assert!(serde_json::to_string(&joined).unwrap().contains("xxx"));
        let refused = AgentResponseUpdate::ToolApprovalRefused {
            request_id: "r".into(),
            reason: RefusalReason::Stale,
        };
        for _ in 0..2 * MAX_PIECES {
            push(AgentResponseUpdate::message_end(), 0);
        }
        for _ in 0..10 {
            push(refused.clone(), 1);
        }
        let count = std::iter::from_fn(|| progress.pop()).count();
        assert_eq!(count, MAX_PIECES + 10);
    }
}
