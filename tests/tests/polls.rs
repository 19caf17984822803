//! A run is dropped, or cancelled, after N polls, for every N until it ends by itself.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use raf_core::{
    AgentResponseUpdate, Cancellation, CancellationToken, ChatClientExt, ChatClientRunOptions,
    ChatMessage, Error, ErrorKind, FinishReason, IChatClient, ResponseFold, ToolOutcome,
    UpdateStream, normalise, validate_history,
};
use raf_framework::FunctionInvokingChatClient;
use raf_testing::invariants::{
    assert_holds, check_entries, check_partial_updates, check_requests, check_transcript,
    check_updates,
};
use raf_testing::{
    Behaviour, Interrupted, Latch, RecordedCall, Reply, ScriptedChatClient, ScriptedTool, ToolLog,
    cancel_after_polls, drop_after_polls,
};
use raf_tests::polls::PollCounted;
use raf_tests::watch::Item;
use raf_tools::ToolRegistry;

/// What a run of two rounds with parallel tools is made of.
struct World {
    model: ScriptedChatClient,
    client: FunctionInvokingChatClient,
    tools: Vec<ToolLog>,
    polls: Vec<Arc<AtomicUsize>>,
    latch: Latch,
    input: Vec<ChatMessage>,
    /// Bodies that were entered after the cancel.
    late: Arc<AtomicUsize>,
}

const DONE: &str = "both rounds are done";

/// One tool sleeps and then opens a latch, one waits for the latch, one never looks at its token.
fn tools(latch: &Latch, token: &CancellationToken, late: &Arc<AtomicUsize>) -> [ScriptedTool; 3] {
    let minute = Duration::from_mins(1);
    let sleeping = Behaviour::text("slept")
        .after_progress("sleeping")
        .after_sleep(Duration::from_millis(30))
        .after_opening(latch);
    let blocked = Behaviour::text("let through").after_latch(latch);
    let deaf = Behaviour::text("finished").after_sleep(minute / 2);
    [("sleeping", sleeping), ("blocked", blocked), ("deaf", deaf)].map(|(name, behaviour)| {
        let (token, late) = (token.clone(), Arc::clone(late));
        ScriptedTool::new(name).always(Behaviour::from_fn(move |_, _| {
            if token.is_cancelled() {
                late.fetch_add(1, Ordering::SeqCst);
            }
            behaviour.clone()
        }))
    })
}

/// Round one calls all three, round two calls one twice, then comes the answer. A conversation that
/// goes on after an interruption is answered at once.
fn model() -> ScriptedChatClient {
    ScriptedChatClient::always(Reply::from_fn(|request| {
        let count = |role| {
            let messages = request.messages.iter();
            messages.filter(|message| message.role() == role).count()
        };
        let replies = count(raf_core::MessageRole::Assistant);
        match (&*request.user_text(), replies) {
            ("go", 0) => Reply::text("Let me look.")
                .call("c1", "sleeping", "{}")
                .call("c2", "blocked", "{}")
                .call("c3", "deaf", "{}")
                .usage(10, 5),
            ("go", 1) => Reply::text("Once more.")
                .call("c1", "sleeping", "{}")
                .call("c1", "blocked", "{}")
                .usage(20, 5),
            _ => Reply::text(DONE).usage(30, 5),
        }
    }))
}

async fn set_up(cancellation: CancellationToken) -> (UpdateStream, World) {
    let (latch, late) = (Latch::new(), Arc::default());
    let tools = tools(&latch, &cancellation, &late);
    let logs = tools.iter().map(|tool| tool.log().clone()).collect();
    let counted = tools.map(PollCounted::new);
    let polls = counted.iter().map(PollCounted::counter).collect();
    let registry = counted
        .into_iter()
        .fold(ToolRegistry::builder(), |builder, tool| {
            builder.with_tool(tool)
        })
        .build()
        .expect("three names");
    let model = model();
    let client = FunctionInvokingChatClient::new(Arc::new(model.clone()), registry);
    let input = vec![ChatMessage::user("go")];
    let options = ChatClientRunOptions::new().with_cancellation(Cancellation::from(cancellation));
    let stream = client.run(&input, options).await.expect("a good request");
    let world = World {
        model,
        client,
        tools: logs,
        polls,
        latch,
        input,
        late,
    };
    (stream, world)
}

impl World {
    fn entries(&self) -> Vec<RecordedCall> {
        self.tools.iter().flat_map(ToolLog::calls).collect()
    }

