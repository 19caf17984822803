//! Runs of a session whose process dies behind any update that its user has seen: by then the session has
//! it, and the journal may not. Another process goes on with the same run.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use raf_core::{
    AgentResponseUpdate, AnswerOutcome, CancellationToken, ChatClientRunOptions, ChatMessage,
    ISession, MessageRole, RunId, Session, ToolApprovalResponse, ToolOutcome, validate_history,
};
use raf_framework::{
    AgentRequest, AgentResumer, AgentRuntime, PassOptions, RunProgress, RunStoreOptionsExt,
    resume_open_runs,
};
use raf_testing::{Behaviour, Reply, ScriptedChatClient, ScriptedRequest, ScriptedTool};

use raf_tools::ToolRegistry;

use crate::work::{self, AHEAD, ANSWER, LEASE};
use raf_tests::backend::{Backend, Stores};

/// Rounds that pay, before the answer.
const ROUNDS: usize = 2;

/// What a process that died may have left open.
#[derive(Default)]
struct Seen {
    /// A reply was the last that the user saw.
    behind_a_reply: usize,
    /// A reply that was the answer.
    behind_the_answer: usize,
}

/// Whatever update is the last one, the run comes to its end under its own id.
pub(crate) async fn behind_each_update(backend: &Backend) {
    let mut seen = Seen::default();
    let mut last = 0;
    while Run::begin(backend, &format!("free-{last}"), false)
        .await
        .dies_behind(last, &mut seen)
        .await
    {
        last += 1;
    }
    assert_eq!(seen.behind_a_reply, ROUNDS);
    assert_eq!(seen.behind_the_answer, 1);
}

/// The same of a run that asks before it pays.
pub(crate) async fn behind_each_update_of_a_gated_run(backend: &Backend) {
    let mut seen = Seen::default();
    let mut last = 0;
    while Run::begin(backend, &format!("gated-{last}"), true)
        .await
        .dies_behind(last, &mut seen)
        .await
    {
        last += 1;
    }
    assert_eq!(seen.behind_a_reply, 1, "the leg ends with its question");
}

/// Its user writes on instead of waiting for a worker.
pub(crate) async fn and_its_user_writes_on(backend: &Backend) {
    let mut last = 0;
    loop {
        let run = Run::begin(backend, &format!("left-{last}"), false).await;
        let updates = run.plays_until(last).await;
        run.goes_on_with_a_new_message().await;
        if updates.len() <= last {
            break;
        }
        last += 1;
    }
    assert!(last > ROUNDS);
}

/// It is cancelled while one call runs and another waits for a yes; its process dies as soon as the user is
/// told that the other one was not started. That stands: nobody is asked for it again.
pub(crate) async fn behind_a_call_that_was_cancelled(backend: &Backend) {
    let mut told = 0;
    for last in 0.. {
        let id = format!("cancelled-{last}");
        let run = Run::begin(backend, &id, true).await;
        let token = CancellationToken::new();
        let options = work::options(&run.stores.runs, &run.id).with_cancellation(token.clone());
        let request = AgentRequest::new("Pay.")
            .with_options(options)
            .in_session(run.session(&run.stores));
        let updates: Vec<_> = agent_that_looks(&run.pay, Behaviour::until_cancelled())
            .run(request)
            .inspect(|update| {
                if let Ok(AgentResponseUpdate::ToolStarted { .. }) = update {
                    token.cancel();
                }
            })
            .take(last + 1)
            .collect()
            .await;
        let was_not = ToolOutcome::Cancelled { started: false };
        let transcript = run.transcript(&run.stores).await;
        let is_told = outcomes(&transcript).any(|outcome| outcome == was_not);

        let agent = agent_that_looks(&run.pay, Behaviour::text("seen"));
        let resumer = AgentResumer::new(agent, run.elsewhere.sessions.clone());
        let passed = resume_open_runs(&run.elsewhere.runs, &resumer, PassOptions::new()).await;
        let passed = passed.expect("the store");
        let asked = run.elsewhere.runs.list_pending(None).await.expect("them");
        if is_told {
            told += usize::from(!passed.is_empty());
            assert_eq!(asked, []);
            let transcript = run.transcript(&run.elsewhere).await;
            assert_eq!(outcomes(&transcript).count(), 2, "{transcript:?}");
            assert!(work::is_closed(&run.elsewhere.runs, &run.id).await);
        }
        assert_eq!(run.pay.log().entries(), 0, "nobody said yes");
        if updates.len() <= last {
            break;
        }
        // The next process has a list of its own.
        for pending in asked {
            let no =
                ToolApprovalResponse::deny(pending.pending.request_id().expect("a request"), "");
            let answered = run.elsewhere.runs.answer(&no).await;
            assert_eq!(answered.expect("the store"), AnswerOutcome::Kept);
            resume_open_runs(&run.elsewhere.runs, &resumer, PassOptions::new())
                .await
                .expect("the store");
        }
    }
    assert!(
        told > 0,
        "some process died behind it and before its run's end"
    );
}

