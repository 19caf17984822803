//! Runs of one session in the hands of workers: one after the other, whoever has them.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use raf_core::{
    AgentResponseUpdate, AnswerOutcome, BusyPolicy, ChatClientExt, ChatClientRunOptions,
    ChatMessage, ErrorKind, ISession, MessageRole, RefusalReason, RunId, Session,
    ToolApprovalResponse, validate_history,
};
use raf_framework::{
    AgentRequest, AgentResumer, AgentRuntime, PassOptions, ResumedRun, RunProgress,
    RunStoreOptionsExt, resume_open_runs,
};
use raf_testing::{Behaviour, Latch, ScriptedTool};

use crate::work::{self, ANSWER, LEASE};
use raf_tests::backend::{Backend, Stores};

/// Two runs whose processes died, and workers of two processes that take them up.
pub(crate) async fn two_runs_of_one(backend: &Backend, policy: BusyPolicy) {
    let here = backend.open_both(Duration::ZERO, LEASE).await;
    let runs = ["first", "second"].map(RunId::from);
    leave_open(&here, &runs).await;

    // Two workers of two processes. Whoever gets the session is held within the body.
    let elsewhere = backend.open_both(Duration::ZERO, LEASE).await;
    let (entered, leave) = (Latch::new(), Latch::new());
    let body = Behaviour::text("paid")
        .after_opening(&entered)
        .after_latch(&leave);
    let pay = Arc::new(ScriptedTool::new("pay").always(body));
    let pass = async |stores: &Stores, policy: BusyPolicy| {
        let resumer = AgentResumer::new(agent(&pay, policy), stores.sessions.clone());
        resume_open_runs(&stores.runs, &resumer, PassOptions::new())
            .await
            .expect("the store")
    };
    let first = pass(&here, policy);
    let second = async {
        entered.wait().await;
        if policy == BusyPolicy::Queue {
            leave.open();
        }
        let second = pass(&elsewhere, policy).await;
        leave.open();
        second
    };
    let (first, second) = futures::join!(first, second);

    let all: Vec<&ResumedRun> = first.iter().chain(&second).collect();
    let finished = |run: &&&ResumedRun| matches!(run.progress, RunProgress::Finished(_));
    let taken = |run: &&&ResumedRun| matches!(run.progress, RunProgress::Taken);
    assert!(
        all.iter().all(|run| finished(&run) || taken(&run)),
        "no other end: {all:?}"
    );
    match policy {
        BusyPolicy::Refuse => {
            assert_eq!(all.iter().filter(finished).count(), 1, "{all:?}");
            assert!(all.iter().filter(taken).count() >= 1, "{all:?}");
        }
        BusyPolicy::Queue => assert_eq!(all.iter().filter(finished).count(), 2, "{all:?}"),
    }
    // What was refused is taken up by a later pass, as soon as the session is let go.
    pass(&elsewhere, BusyPolicy::Queue).await;
    for run_id in &runs {
        assert!(work::is_closed(&here.runs, run_id).await, "{run_id}");
    }
    // Both questions stand in the session by then: whoever comes first may answer both.
    assert!(pay.log().entries() >= 1);
    assert_eq!(pay.log().max_concurrent(), 1, "never interleaved");
    let transcript = transcript(&here).await;
    assert_eq!(transcript.last().expect("an answer").text(), ANSWER);
}

