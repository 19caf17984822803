//! An executor with scripted tools, driven whole or as a stream.

use futures::StreamExt;
use raf_core::{ChatMessage, PausedRun, PendingCall, ToolApprovalResponse, ToolCall, WaitsFor};
use raf_testing::{Behaviour, ScriptedTool, ToolLog};
use raf_tools::{
    BatchEvent, ExecuteOptions, Execution, ExecutionUpdate, ToolExecutor, ToolRegistry,
};
use serde_json::{Value, json};

/// How a leg of the executor is driven; a resume can be driven the other way than what it resumes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    Whole,
    Stream,
}

/// Every pair of forms, each with and without a reload of the paused batch.
pub(crate) const WAYS: [(Form, Form, bool); 8] = [
    (Form::Whole, Form::Whole, false),
    (Form::Whole, Form::Stream, false),
    (Form::Stream, Form::Whole, false),
    (Form::Stream, Form::Stream, false),
    (Form::Whole, Form::Whole, true),
    (Form::Whole, Form::Stream, true),
    (Form::Stream, Form::Whole, true),
    (Form::Stream, Form::Stream, true),
];

pub(crate) struct Bench {
    pub(crate) executor: ToolExecutor,
    pub(crate) logs: Vec<ToolLog>,
}

impl Bench {
    pub(crate) fn new(tools: impl IntoIterator<Item = ScriptedTool>) -> Self {
        let tools: Vec<ScriptedTool> = tools.into_iter().collect();
        let logs = tools.iter().map(|tool| tool.log().clone()).collect();
        let registry = tools
            .into_iter()
            .fold(ToolRegistry::builder(), |registry, tool| {
                registry.with_tool(tool)
            })
            .build()
            .expect("it is well-formed");
        let executor = ToolExecutor::new(registry);
        Self { executor, logs }
    }

    pub(crate) fn entries(&self) -> Vec<usize> {
        self.logs.iter().map(ToolLog::entries).collect()
    }

    pub(crate) async fn execute(&self, form: Form, calls: &[(&str, &str)]) -> Ended {
        self.execute_with(form, calls, ExecuteOptions::new()).await
    }

    pub(crate) async fn execute_with(
        &self,
        form: Form,
        calls: &[(&str, &str)],
        options: ExecuteOptions,
    ) -> Ended {
        let calls = calls
            .iter()
            .map(|(id, tool)| ToolCall::new(*id, *tool, r#"{"q":1}"#));
        let message = ChatMessage::assistant_calls(calls);
        match form {
            Form::Whole => {
                let end = self
                    .executor
                    .execute(&message, options)
                    .await
                    .expect("it is well-formed");
                Ended { end, said: None }
            }
            Form::Stream => {
                read(
                    self.executor
                        .stream(&message, options)
                        .expect("it is well-formed"),
                )
                .await
            }
        }
    }

    pub(crate) async fn resume(
        &self,
        form: Form,
        paused: PausedRun,
        answers: &[ToolApprovalResponse],
    ) -> raf_core::Result<Ended> {
        let options = ExecuteOptions::new();
        Ok(match form {
            Form::Whole => {
                let end = self.executor.resume(paused, answers, options).await?;
                Ended { end, said: None }
            }
            Form::Stream => {
                let updates = self.executor.resume_stream(paused, answers, options)?;
                read(updates).await
            }
        })
    }
}

/// The end of a leg, and what a stream said before: `start 0/1`, `end 0/1`, `interrupt 0/1`.
pub(crate) struct Ended {
    pub(crate) end: Execution,
    pub(crate) said: Option<Vec<String>>,
}

impl Ended {
    /// What a stream said about a position; nothing is known of a whole one.
    pub(crate) fn said_about(&self, position: u32) -> Vec<String> {
        let said = self.said.clone().unwrap_or_default();
        let place = format!("0/{position}");
        let own = said.into_iter().filter(|word| word.ends_with(&place));
        own.collect()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        raf_testing::transcript_lines(&self.end.messages())
    }

    pub(crate) fn paused(&self, reload: bool) -> PausedRun {
        let paused = self.end.paused.clone().expect("the batch waits");
        assert_eq!(paused.pending(), self.end.pending);
        if !reload {
            return paused;
        }
        let json = serde_json::to_string(&paused).expect("it is well-formed");
        let read: PausedRun = serde_json::from_str(&json).expect("it is well-formed");
        assert_eq!(read, paused);
        read
    }
}

async fn read(mut updates: futures::stream::BoxStream<'static, ExecutionUpdate>) -> Ended {
    let mut said = Vec::new();
    while let Some(update) = updates.next().await {
        match update {
            ExecutionUpdate::Event(event) => said.extend(word(&event)),
            ExecutionUpdate::End(end) => {
                assert!(updates.next().await.is_none(), "the end is the last item");
                let said = Some(said);
                return Ended { end: *end, said };
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("the stream ended without its end");
}

fn word(event: &BatchEvent) -> Option<String> {
    Some(match event {
        BatchEvent::Started { occurrence, .. } => format!("start {occurrence}"),
        BatchEvent::Finished(finished) => format!("end {}", finished.occurrence),
        BatchEvent::Interrupted { ready, .. } => format!("interrupt {}", ready.occurrence),
        _ => return None,
    })
}

/// Id, address and information of a call that waits for data.
#[track_caller]
pub(crate) fn point(call: &PendingCall) -> (String, String, Value) {
    match &call.waits_for {
        WaitsFor::Data {
            request_id,
            address,
            information,
        } => (request_id.clone(), address.clone(), information.clone()),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn resume(id: &str, data: Value) -> ToolApprovalResponse {
    ToolApprovalResponse::resume(id, data)
}

pub(crate) fn interrupting(name: &str) -> ScriptedTool {
    let information = json!(format!("{name} asks"));
    let state = json!({"of": name});
    ScriptedTool::new(name).always(Behaviour::interrupt(information, state))
}
