//! The child: it plays a run from where it finds it, or works as one of two workers.

use std::env;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use raf_core::{
    AnswerOutcome, CancellationToken, ChatClientExt, ChatClientRunOptions, ChatMessage,
    IChatClient, IRunStore, RunId, ToolApprovalResponse,
};
use raf_framework::{
    ClientResumer, PassOptions, RunProgress, RunStoreOptionsExt, WorkerOptions, resume_open_runs,
    run_worker,
};

use crate::agent::{self, QUESTION, note};
use crate::boundary::{Boundary, Reporting};
use raf_tests::backend::Backend;

/// How far the clock of the second process is ahead: more than a lease, less than a lifetime.
pub(crate) const AHEAD: Duration = Duration::from_hours(1);
/// A lease that no slow machine lets lapse.
pub(crate) const LEASE: Duration = Duration::from_secs(60);
/// A lease that a dead worker's runs are soon free of.
pub(crate) const SHORT_LEASE: Duration = Duration::from_millis(500);

/// How many runs a worker works at at once.
pub(crate) const AT_ONCE: usize = 16;

/// What the child shall do.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    /// Play this run, and report each boundary.
    Play(Backend, RunId),
    /// Finish this run, an hour later.
    Finish(Backend, RunId),
    /// Work until nothing is open.
    Work(Backend),
}

impl Task {
    /// What the parent said; none in the parent.
    pub(crate) fn from_env() -> Option<Self> {
        let task = env::var("RAF_CRASH_TASK").ok()?;
        let folder = PathBuf::from(env::var("RAF_CRASH_FOLDER").ok()?);
        let url = env::var("RAF_CRASH_URL").ok();
        let server = url.zip(env::var("RAF_CRASH_SCHEMA").ok());
        let backend = Backend::of_child(folder, server);
        let run_id = RunId::from(env::var("RAF_CRASH_RUN").unwrap_or_default().as_str());
        match task.as_str() {
            "play" => Some(Self::Play(backend, run_id)),
            "finish" => Some(Self::Finish(backend, run_id)),
            _ => Some(Self::Work(backend)),
        }
    }

    /// This program as a child with this task.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env::current_exe().expect("this program"));
        let (task, backend, run_id) = match self {
            Self::Play(backend, run_id) => ("play", backend, Some(run_id)),
            Self::Finish(backend, run_id) => ("finish", backend, Some(run_id)),
            Self::Work(backend) => ("work", backend, None),
        };
        command
            .env("RAF_CRASH_TASK", task)
            .env("RAF_CRASH_FOLDER", &backend.folder)
            .env("RAF_CRASH_RUN", run_id.map_or("", RunId::as_str))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if let Some((url, schema)) = &backend.server {
            command
                .env("RAF_CRASH_URL", url)
                .env("RAF_CRASH_SCHEMA", schema);
        }
        command
    }
}

/// Plays the child.
pub(crate) fn play(task: Task) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        match task {
            Task::Play(backend, run_id) => {
                let store = backend.open(Duration::ZERO, LEASE).await;
                drive(store, &backend, &run_id, Boundary(true)).await;
            }
            Task::Finish(backend, run_id) => {
                let store = backend.open(AHEAD, LEASE).await;
                drive(store, &backend, &run_id, Boundary(false)).await;
            }
            Task::Work(backend) => work(&backend).await,
        }
    });
    ExitCode::SUCCESS
}

/// Brings a run to its end: begins it where it is not there yet, answers what waits by the store.
async fn drive(inner: Arc<dyn IRunStore>, backend: &Backend, run_id: &RunId, boundary: Boundary) {
    let effects = backend.folder.join("effects");
    let client = agent::client(&effects, boundary);
    let store: Arc<dyn IRunStore> = Arc::new(Reporting { inner, boundary });
    if store.load(run_id).await.expect("the store").is_none() {
        let options = ChatClientRunOptions::new()
            .with_run_store(Arc::clone(&store))
            .with_run_id(run_id.clone());
        let input = [ChatMessage::user(QUESTION)];
        let begun = client.get_response(&input, options).await;
        begun.expect("the run");
    }
    let resumer = ClientResumer::new(client as Arc<dyn IChatClient>);
    while !is_closed(&store, run_id).await {
        for waits in store.list_pending(None).await.expect("the store") {
            let request_id = waits.request_id();
            note(&effects, &format!("asked {request_id} -"));
            if !waits.answered {
                let yes = ToolApprovalResponse::approve(request_id);
                let kept = store.answer(&yes).await.expect("the store");
                assert_eq!(kept, AnswerOutcome::Kept);
            }
        }
        let passed = resume_open_runs(&store, &resumer, PassOptions::new()).await;
        for run in passed.expect("the store") {
            assert!(!matches!(run.progress, RunProgress::Failed(_)), "{run:?}");
        }
    }
}

async fn is_closed(store: &Arc<dyn IRunStore>, run_id: &RunId) -> bool {
    let record = store.load(run_id).await.expect("the store");
    record.expect("the run").closed
}

/// One of the workers that race: it says of each run that it is done and waits for a word, and ends when
/// nothing is open.
async fn work(backend: &Backend) {
    let store = backend.open(Duration::ZERO, SHORT_LEASE).await;
    let client = agent::racing_client(&backend.folder.join("effects"));
    let resumer = ClientResumer::new(client);
    let stop = CancellationToken::new();
    let options = WorkerOptions::new()
        .with_every(Duration::from_millis(50))
        .with_pass(PassOptions::new().with_at_once(AT_ONCE));
    let worker = run_worker(&store, &resumer, options, &stop, |run| {
        if matches!(run.progress, RunProgress::Finished(_)) {
            Boundary(true).at("finished");
        }
    });
    let until_done = async {
        while !store.list_open(None).await.expect("the store").is_empty() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        stop.cancel();
    };
    futures::join!(worker, until_done);
}