/// A run that a worker plays, and a new one that its user begins meanwhile, by way of another process.
pub(crate) async fn a_new_run_beside_a_worker(backend: &Backend, policy: BusyPolicy) {
    let here = backend.open_both(Duration::ZERO, LEASE).await;
    let (first, second) = (RunId::from("first"), RunId::from("second"));
    leave_open(&here, std::slice::from_ref(&first)).await;
    let elsewhere = backend.open_both(Duration::ZERO, LEASE).await;
    let (entered, leave) = (Latch::new(), Latch::new());
    let body = Behaviour::text("paid")
        .after_opening(&entered)
        .after_latch(&leave);
    let pay = Arc::new(ScriptedTool::new("pay").always(body));
    let resumer = AgentResumer::new(agent(&pay, policy), here.sessions.clone());
    let worker = resume_open_runs(&here.runs, &resumer, PassOptions::new());
    let user = async {
        entered.wait().await;
        let session = Session::new(Arc::clone(&elsewhere.sessions), "ada");
        let request = AgentRequest::new("Pay, second.")
            .with_options(work::options(&elsewhere.runs, &second))
            .in_session(session);
        let agent = agent(&pay, policy);
        let asked = agent.ask(request);
        if policy == BusyPolicy::Queue {
            // It waits by now, or will in a moment: either way the first one is at its end before.
            let (asked, ()) = futures::join!(asked, async { leave.open() });
            return asked;
        }
        let asked = asked.await;
        leave.open();
        asked
    };
    let (passed, asked) = futures::join!(worker, user);
    let passed = passed.expect("the store");
    assert!(
        matches!(passed[0].progress, RunProgress::Finished(_)),
        "{passed:?}"
    );
    let mut whole = vec![
        MessageRole::User,
        MessageRole::Assistant,
        MessageRole::Tool,
        MessageRole::Assistant,
    ];
    match (policy, asked) {
        (BusyPolicy::Refuse, Err(error)) => {
            assert_eq!(error.kind(), ErrorKind::BusySession);
            // Nothing of it is anywhere.
            assert!(here.runs.load(&second).await.expect("the store").is_none());
            assert_eq!(pay.log().entries(), 1);
        }
        (BusyPolicy::Queue, Ok(response)) => {
            assert_eq!(response.text(), ANSWER);
            assert_eq!(pay.log().entries(), 2);
            whole.extend(whole.clone());
        }
        (policy, asked) => panic!("{policy:?}: {asked:?}"),
    }
    assert_eq!(pay.log().max_concurrent(), 1, "never interleaved");
    let transcript = transcript(&here).await;
    let roles: Vec<MessageRole> = transcript.iter().map(ChatMessage::role).collect();
    assert_eq!(roles, whole);
}

/// A run whose process died, and a newer one of its session that asks its user, with a message of its own or
/// in answer to the one that was there: a worker leaves the question of the newer one open.
pub(crate) async fn a_question_of_a_newer_run(backend: &Backend) {
    for (session, message) in [("ada", Some("Pay, second.")), ("eve", None)] {
        let here = backend.open_both(Duration::ZERO, LEASE).await;
        let (first, second) = (RunId::random(), RunId::random());
        let pay = Arc::new(ScriptedTool::returning("pay", "paid").gated());
        let agent = agent(&pay, BusyPolicy::Queue);
        let of_session = || Session::new(Arc::clone(&here.sessions), session);
        let request = AgentRequest::new("Pay, first.")
            .with_options(work::options(&here.runs, &first))
            .in_session(of_session());
        let mut dies = agent.run(request);
        dies.next()
            .await
            .expect("a beginning")
            .expect("a beginning");
        drop(dies);
        let request = message.map_or_else(AgentRequest::default, AgentRequest::new);
        let request = request
            .with_options(work::options(&here.runs, &second))
            .in_session(of_session());
        let asks = agent.ask(request).await.expect("a pause");
        let request_id = asks.pending[0].request_id().expect("a request");

        let resumer = AgentResumer::new(agent.clone(), here.sessions.clone());
        let pass = async || {
            let passed = resume_open_runs(&here.runs, &resumer, PassOptions::new()).await;
            passed.expect("the store")
        };
        let passed = pass().await;
        assert_eq!(passed.len(), 1);
        assert_eq!(passed[0].run_id, first);
        assert!(
            matches!(passed[0].progress, RunProgress::Taken),
            "{passed:?}"
        );
        assert!(work::is_closed(&here.runs, &first).await);

        let yes = ToolApprovalResponse::approve(request_id);
        let answered = here.runs.answer(&yes).await.expect("the store");
        assert_eq!(answered, AnswerOutcome::Kept);
        let passed = pass().await;
        assert!(
            matches!(passed[0].progress, RunProgress::Finished(_)),
            "{passed:?}"
        );
        assert_eq!(passed[0].run_id, second);
        assert_eq!(pay.log().entries(), 1);
        let transcript = of_session().load().await.expect("the store").transcript();
        validate_history(&transcript).expect("a valid history");
        assert_eq!(transcript.last().expect("an answer").text(), ANSWER);
    }
}

