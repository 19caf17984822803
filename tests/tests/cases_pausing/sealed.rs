//! C07 for a stateless server: the paused run travels through the client under a seal.

use raf_core::{ChatClientRunOptions, ErrorKind, PausedRun, ToolApprovalResponse};
use raf_framework::{SealedPausedRun, SealingKey, SealingKeys};
use raf_testing::{Reply, ScriptedTool};
use raf_tests::Form;
use raf_tests::pausing::{PausingCase, Reload};
use serde_json::json;

use crate::support::{assert_completed, assert_paused, assert_refused};

fn keys() -> SealingKeys {
    SealingKeys::new(SealingKey::new("now", [7; 32]).expect("a key"))
}

/// What the server takes from a client: a run whose seal it can open.
fn taken(text: &str) -> raf_core::Result<PausedRun> {
    let sealed: SealedPausedRun = text.parse()?;
    Ok(keys().for_audience("user-1").open(&sealed)?)
}

#[tokio::test(start_paused = true)]
async fn c07_a_stateless_server_takes_only_what_it_sealed() {
    for form in [Form::Stream, Form::Fold] {
        let mut case = PausingCase::new(form, Reload::NewProcess);
        let transfer = case.tool(ScriptedTool::returning("transfer", "ok").gated());
        case.replies([
            Reply::calls([("c1", "transfer", r#"{"to":"landlord","amount":5}"#)]),
            Reply::text("paid"),
        ]);
        assert_paused(&case.say("pay the rent").await, &["c1 approval"]);
        let paused = case.paused_run().clone().unwrap();
        let text = keys().for_audience("user-1").seal(&paused).to_string();

        // What the client changed, made itself, or has from somebody else is not opened.
        let mut forged = serde_json::to_value(&paused).unwrap();
        forged["calls"][0]["arguments"]["amount"] = json!(999);
        let forged: PausedRun = serde_json::from_value(forged).unwrap();
        let other_key = SealingKeys::new(SealingKey::new("now", [8; 32]).unwrap());
        let other_user = keys().for_audience("user-2").seal(&paused).to_string();
        let mut changed = text.clone().into_bytes();
        let middle = changed.len() / 2;
        changed[middle] = if changed[middle] == b'A' { b'B' } else { b'A' };
        for wrong in [
            serde_json::to_string(&forged).unwrap(),
            other_key.for_audience("user-1").seal(&forged).to_string(),
            other_user,
            String::from_utf8(changed).unwrap(),
            format!("{text}A"),
            String::new(),
        ] {
            let error = taken(&wrong).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ApprovalRefused, "{error}");
        }
        assert_eq!(transfer.entries(), 0);

        // Under the seal the same holds as with a store: what runs is what was recorded.
        *case.paused_run() = Some(taken(&text).unwrap());
        let id = case.id("c1");
        let wrong = ToolApprovalResponse::approve(&id)
            .with_arguments(json!({"to": "landlord", "amount": 999}));
        let leg = case.answer([wrong]).await;
        assert_refused(&leg, "args_mismatch", &["c1 approval"]);
        let yes = [ToolApprovalResponse::approve(&id)];
        let options = ChatClientRunOptions::new().with_tool_approval_responses(yes);
        assert_completed(&case.go_on(options).await);
        assert_eq!(transfer.entries(), 1);
        assert_eq!(transfer.calls()[0].arguments["amount"], 5);
        case.finish();
    }
}