struct Run {
    stores: Stores,
    elsewhere: Stores,
    id: RunId,
    pay: Arc<ScriptedTool>,
}

impl Run {
    async fn begin(backend: &Backend, id: &str, gated: bool) -> Self {
        let pay = ScriptedTool::returning("pay", "paid");
        Self {
            stores: backend.open_both(Duration::ZERO, LEASE).await,
            elsewhere: backend.open_both(AHEAD, LEASE).await,
            id: RunId::from(id),
            pay: Arc::new(if gated { pay.gated() } else { pay }),
        }
    }

    /// Whether there was an update of this number.
    async fn dies_behind(self, last: usize, seen: &mut Seen) -> bool {
        let updates = self.plays_until(last).await;
        let there_was = updates.len() > last;
        if let Some(Ok(AgentResponseUpdate::MessageEnd { .. })) = updates.last() {
            let transcript = self.transcript(&self.stores).await;
            let reply = transcript.last().expect("a reply");
            assert_eq!(reply.role(), MessageRole::Assistant, "the session has it");
            match reply.tool_calls().next() {
                Some(_) => seen.behind_a_reply += 1,
                None => seen.behind_the_answer += 1,
            }
        }
        self.is_finished_elsewhere().await;
        there_was
    }

    async fn plays_until(&self, last: usize) -> Vec<raf_core::Result<AgentResponseUpdate>> {
        let request = AgentRequest::new("Pay.")
            .with_options(work::options(&self.stores.runs, &self.id))
            .in_session(self.session(&self.stores));
        let run = agent(&self.pay).run(request);
        run.take(last + 1).collect().await
    }

    async fn goes_on_with_a_new_message(&self) {
        let session = self.session(&self.elsewhere);
        let options = ChatClientRunOptions::new().with_run_store(self.elsewhere.runs.clone());
        let request = AgentRequest::new("And?")
            .with_options(options)
            .in_session(session);
        let response = agent(&self.pay).ask(request).await.expect("an answer");
        assert_eq!(response.text(), ANSWER);
        let open = self.elsewhere.runs.list_open(None).await.expect("them");
        assert!(open.is_empty(), "{open:?}");
        assert!(work::is_closed(&self.elsewhere.runs, &self.id).await);
        let transcript = self.transcript(&self.elsewhere).await;
        assert_eq!(paid(&transcript), ROUNDS);
        assert!(self.pay.log().entries() <= ROUNDS, "nothing is paid twice");
    }

