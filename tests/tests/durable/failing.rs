//! The store fails once, at each write there is, before it was made and after: no body is entered twice, and
//! a later pass comes to the end. Writes of runs nested in calls are among them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use raf_core::{
    ChatClientExt, ChatMessage, IChatClient, IRunStore, JournalKey, RunId, ToolApprovalResponse,
    ToolOutcome, ToolResult,
};
use raf_framework::{ClientResumer, PassOptions, resume_open_runs};
use raf_testing::{FaultyRunStore, ScriptedTool, WriteFault};

use crate::work::{self, AHEAD, LEASE};
use raf_tests::backend::Backend;

const ROUNDS: usize = 2;
/// Each failure costs a pass, each pause one; more is going round in circles.
const PASSES: usize = 8;

/// A stack whose runs pay, and what it does.
#[derive(Clone, Copy)]
pub(crate) struct Stack {
    client: fn(&Arc<ScriptedTool>) -> Arc<dyn IChatClient>,
    gated: bool,
    /// The run that pays, below the outermost one; empty if that is it.
    pays: &'static str,
    /// A test that fails fewer writes than that shows nothing.
    writes_at_least: u64,
}

/// Each round has a pause, and so an answer, a claim and a release; its plan, its start and its outcome are
/// written, and the leg's beginning and end.
pub(crate) const ALONE: Stack = Stack {
    client: |pay| work::client(ROUNDS, pay),
    gated: true,
    pays: "",
    writes_at_least: ROUNDS as u64 * 8,
};

/// An agent that asks an agent that pays. Each run writes its beginning, its plan with the start, the outcome,
/// its end.
pub(crate) const NESTED: Stack = Stack {
    client: |pay| work::asking("clerk", work::asking("teller", work::client(ROUNDS, pay))),
    gated: false,
    pays: "/0/0/clerk/0/0/teller",
    writes_at_least: 2 * 4 + ROUNDS as u64 * 2 + 2,
};

/// An agent that asks one whose payments wait for a yes: as alone, within the pauses of the run around.
pub(crate) const NESTED_AND_GATED: Stack = Stack {
    client: |pay| work::asking("clerk", work::client(ROUNDS, pay)),
    gated: true,
    pays: "/0/0/clerk",
    writes_at_least: ROUNDS as u64 * 8,
};

/// The loop whose write failed goes on: what it has in hand is saved first, so that nothing is lost.
pub(crate) async fn and_goes_on_here(store: &Arc<dyn IRunStore>, stack: Stack) {
    at_each_write(store, stack, async |run| {
        run.drive(&run.faulty, |_| false).await;
        assert_eq!(run.pay.log().entries(), ROUNDS, "{}", run.place);
        assert_eq!(run.unknown().await, 0, "{}", run.place);
    })
    .await;
}

/// The process of the loop dies with the failure, and another one goes on: what only the dead one knew is
/// unknown, and no body is entered twice.
pub(crate) async fn and_goes_on_elsewhere(backend: &Backend, stack: Stack) {
    let here = backend.open(Duration::ZERO, LEASE).await;
    let elsewhere = backend.open(AHEAD, LEASE).await;
    at_each_write(&here, stack, async |run| {
        run.drive(&run.faulty, |run| run.fault.failed() > 0).await;
        let other = Run {
            client: (stack.client)(&run.pay),
            ..run.clone()
        };
        other.drive(&elsewhere, |_| false).await;
        let (entries, unknown) = (run.pay.log().entries(), run.unknown().await);
        assert!(entries + unknown >= ROUNDS, "{}", run.place);
        assert!(unknown <= 1, "{}: one call was in flight", run.place);
    })
    .await;
}

/// A run over a store that fails once.
#[derive(Clone)]
struct Run {
    place: String,
    run_id: RunId,
    stack: Stack,
    pay: Arc<ScriptedTool>,
    client: Arc<dyn IChatClient>,
    faulty: Arc<dyn IRunStore>,
    /// The same one: what became of its fault.
    fault: FaultyRunStore,
}

async fn at_each_write(inner: &Arc<dyn IRunStore>, stack: Stack, test: impl AsyncFn(&Run)) {
    for fault in [WriteFault::Before, WriteFault::After] {
        let mut number = 0;
        loop {
            let place = format!("write {number} fails {fault:?}");
            let faulty = FaultyRunStore::new(Arc::clone(inner));
            faulty.fail_write(number, fault);
            let pay = ScriptedTool::returning("pay", "paid");
            let pay = Arc::new(if stack.gated { pay.gated() } else { pay });
            let run = Run {
                run_id: RunId::from(place.as_str()),
                client: (stack.client)(&pay),
                stack,
                faulty: Arc::new(faulty.clone()),
                fault: faulty,
                pay,
                place,
            };
            test(&run).await;
            assert!(work::is_closed(inner, &run.run_id).await, "{}", run.place);
            let calls = run.pay.log().calls();
            let rounds: BTreeSet<Option<u64>> = calls
                .iter()
                .map(|call| call.arguments["n"].as_u64())
                .collect();
            assert_eq!(rounds.len(), calls.len(), "{}: entered twice", run.place);
            if run.fault.failed() == 0 {
                break;
            }
            number += 1;
        }
        assert!(number >= stack.writes_at_least, "{number} writes");
    }
}

impl Run {
    /// Brings it to its end, or until its process dies: begins it where it is not there, approves what waits,
    /// lets a worker pass.
    async fn drive(&self, store: &Arc<dyn IRunStore>, dies: impl Fn(&Self) -> bool) {
        let resumer = ClientResumer::new(Arc::clone(&self.client));
        for _ in 0..PASSES {
            if dies(self) || work::is_closed(store, &self.run_id).await {
                return;
            }
            if store.load(&self.run_id).await.expect("a read").is_none() {
                let input = [ChatMessage::user("Pay.")];
                let options = work::options(store, &self.run_id);
                // Where the store fails it says so, and the next pass goes on.
                let _ = self.client.get_response(&input, options).await;
            }
            for waits in store.list_pending(None).await.expect("a read") {
                let _ = store
                    .answer(&ToolApprovalResponse::approve(waits.request_id()))
                    .await;
            }
            resume_open_runs(store, &resumer, PassOptions::new())
                .await
                .expect("a read");
        }
    }

    /// How many of its calls ended as unknown, as its journal has them; all others are ok.
    async fn unknown(&self) -> usize {
        let key = match self.stack.pays {
            "" => JournalKey::root(self.run_id.clone()),
            below => {
                let nested = format!("{}{below}", self.run_id.as_str());
                JournalKey::nested(self.run_id.clone(), nested.as_str().into())
            }
        };
        let entries = self.faulty.journal(&key, 0).await.expect("a read");
        let mut outcomes = BTreeMap::new();
        for entry in entries {
            let messages = entry.value.get("messages").cloned().unwrap_or_default();
            let messages: Vec<ChatMessage> = serde_json::from_value(messages).unwrap_or_default();
            let settled = entry.value.get("result").cloned();
            let settled = settled.map(serde_json::from_value::<ToolResult>);
            let settled = settled.transpose().expect("a result");
            let results = messages.iter().flat_map(ChatMessage::tool_results);
            for result in results.chain(settled.as_ref()) {
                outcomes.insert(result.occurrence(), result.outcome());
            }
        }
        assert_eq!(outcomes.len(), ROUNDS, "{}", self.place);
        let unknown = outcomes.values().filter(|outcome| !outcome.is_ok());
        unknown
            .inspect(|outcome| assert_eq!(**outcome, ToolOutcome::Unknown, "{}", self.place))
            .count()
    }
}