    fn counts(&self) -> Vec<usize> {
        let polls = self.polls.iter().map(|polls| polls.load(Ordering::SeqCst));
        let completions = self.tools.iter().map(ToolLog::completions);
        polls.chain(completions).collect()
    }

    /// Nothing of the run is alive, and nothing of it comes to life again.
    async fn assert_dead(&self) {
        let running: Vec<usize> = self.tools.iter().map(ToolLog::running).collect();
        assert_eq!(running, [0, 0, 0], "bodies are alive");
        assert_eq!(
            self.model.probe().live(),
            0,
            "a stream of the model is alive"
        );
        let (counts, requests) = (self.counts(), self.model.request_count());
        self.latch.open();
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert_eq!(self.counts(), counts, "a body was polled again");
        assert_eq!(self.model.request_count(), requests, "a request was made");
    }

    /// The client works on from what the caller has.
    async fn assert_usable(&self, messages: Vec<ChatMessage>) {
        let mut conversation = self.input.clone();
        conversation.extend(messages);
        assert_valid(&conversation);
        conversation.push(ChatMessage::user("and now?"));
        let options = ChatClientRunOptions::new();
        let response = self.client.get_response(&conversation, options).await;
        let response = response.expect("the second run ends well");
        assert_eq!(response.finish_reason, FinishReason::Stop);
        assert_eq!(response.text(), DONE);
        assert_holds(check_requests(&self.model.requests()));
        assert_holds(check_entries(&self.entries()));
    }
}

#[track_caller]
fn assert_valid(transcript: &[ChatMessage]) {
    let faults = validate_history(&normalise(transcript)).err();
    assert_eq!(faults, None, "{transcript:#?}");
}

/// What a consumer makes of the items that it got.
fn folded(items: &[Item]) -> Vec<ChatMessage> {
    let mut fold = ResponseFold::new();
    items.iter().flatten().for_each(|update| fold.push(update));
    // The open message too, as a collecting helper keeps it.
    let mut failed = fold.fail(Error::new(ErrorKind::Cancelled, "dropped"));
    failed.take_leg().expect("what was done").messages
}

#[test]
fn b5_a_stream_that_is_dropped_after_any_number_of_polls_leaves_nothing_running() {
    let entered = Cell::new(0);
    let polls = drop_after_polls(
        async || set_up(CancellationToken::new()).await,
        async |left: Interrupted<Item, World>| {
            left.world.assert_dead().await;
            assert_holds(check_partial_updates(&left.items));
            assert_holds(check_entries(&left.world.entries()));
            entered.set(left.world.entries().len());
            left.world.assert_usable(folded(&left.items)).await;
        },
    );
    // The run is what it was meant to be: it waits at many points, in both rounds.
    assert_eq!(entered.get(), 5);
    assert!(polls > 30, "only {polls} points");
}

#[test]
fn h1_a_run_that_is_cancelled_after_any_number_of_polls_ends_once_and_whole() {
    let (completed, cancelled) = (Cell::new(0), Cell::new(0));
    let polls = cancel_after_polls(set_up, async |left: Interrupted<Item, World>| {
        let (world, items) = (&left.world, left.items);
        assert_holds(check_updates(&items));
        match items.last() {
            Some(Ok(AgentResponseUpdate::Finish { finish })) => {
                assert_eq!(finish.reason, FinishReason::Stop);
                completed.set(completed.get() + 1);
            }
            Some(Err(error)) => {
                assert_eq!(error.kind(), ErrorKind::Cancelled);
                let leg = error.leg().expect("what the leg had done");
                assert_eq!(leg.messages, folded(&items));
                cancelled.set(cancelled.get() + 1);
            }
            other => panic!("the last item is {other:?}"),
        }
        // Every call has a result of its own, without `normalise` filling any.
        assert_holds(check_transcript(&folded(&items), &[]));
        // No body starts after the cancel.
        assert_eq!(world.late.load(Ordering::SeqCst), 0, "a body started late");
        world.assert_dead().await;
        world.assert_usable(folded(&items)).await;
        // Bodies that ended within the grace keep their outcome.
        for update in items.iter().flatten() {
            if let AgentResponseUpdate::ToolCalled { result, .. } = update {
                let outcome = result.outcome();
                let fits = outcome.is_ok() || matches!(outcome, ToolOutcome::Cancelled { .. });
                assert!(fits, "{outcome:?}");
            }
        }
    });
    assert!(polls > 30, "only {polls} points");
    let (completed, cancelled) = (completed.get(), cancelled.get());
    assert!(
        completed >= 1 && cancelled > 30,
        "{completed} and {cancelled}"
    );
}
