//! How much of a long conversation a run sees: cut where nothing is torn apart.

use serde::{Deserialize, Serialize};

use crate::message::{ChatMessage, MessageRole};

/// How much of a session's transcript a run sees. Leading instructions always stay, a call and its
/// result are never parted, and what a run waits for is never cut away. JSON form: snake case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SessionView {
    /// Everything.
    #[default]
    All,
    /// The last turns: each from a message of the user up to the next.
    LastTurns(usize),
    /// The last messages, fewer where the cut would part a result from its call; if there are only
    /// results, from their call on.
    LastMessages(usize),
}

impl SessionView {
    /// The part of a transcript that a run sees.
    pub fn of(self, transcript: &[ChatMessage]) -> Vec<ChatMessage> {
        let instructions = transcript
            .iter()
            .take_while(|message| {
                matches!(message.role(), MessageRole::System | MessageRole::Developer)
            })
            .count();
        let (head, rest) = transcript.split_at(instructions);
        let start = match self {
            Self::All => 0,
            Self::LastTurns(turns) => last_turns(rest, turns),
            Self::LastMessages(messages) => last_messages(rest, messages),
        };
        [head, &rest[start..]].concat()
    }
}

/// Where the last turns begin. Messages of the user one behind another are one turn.
fn last_turns(messages: &[ChatMessage], turns: usize) -> usize {
    let is_user = |index: usize| messages[index].role() == MessageRole::User;
    (0..messages.len())
        .rev()
        .filter(|&index| is_user(index) && (index == 0 || !is_user(index - 1)))
        .nth(turns.max(1) - 1)
        .unwrap_or(0)
}

fn last_messages(messages: &[ChatMessage], count: usize) -> usize {
    let is_result = |message: &ChatMessage| message.role() == MessageRole::Tool;
    let start = messages.len().saturating_sub(count.max(1));
    let forward = messages[start..]
        .iter()
        .position(|message| !is_result(message));
    match forward {
        Some(results) => start + results,
        None => messages[..start]
            .iter()
            .rposition(|message| !is_result(message))
            .unwrap_or(start),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::SessionView;
    use crate::{ChatMessage, ToolCall, ToolResult, validate_history};

    fn turn(calls: usize) -> Vec<ChatMessage> {
        let ids: Vec<String> = (0..calls).map(|call| format!("c{call}")).collect();
        let mut turn = vec![ChatMessage::user("go")];
        if calls > 0 {
            turn.push(ChatMessage::assistant_calls(
                ids.iter().map(|id| ToolCall::new(id, "t", "{}")),
            ));
            turn.extend(
                ids.iter()
                    .map(|id| ChatMessage::tool(ToolResult::ok(id, "x"))),
            );
        }
        turn.push(ChatMessage::assistant("done"));
        turn
    }

    proptest! {
        #[test]
        fn a_view_never_parts_a_call_from_its_result(
            calls in prop::collection::vec(0_usize..4, 0..6),
            drop_last in 0_usize..3,
            count in 0_usize..12,
        ) {
            let mut all = vec![ChatMessage::system("be kind")];
            all.extend(calls.iter().flat_map(|calls| turn(*calls)));
            all.truncate(all.len().saturating_sub(drop_last).max(1));
            for view in [SessionView::All, SessionView::LastTurns(count), SessionView::LastMessages(count)] {
                let seen = view.of(&all);
                prop_assert_eq!(&seen[0], &all[0]);
                prop_assert!(all.ends_with(&seen[1..]));
                prop_assert!(seen.len() > 1 || all.len() == 1);
                let sent = crate::normalise(&seen);
                prop_assert!(validate_history(&sent).is_ok());
                // Nothing was dropped to make it valid: no result had lost its call.
                prop_assert!(seen.iter().filter(|m| m.tool_results().next().is_some()).all(|m| sent.iter().any(|s| s.text() == m.text())));
                let results = |list: &[ChatMessage]| list.iter().flat_map(ChatMessage::tool_results).count();
                prop_assert!(results(&sent) >= results(&seen));
            }
        }
    }

    #[test]
    fn turns_begin_with_the_user() {
        let all = [turn(1), turn(0), turn(2)].concat();
        assert_eq!(SessionView::LastTurns(1).of(&all), turn(2));
        assert_eq!(
            SessionView::LastTurns(2).of(&all),
            [turn(0), turn(2)].concat()
        );
        assert_eq!(SessionView::LastTurns(9).of(&all), all);
        let waiting = &all[..all.len() - 1];
        assert_eq!(SessionView::LastMessages(1).of(waiting), turn(2)[1..4]);
    }
}
