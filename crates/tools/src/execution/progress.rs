//! What running bodies say meanwhile: a bounded, coalescing buffer that never blocks a body.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use raf_core::{Content, Occurrence};
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

#[cfg(test)]
mod tests {
    use raf_core::{Content, Occurrence};

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
}
