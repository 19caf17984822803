//! Workers and answers that do not fit: they are taken back, so that a run is not taken up for them for ever,
//! and what they were for can be answered again.

use std::sync::Arc;

use raf_core::{
    AnswerOutcome, ChatClientExt, ChatClientRunOptions, ChatMessage, ErrorKind, IChatClient,
    IRunStore, InMemoryRunStore, RunId, ToolApprovalResponse,
};
use raf_framework::{
    ClientResumer, FunctionInvokingChatClient, PassOptions, ResumedRun, RunProgress,
    RunStoreOptionsExt, resume_open_runs,
};
use raf_testing::{Reply, ScriptedChatClient, ScriptedTool};
use raf_tools::ToolRegistry;
use serde_json::json;

struct Bench {
    book: Arc<ScriptedTool>,
    store: Arc<dyn IRunStore>,
    client: Arc<dyn IChatClient>,
    requests: Vec<String>,
}

/// A run that waits for a yes to each of these calls.
async fn waiting<'a>(calls: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>) -> Bench {
    let schema = json!({
        "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
    });
    let book = ScriptedTool::returning("book", "booked").with_parameters(&schema);
    let book = Arc::new(book.gated());
    let tools = ToolRegistry::builder()
        .with_shared_tool(book.clone())
        .build()
        .expect("tools");
    let model = ScriptedChatClient::new([Reply::calls(calls), Reply::text("done")]);
    let client: Arc<dyn IChatClient> =
        Arc::new(FunctionInvokingChatClient::new(Arc::new(model), tools));
    let store: Arc<dyn IRunStore> = Arc::new(InMemoryRunStore::new().with_durable(true));
    let options = ChatClientRunOptions::new()
        .with_run_store(Arc::clone(&store))
        .with_run_id("r".into());
    let input = [ChatMessage::user("Book.")];
    let paused = client.get_response(&input, options).await;
    let paused = paused.expect("a pause");
    let requests = paused.pending.iter().filter_map(|call| call.request_id());
    Bench {
        requests: requests.map(str::to_owned).collect(),
        book,
        store,
        client,
    }
}

impl Bench {
    async fn answer(&self, answer: ToolApprovalResponse) {
        let kept = self.store.answer(&answer).await.expect("the store");
        assert_eq!(kept, AnswerOutcome::Kept);
    }

    async fn pass(&self) -> Vec<ResumedRun> {
        let resumer = ClientResumer::new(Arc::clone(&self.client));
        let passed = resume_open_runs(&self.store, &resumer, PassOptions::new()).await;
        passed.expect("the store")
    }

    /// Nothing of it is left to do: no worker takes the run up again by itself.
    async fn is_at_rest(&self) {
        let resumable = self.store.list_resumable(9).await.expect("the store");
        assert_eq!(resumable, []);
        let kept = self.store.answers(&RunId::from("r")).await;
        assert_eq!(kept.expect("the store"), []);
        assert!(self.pass().await.is_empty());
    }

    async fn ends_with_the_last_yes(&self, request: &str) {
        self.answer(ToolApprovalResponse::approve(request)).await;
        let passed = self.pass().await;
        let RunProgress::Finished(response) = &passed[0].progress else {
            panic!("{passed:?}")
        };
        assert_eq!(response.text(), "done");
        self.is_at_rest().await;
    }
}

/// The store cannot tell that these arguments do not fit the tool; the leg can.
fn misfit(request: &str) -> ToolApprovalResponse {
    ToolApprovalResponse::approve_edited(request, json!({"n": "many"}))
}

#[tokio::test]
async fn e3_an_answer_that_does_not_fit_is_taken_back_and_can_be_given_again() {
    let bench = waiting([("c1", "book", r#"{"n":1}"#)]).await;
    let request = bench.requests[0].clone();
    bench.answer(misfit(&request)).await;
    let passed = bench.pass().await;
    let RunProgress::Failed(error) = &passed[0].progress else {
        panic!("{passed:?}")
    };
    assert_eq!(error.kind(), ErrorKind::ApprovalRefused);
    assert_eq!(bench.book.log().entries(), 0);
    bench.is_at_rest().await;
    bench.ends_with_the_last_yes(&request).await;
    assert_eq!(bench.book.log().entries(), 1);
}

#[tokio::test]
async fn e3_an_answer_that_does_not_fit_is_taken_back_beside_one_that_does() {
    let calls = [("c1", "book", r#"{"n":1}"#), ("c2", "book", r#"{"n":2}"#)];
    let bench = waiting(calls).await;
    bench.answer(misfit(&bench.requests[0])).await;
    bench
        .answer(ToolApprovalResponse::approve(bench.requests[1].as_str()))
        .await;
    let passed = bench.pass().await;
    assert!(
        matches!(passed[0].progress, RunProgress::Waits(_)),
        "{passed:?}"
    );
    assert_eq!(bench.book.log().entries(), 1);
    bench.is_at_rest().await;
    bench.ends_with_the_last_yes(&bench.requests[0]).await;
    assert_eq!(bench.book.log().entries(), 2);
}
