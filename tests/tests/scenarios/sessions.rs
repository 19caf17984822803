//! The parts of c01 and c17 that need a session in a real store: a process that is killed while a tool
//! runs, and a session that is reloaded. On SQLite, and on the PostgreSQL server that `RAF_POSTGRES_URL`
//! names.
//!
//! The program is parent and child: the child plays the leg that is killed from outside.

use std::env;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures::future::LocalBoxFuture;
use futures::{Stream, StreamExt};
use libtest_mimic::Trial;
use raf_core::{
    AgentResponse, AgentResponseUpdate, ChatClientRunOptions, ChatMessage, FinishReason, ISession,
    ResponseFold, Session, validate_history,
};
use raf_framework::{AgentRequest, AgentRuntime, RunStoreOptionsExt};
use raf_testing::{Behaviour, Latch, Reply, ScriptedChatClient, ScriptedTool, transcript_lines};
use raf_tests::backend::{Backend, Stores};
use raf_tests::leg::assert_lines;
use raf_tools::{ToolOutput, ToolRegistry};

/// A lease that no slow machine lets lapse.
const LEASE: Duration = Duration::from_secs(60);
/// How far the clock of the next process is ahead: what a dead one held has lapsed.
const AHEAD: Duration = Duration::from_hours(1);

type Test = fn(&Backend) -> LocalBoxFuture<'_, ()>;

const TESTS: [(&str, Test); 2] = [
    ("c01_the_process_is_killed", |backend| {
        Box::pin(c01_the_process_is_killed(backend))
    }),
    ("c17_the_session_is_reloaded", |backend| {
        Box::pin(c17_the_session_is_reloaded(backend))
    }),
];

