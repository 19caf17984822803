//! Stop reasons: an open set of words.

use raf_core::FinishReason;

/// The word of a turn that the server paused: it goes on where the turn is sent back.
pub(crate) const PAUSE: &str = "pause_turn";

/// What a stop reason means, calls apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Stop,
    Length,
    ContentFilter,
    Other,
}

fn ending(word: &str) -> Ending {
    match word {
        "" | "end_turn" | "stop_sequence" | "tool_use" => Ending::Stop,
        "max_tokens" | "model_context_window_exceeded" => Ending::Length,
        "refusal" => Ending::ContentFilter,
        _ => Ending::Other,
    }
}

/// Whether the reply was cut, so that a call may lack its end.
pub(crate) fn was_cut(word: &str) -> bool {
    matches!(ending(word), Ending::Length | Ending::ContentFilter)
}

/// How the reply ended. One that was not cut and has calls asks for them, whatever the word says.
pub(crate) fn reason(word: &str, has_calls: bool) -> FinishReason {
    match ending(word) {
        Ending::Length => FinishReason::Length,
        Ending::ContentFilter => FinishReason::ContentFilter,
        _ if has_calls => FinishReason::ToolCalls,
        Ending::Stop => FinishReason::Stop,
        Ending::Other => FinishReason::Other(word.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use raf_core::FinishReason;

    use super::reason;

    #[test]
    fn every_word_has_its_meaning() {
        let other = |word: &str| FinishReason::Other(word.to_owned());
        for (word, without, with) in [
            ("end_turn", FinishReason::Stop, FinishReason::ToolCalls),
            ("stop_sequence", FinishReason::Stop, FinishReason::ToolCalls),
            ("tool_use", FinishReason::Stop, FinishReason::ToolCalls),
            ("", FinishReason::Stop, FinishReason::ToolCalls),
            ("max_tokens", FinishReason::Length, FinishReason::Length),
            (
                "model_context_window_exceeded",
                FinishReason::Length,
                FinishReason::Length,
            ),
            (
                "refusal",
                FinishReason::ContentFilter,
                FinishReason::ContentFilter,
            ),
            ("pause_turn", other("pause_turn"), FinishReason::ToolCalls),
            ("compaction", other("compaction"), FinishReason::ToolCalls),
        ] {
            assert_eq!(reason(word, false), without, "{word}");
            assert_eq!(reason(word, true), with, "{word}");
        }
    }
}
