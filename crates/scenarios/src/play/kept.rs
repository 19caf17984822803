//! What must hold of what a durable store has behind a leg, read from it after it was opened again: the
//! record says what the caller was told, and the journal holds what the caller saw (contract I6, E8).

use futures::executor::block_on;
use raf_core::{
    ChatMessage, IRunStore, JournalEntry, JournalKey, JournalKind, PendingCall, Result, RunId,
    RunRecord, ToolResult, normalise,
};

use super::ledger::Ledger;
use super::leg::Leg;
use crate::notation::Line;

/// What a store has of a run.
struct Kept {
    record: Option<RunRecord>,
    journal: Vec<JournalEntry>,
}

/// Everything that is wrong with what the store has. `conversation`: what the caller has now, if it is
/// what the leg was asked with and what it added.
pub(crate) fn check_kept(
    store: &dyn IRunStore,
    leg: &Leg,
    ledger: &Ledger,
    conversation: Option<&[ChatMessage]>,
) -> Vec<String> {
    let mut faults = Vec::new();
    let found: Result<()> = block_on(async {
        let mut results = Vec::new();
        for run_id in ledger.runs.keys() {
            results.extend(Kept::load(store, run_id).await?.results());
        }
        results_are_kept(leg, &results, &mut faults);
        if leg.response.is_none() || !leg.seen.opened {
            return Ok(());
        }
        if let Some(run_id) = leg.run_id() {
            let kept = Kept::load(store, &run_id).await?;
            // A leg whose answers are all refused begins no run.
            let did_nothing = leg.seen.requests.is_empty() && leg.messages().is_empty();
            if kept.record.is_none() && did_nothing && leg.pending().is_empty() {
                return Ok(());
            }
            record_says_what_was_told(leg, kept.record.as_ref(), &mut faults);
            if let Some(conversation) = conversation {
                kept.holds(conversation, &mut faults);
            }
        }
        let waits = store.list_pending(None).await?;
        for call in leg
            .pending()
            .iter()
            .filter(|call| call.request_id().is_some())
        {
            if !waits.iter().any(|waiting| waiting.pending == *call) {
                faults.push(format!("E8: '{}' is not listed as pending", call.call.id()));
            }
        }
        Ok(())
    });
    if let Err(error) = found {
        faults.push(format!("I6: what is kept cannot be read: {error}"));
    }
    faults
}

impl Kept {
    async fn load(store: &dyn IRunStore, run_id: &RunId) -> Result<Self> {
        Ok(Self {
            record: store.load(run_id).await?,
            journal: store.journal(&JournalKey::root(run_id.clone()), 0).await?,
        })
    }

    fn messages(&self, member: &str) -> Vec<ChatMessage> {
        let steps = self
            .journal
            .iter()
            .filter(|entry| entry.kind == JournalKind::Step);
        let found = steps.map(|entry| messages(entry, member));
        found.flatten().collect()
    }

    /// The results that the journal has, of steps and of batches in flight.
    fn results(&self) -> Vec<ToolResult> {
        let settled = self
            .journal
            .iter()
            .filter(|entry| entry.kind == JournalKind::Settled);
        let settled = settled.map(|entry| serde_json::from_value(entry.value["result"].clone()));
        let of_steps = self.messages("messages");
        let of_steps = of_steps.iter().flat_map(ChatMessage::tool_results);
        settled.flatten().chain(of_steps.cloned()).collect()
    }

    /// I6, B2: who knows nothing but the journal has the conversation that the caller has.
    fn holds(&self, conversation: &[ChatMessage], faults: &mut Vec<String>) {
        let kept = in_order(&self.journal);
        let (kept, expected) = (normalise(&kept), normalise(conversation));
        if !is_same(&kept, &expected) {
            let lines = |messages: &[ChatMessage]| {
                let lines = Line::of(messages).into_iter();
                lines.map(|line| line.to_string()).collect::<Vec<_>>()
            };
            let (kept, expected) = (lines(&kept), lines(&expected));
            faults.push(format!(
                "I6: the journal holds {kept:?}, and the conversation is {expected:?}"
            ));
        }
    }
}

/// The messages that the journal of a run holds.
pub(crate) async fn transcript(store: &dyn IRunStore, run_id: &RunId) -> Result<Vec<ChatMessage>> {
    let journal = store.journal(&JournalKey::root(run_id.clone()), 0).await?;
    Ok(in_order(&journal))
}

fn in_order(journal: &[JournalEntry]) -> Vec<ChatMessage> {
    let steps = journal
        .iter()
        .filter(|entry| entry.kind == JournalKind::Step);
    let messages = steps.flat_map(|entry| [messages(entry, "input"), messages(entry, "messages")]);
    messages.flatten().collect()
}

/// Whether these are the same but for what a leg's end adds to a message, which stands in the record.
pub(crate) fn is_same(some: &[ChatMessage], others: &[ChatMessage]) -> bool {
    some.len() == others.len() && some.iter().zip(others).all(|(a, b)| is_same_message(a, b))
}

/// Whether these are the same but for whose run they ask for.
pub(crate) fn is_same_message(one: &ChatMessage, other: &ChatMessage) -> bool {
    let unmarked = |message: &ChatMessage| {
        let mut json = serde_json::to_value(message).unwrap_or_default();
        if let Some(members) = json.as_object_mut() {
            members.remove("raf_run_id");
            members.remove("raf_round");
        }
        json
    };
    unmarked(one) == unmarked(other)
}

fn messages(entry: &JournalEntry, member: &str) -> Vec<ChatMessage> {
    let found = entry.value.get(member).cloned();
    found.map_or_else(Vec::new, |found| {
        serde_json::from_value(found).unwrap_or_default()
    })
}

/// I6: a result that the caller saw is kept, whatever became of the leg.
fn results_are_kept(leg: &Leg, kept: &[ToolResult], faults: &mut Vec<String>) {
    for message in &leg.messages() {
        for result in message.tool_results() {
            if !kept.contains(result) {
                faults.push(format!(
                    "I6: the result of '{}' is not kept: {result:?}",
                    result.call_id()
                ));
            }
        }
    }
}

/// E8, I6: the record waits for what the caller was told, and for nothing else.
fn record_says_what_was_told(leg: &Leg, record: Option<&RunRecord>, faults: &mut Vec<String>) {
    if record.is_none() {
        faults.push("I6: there is no record of the run".to_owned());
    }
    let pending = leg.pending();
    let open = record.filter(|record| !record.closed);
    let waits: Vec<PendingCall> = open.map(RunRecord::pending).unwrap_or_default();
    if waits != pending {
        faults.push(format!(
            "E8: the record waits for {waits:?}, and the caller was told {pending:?}"
        ));
    }
    if open.is_some_and(|record| record.working) {
        faults.push("I6: the leg has ended, and its record says that it works".to_owned());
    }
    if open.is_some() && pending.is_empty() {
        faults.push("I6: the run has ended, and its record is open".to_owned());
    }
}

#[cfg(test)]
mod tests;