pub(crate) fn trials() -> Vec<Trial> {
    let url = env::var("RAF_POSTGRES_URL").ok();
    let mut trials = Vec::new();
    for backend in ["sqlite", "postgres"] {
        let of_server = backend == "postgres";
        let skipped = of_server && url.is_none();
        for (name, test) in TESTS {
            let url = url.clone().filter(|_| of_server);
            let trial = Trial::test(format!("{name}_on_{backend}"), move || {
                runtime().block_on(async {
                    let backend = Backend::of_test(url.as_deref());
                    test(&backend).await;
                    backend.clean().await;
                });
                Ok(())
            });
            trials.push(trial.with_ignored_flag(skipped));
        }
    }
    trials
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

/// C01, its variant: the process is killed instead of cancelled, and the session is reloaded. The request
/// is the same, but for what nobody can know: the tool had started, so its outcome is unknown (contract
/// C1, I7).
async fn c01_the_process_is_killed(backend: &Backend) {
    let mut command = Command::new(env::current_exe().expect("this program"));
    command.env("RAF_KILLED_FOLDER", &backend.folder);
    if let Some((url, schema)) = &backend.server {
        command.env("RAF_KILLED_URL", url);
        command.env("RAF_KILLED_SCHEMA", schema);
    }
    let mut child = command.stdout(Stdio::piped()).spawn().expect("a child");
    let mut said = String::new();
    let out = child.stdout.as_mut().expect("its output");
    BufReader::new(out).read_line(&mut said).expect("a line");
    child.kill().expect("SIGKILL");
    child.wait().expect("its end");
    assert_eq!(said, "tool_start c1\n");

    let stores = backend.open_both(AHEAD, LEASE).await;
    let model = Arc::new(ScriptedChatClient::new([Reply::text("4")]));
    let agent = agent(&model, slow(&backend.folder));
    let response = ask(&agent, &stores, "never mind, what is 2+2?").await;
    assert_eq!(response.finish_reason, FinishReason::Stop);
    assert_eq!(response.text(), "4");
    let requests = model.requests();
    assert_eq!(requests.len(), 1);
    assert_lines(
        &transcript_lines(&requests[0].messages),
        &[
            "U:start it",
            "A:Working on it. [c1]",
            "R(c1, unknown: *",
            "U:never mind, what is 2+2?",
        ],
    );
    assert_eq!(entries(&backend.folder), 1, "slow is entered once");
    assert_lines(
        &transcript_lines(&history(&stores).await),
        &[
            "U:start it",
            "A:Working on it. [c1]",
            "R(c1, unknown: *",
            "U:never mind, what is 2+2?",
            "A:4",
        ],
    );
    let open = stores.runs.list_open(None).await.expect("the store");
    assert!(open.is_empty(), "{open:?}");
}

/// The child, if this is it: it plays the leg until it is killed.
pub(crate) fn child() -> Option<ExitCode> {
    let folder = PathBuf::from(env::var_os("RAF_KILLED_FOLDER")?);
    let server = env::var("RAF_KILLED_URL").ok();
    let server = server.zip(env::var("RAF_KILLED_SCHEMA").ok());
    let backend = Backend::of_child(folder, server);
    runtime().block_on(async {
        let stores = backend.open_both(Duration::ZERO, LEASE).await;
        let reply = Reply::text("Working on it.").call("c1", "slow", "{}");
        let model = Arc::new(ScriptedChatClient::new([reply]));
        let agent = agent(&model, slow(&backend.folder));
        let mut run = agent.run(request(&stores, "start it"));
        while let Some(update) = run.next().await {
            if let Ok(AgentResponseUpdate::ToolStarted { call, .. }) = update {
                let mut out = std::io::stdout().lock();
                writeln!(out, "tool_start {}", call.id).expect("the parent reads");
                out.flush().expect("the parent reads");
            }
        }
    });
    Some(ExitCode::FAILURE)
}

/// C17, its reload: the session comes from the store, and what was sent is sent again byte for byte.
async fn c17_the_session_is_reloaded(backend: &Backend) {
    let stores = backend.open_both(Duration::ZERO, LEASE).await;
    let model = Arc::new(ScriptedChatClient::new([
        Reply::calls([
            ("c1", "wait", r#"{"ms":80}"#),
            ("c2", "nosuch", "{}"),
            ("c3", "wait", r#"{"ms":10}"#),
            ("c4", "wait", r#"{"ms":40}"#),
        ]),
        Reply::text("done"),
    ]));
    let (first, second) = (Latch::new(), Latch::new());
    let agent_before = agent(&model, wait(&first, &second));
    let mut run = agent_before.run(request(&stores, "go"));
    let mut ends = Vec::new();
    let response = fold(&mut run, |update| {
        let AgentResponseUpdate::ToolCalled { result, .. } = update else {
            return;
        };
        match result.call_id() {
            "c3" => first.open(),
            "c4" => second.open(),
            _ => {}
        }
        ends.push(result.call_id().to_owned());
    });
    let response = response.await;
    assert_eq!(response.finish_reason, FinishReason::Stop);
    ends.retain(|id| id != "c2");
    assert_eq!(ends, ["c3", "c4", "c1"], "they end in this order");
    let sent = model.requests()[1].messages.clone();
    assert_lines(
        &transcript_lines(&sent),
        &[
            "U:go",
            "A:[c1,c2,c3,c4]",
            "R(c1, ok: '80')",
            "R(c2, error unknown_tool: *",
            "R(c3, ok: '10')",
            "R(c4, ok: '40')",
        ],
    );
    drop((run, agent_before, stores));

    let stores = backend.open_both(AHEAD, LEASE).await;
    let model = Arc::new(ScriptedChatClient::new([Reply::text("no")]));
    let agent = agent(&model, wait(&first, &second));
    let response = ask(&agent, &stores, "again?").await;
    assert_eq!(response.finish_reason, FinishReason::Stop);
    let again = model.requests()[0].messages.clone();
    let text = |messages: &[ChatMessage]| serde_json::to_string(messages).expect("JSON");
    assert_eq!(text(&again[..sent.len()]), text(&sent));
    let rest = transcript_lines(&again[sent.len()..]);
    assert_lines(&rest, &["A:done", "U:again?"]);
    let mut whole = transcript_lines(&again);
    whole.push("A:no".to_owned());
    assert_eq!(transcript_lines(&history(&stores).await), whole);
}

/// A tool that begins, and then waits until it is told to stop. Its entries are lines in a file.
fn slow(folder: &Path) -> ScriptedTool {
    let path = folder.join("entries");
    let body = Behaviour::custom(move |context, _| {
        let path = path.clone();
        async move {
            let file = OpenOptions::new().create(true).append(true).open(&path);
            writeln!(file.expect("the file"), "entered").expect("the file");
            context.cancelled().await;
            Ok(ToolOutput::Void)
        }
    });
    ScriptedTool::new("slow").always(body)
}

fn entries(folder: &Path) -> usize {
    let text = std::fs::read_to_string(folder.join("entries"));
    text.expect("the file").lines().count()
}

/// A tool whose calls end in the order of the milliseconds that they ask for, without any to pass.
fn wait(first: &Latch, second: &Latch) -> ScriptedTool {
    let (first, second) = (first.clone(), second.clone());
    ScriptedTool::new("wait").always(Behaviour::from_fn(move |_, arguments| {
        let ms = arguments["ms"].as_u64().expect("milliseconds");
        let body = Behaviour::json(ms.into());
        match ms {
            10 => body,
            40 => body.after_latch(&first),
            _ => body.after_latch(&second),
        }
    }))
}

fn agent(model: &Arc<ScriptedChatClient>, tool: ScriptedTool) -> AgentRuntime {
    let tools = ToolRegistry::builder().with_shared_tool(Arc::new(tool));
    let agent = AgentRuntime::builder(Arc::clone(model));
    let agent = agent.tools(tools.build().expect("a tool")).build();
    agent.expect("an agent")
}

fn session(stores: &Stores) -> Session {
    Session::new(Arc::clone(&stores.sessions), "ada")
}

fn request(stores: &Stores, text: &str) -> AgentRequest {
    let options = ChatClientRunOptions::new().with_run_store(Arc::clone(&stores.runs));
    AgentRequest::new(text)
        .with_options(options)
        .in_session(session(stores))
}

async fn ask(agent: &AgentRuntime, stores: &Stores, text: &str) -> AgentResponse {
    let response = agent.ask(request(stores, text)).await;
    response.expect("an answer")
}

async fn fold(
    run: &mut (impl Stream<Item = raf_core::Result<AgentResponseUpdate>> + Unpin),
    mut look: impl FnMut(&AgentResponseUpdate),
) -> AgentResponse {
    let mut fold = ResponseFold::new();
    while let Some(update) = run.next().await {
        let update = update.expect("an update");
        look(&update);
        fold.push(&update);
    }
    fold.finish().expect("an answer")
}

/// What the session holds, for a reader (V5).
async fn history(stores: &Stores) -> Vec<ChatMessage> {
    let record = session(stores).load().await.expect("the store");
    let history = record.history();
    validate_history(&history).expect("a valid history");
    history
}
