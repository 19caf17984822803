//! What a conversation shows of a run's journal, and what it has beyond it.

use raf_core::{ChatMessage, JournalKind, MessageRole, MessageSource, Result, RunId};

use super::recover::read;
use crate::function_invoking::leg::Leg;
use crate::function_invoking::steps::{StepValue, journal_key};

/// What a conversation has beyond the journal of an interrupted leg.
#[derive(Debug, Default, PartialEq)]
pub(in crate::function_invoking) enum Beyond {
    /// No reply.
    #[default]
    Nothing,
    /// A new message of the user, and no reply.
    Message,
    /// The last reply, and what stands behind it: the caller keeps a reply when its message ends, the
    /// journal with the next write.
    Reply(Vec<ChatMessage>),
    /// A reply and a new message of the user: the conversation went on without the run. What is there from
    /// the reply on, if it stands right behind what the journal has.
    MovedOn(Vec<ChatMessage>),
}

/// A journal's messages beside those of a caller.
pub(super) struct Compared {
    /// How many of the journal's the caller shows, those before one that is shown included: a caller may trim
    /// what came first.
    pub(super) shown: usize,
    /// What the caller shows and the journal does not have, with its place.
    pub(super) new: Vec<(usize, ChatMessage)>,
    /// The place behind the last one that both have.
    pub(super) end: usize,
}

/// Compares them: in order, by role and contents.
pub(super) fn compare(known: &[ChatMessage], input: &[ChatMessage]) -> Compared {
    let (mut shown, mut end, mut new) = (0, 0, Vec::new());
    for (place, message) in input.iter().enumerate() {
        let same = |other: &&ChatMessage| {
            other.role() == message.role() && other.contents() == message.contents()
        };
        match known[shown..].iter().position(|other| same(&other)) {
            Some(found) => {
                shown += found + 1;
                end = place + 1;
            }
            None => new.push((place, message.clone())),
        }
    }
    Compared { shown, new, end }
}

/// What these messages have beyond the journal. What is new and stands before what it has is how a caller
/// shows an older part: a summary, for instance.
pub(super) fn beyond(input: &[ChatMessage], new: &[(usize, ChatMessage)], end: usize) -> Beyond {
    let is_reply = |message: &ChatMessage| message.role() == MessageRole::Assistant;
    // What came while the run was in flight is its own.
    let of_run = [MessageSource::Inbox, MessageSource::Framework];
    let is_of_user = |message: &ChatMessage| {
        message.role() == MessageRole::User && !of_run.contains(&message.source())
    };
    let new = || new.iter().filter(|(place, _)| *place >= end);
    let by_user = new().any(|(_, message)| is_of_user(message));
    let Some((last, _)) = new().rfind(|(_, message)| is_reply(message)) else {
        return if by_user {
            Beyond::Message
        } else {
            Beyond::Nothing
        };
    };
    if !by_user {
        return Beyond::Reply(input[*last..].to_vec());
    }
    let first = new().find(|(_, message)| message.role() != MessageRole::Tool);
    let first = first.filter(|(_, message)| is_reply(message));
    Beyond::MovedOn(first.map_or_else(Vec::new, |(place, _)| input[*place..].to_vec()))
}

/// Whether the caller shows the conversation of a run, to its end as the journal has it.
///
/// # Errors
/// What the store fails with.
pub(in crate::function_invoking) async fn is_conversation_of(
    leg: &Leg,
    run_id: &RunId,
) -> Result<bool> {
    let key = journal_key(leg.root.as_ref(), run_id.clone());
    let mut known = Vec::new();
    for entry in leg.store.journal(&key, 0).await? {
        if entry.kind == JournalKind::Step {
            let step: StepValue = read(&entry)?;
            known.extend(step.input);
            known.extend(step.messages);
        }
    }
    let compared = compare(&known, leg.input());
    Ok(compared.end > 0 && compared.shown == known.len())
}

#[cfg(test)]
mod tests;