/// A client that keeps no sessions, and names one: a run that died is closed by its own conversation that goes
/// on, and is no business of another one under the same name.
pub(crate) async fn another_conversation(backend: &Backend) {
    let here = backend.open_both(Duration::ZERO, LEASE).await;
    let pay = Arc::new(ScriptedTool::returning("pay", "paid"));
    let client = work::client(1, &pay);
    let first = RunId::from("first");
    let question = ChatMessage::user("Pay.");
    let options = work::options(&here.runs, &first).with_session_id("ada");
    let dies = client.run(std::slice::from_ref(&question), options).await;
    let mut dies = dies.expect("a stream");
    dies.next()
        .await
        .expect("a beginning")
        .expect("a beginning");
    drop(dies);

    let options = || {
        let options = ChatClientRunOptions::new().with_session_id("ada");
        options.with_run_store(Arc::clone(&here.runs))
    };
    let edited = ChatMessage::user("Pay less.");
    let response = client.get_response(&[edited], options()).await;
    let response = response.expect("an answer");
    assert_ne!(response.run_id.as_ref(), Some(&first));
    assert!(
        response
            .messages
            .iter()
            .all(|message| message.role() != MessageRole::User)
    );
    assert!(
        !work::is_closed(&here.runs, &first).await,
        "a worker goes on with it"
    );

    let goes_on = [question, ChatMessage::user("Well?")];
    let response = client.get_response(&goes_on, options()).await;
    let response = response.expect("an answer");
    assert_ne!(response.run_id.as_ref(), Some(&first));
    assert!(
        work::is_closed(&here.runs, &first).await,
        "it is superseded"
    );
    assert_eq!(pay.log().entries(), 2);
}

/// A yes that was used, given once more to a run that was interrupted since: it is refused, and the run goes
/// on to its next question.
pub(crate) async fn a_yes_given_again_to_a_dead_run(backend: &Backend) {
    let here = backend.open_both(Duration::ZERO, LEASE).await;
    let pay = Arc::new(ScriptedTool::returning("pay", "paid").gated());
    let run_id = RunId::from("asks");
    let ask = work::client(2, &pay);
    let mut conversation = vec![ChatMessage::user("Pay.")];
    let options = || work::options(&here.runs, &run_id).with_session_id("ada");
    let paused = ask.get_response(&conversation, options()).await;
    let paused = paused.expect("a pause");
    let yes = ToolApprovalResponse::approve(paused.pending[0].request_id().expect("a request"));
    conversation.extend(paused.messages);

    let with_yes = || options().with_tool_approval_responses([yes.clone()]);
    let mut dies = ask.run(&conversation, with_yes()).await.expect("a stream");
    while let Some(update) = dies.next().await {
        if matches!(
            update.expect("an update"),
            AgentResponseUpdate::MessageStart { .. }
        ) {
            break;
        }
    }
    drop(dies);
    assert_eq!(pay.log().entries(), 1);

    let again = ask.run(&conversation, with_yes()).await.expect("a stream");
    let updates: Vec<_> = again
        .map(|update| update.expect("an update"))
        .collect()
        .await;
    let is_refused = |update: &AgentResponseUpdate| {
        matches!(update, AgentResponseUpdate::ToolApprovalRefused { reason, .. }
            if *reason == RefusalReason::AlreadySettled)
    };
    assert_eq!(
        updates.iter().filter(|update| is_refused(update)).count(),
        1
    );
    assert_eq!(pay.log().entries(), 1);
    let goes_on = raf_core::collect(futures::stream::iter(updates.into_iter().map(Ok))).await;
    let goes_on = goes_on.expect("the run goes on");
    assert_eq!(goes_on.run_id.as_ref(), Some(&run_id));
    assert_eq!(goes_on.pending.len(), 1, "it asks for the second payment");
}

async fn transcript(stores: &Stores) -> Vec<ChatMessage> {
    let session = Session::new(Arc::clone(&stores.sessions), "ada");
    let transcript = session.load().await.expect("the store").transcript();
    validate_history(&transcript).expect("a valid history");
    transcript
}

fn agent(pay: &Arc<ScriptedTool>, policy: BusyPolicy) -> AgentRuntime {
    let agent = AgentRuntime::builder(work::model(1)).tools(work::tools(pay));
    agent.busy_sessions(policy).build().expect("an agent")
}

/// Runs whose process died behind their beginning.
async fn leave_open(stores: &Stores, runs: &[RunId]) {
    let pay = Arc::new(ScriptedTool::returning("pay", "paid"));
    let agent = agent(&pay, BusyPolicy::Queue);
    for run_id in runs {
        let session = Session::new(Arc::clone(&stores.sessions), "ada");
        let request = AgentRequest::new(format!("Pay, {run_id}.").as_str())
            .with_options(work::options(&stores.runs, run_id))
            .in_session(session);
        let mut run = agent.run(request);
        run.next().await.expect("a beginning").expect("a beginning");
    }
    assert_eq!(pay.log().entries(), 0);
    let open = stores.runs.list_open(Some("ada")).await.expect("the store");
    assert_eq!(open.len(), runs.len());
}