    async fn is_finished_elsewhere(&self) {
        let resumer = AgentResumer::new(agent(&self.pay), self.elsewhere.sessions.clone());
        // As often as there is something to decide.
        for _ in 0..=2 * ROUNDS {
            let passed = resume_open_runs(&self.elsewhere.runs, &resumer, PassOptions::new())
                .await
                .expect("the store");
            for run in passed {
                assert_eq!(run.run_id, self.id, "no other run is begun");
                let response = match run.progress {
                    RunProgress::Finished(response) | RunProgress::Waits(response) => response,
                    other => panic!("{other:?}"),
                };
                assert_eq!(response.run_id.as_ref(), Some(&self.id));
            }
            for pending in self.elsewhere.runs.list_pending(None).await.expect("them") {
                let yes =
                    ToolApprovalResponse::approve(pending.pending.request_id().expect("a request"));
                let answered = self.elsewhere.runs.answer(&yes).await;
                assert_eq!(answered.expect("the store"), AnswerOutcome::Kept);
            }
        }
        let record = self.elsewhere.runs.load(&self.id).await;
        let record = record.expect("the store").expect("the run is there");
        assert!(record.closed, "{record:?}");
        let open = self.elsewhere.runs.list_open(None).await.expect("them");
        assert!(open.is_empty(), "{open:?}");
        let transcript = self.transcript(&self.elsewhere).await;
        let answers = transcript.iter().filter(|message| message.text() == ANSWER);
        assert_eq!(answers.count(), 1, "{transcript:?}");
        assert_eq!(transcript.last().expect("an answer").text(), ANSWER);
        assert_eq!(paid(&transcript), ROUNDS);
        let unknown = outcomes(&transcript).filter(|outcome| *outcome == ToolOutcome::Unknown);
        assert!(unknown.count() <= 1, "one call was in flight at most");
        let log = self.pay.log();
        assert!(log.entries() <= ROUNDS, "nothing is paid twice");
    }

    fn session(&self, stores: &Stores) -> Session {
        Session::new(Arc::clone(&stores.sessions), self.id.as_str())
    }

    async fn transcript(&self, stores: &Stores) -> Vec<ChatMessage> {
        let record = self.session(stores).load().await.expect("the store");
        validate_history(&record.history()).expect("a valid history");
        record.transcript()
    }
}

fn agent(pay: &Arc<ScriptedTool>) -> AgentRuntime {
    let agent = AgentRuntime::builder(model()).tools(work::tools(pay));
    agent.build().expect("an agent")
}

/// Looks and pays at once, then answers.
fn agent_that_looks(pay: &Arc<ScriptedTool>, look: Behaviour) -> AgentRuntime {
    let look = Arc::new(ScriptedTool::new("look").always(look));
    let tools = ToolRegistry::builder()
        .with_shared_tool(look)
        .with_shared_tool(pay.clone());
    let model =
        ScriptedChatClient::always(Reply::from_fn(|request: &ScriptedRequest| match outcomes(
            &request.messages,
        )
        .count()
        {
            0 => Reply::new()
                .call("c0", "look", "{}")
                .call("c1", "pay", "{}"),
            _ => Reply::text(ANSWER),
        }));
    let agent = AgentRuntime::builder(model).tools(tools.build().expect("tools"));
    agent.build().expect("an agent")
}

/// Pays until it has been told often enough that it has, or may have, then answers.
fn model() -> ScriptedChatClient {
    ScriptedChatClient::always(Reply::from_fn(|request: &ScriptedRequest| {
        let done = paid(&request.messages);
        if done < ROUNDS {
            let id = format!("call_{}", request.messages.len());
            Reply::new().call(&id, "pay", &format!(r#"{{"n":{done}}}"#))
        } else {
            Reply::text(ANSWER)
        }
    }))
}

/// How many payments were made, or may have been.
fn paid(messages: &[ChatMessage]) -> usize {
    let was_not = ToolOutcome::Cancelled { started: false };
    outcomes(messages)
        .filter(|outcome| *outcome != was_not)
        .count()
}

fn outcomes(messages: &[ChatMessage]) -> impl Iterator<Item = ToolOutcome> {
    let results = messages.iter().flat_map(ChatMessage::tool_results);
    results.map(raf_core::ToolResult::outcome)
}
