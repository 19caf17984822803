//! One case against a client: served on loopback, or its rules against what the client would send.

use std::sync::Arc;
use std::time::Duration;

use raf_core::{ChatClientRunOptions, ChatMessage, IChatClient};
use serde_json::Value;

use super::case::WireCase;
use super::checks::{OwnChecks, holds};
use super::outcome::{Outcome, gather};
use super::serve::{WireReply, serve};

/// Serves a reply, asks for it, and gathers what comes. The client is made of the base URL, which ends
/// in `/v1`.
///
/// # Panics
/// The client refuses the request, hangs, or breaks the order of updates.
pub fn replay(
    reply: WireReply,
    messages: &[ChatMessage],
    options: ChatClientRunOptions,
    client: impl FnOnce(&str) -> Arc<dyn IChatClient>,
) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be made");
    runtime.block_on(async {
        let (url, serving) = serve(reply).await;
        let client = client(&url);
        let asking = async {
            let updates = client.run(messages, options).await;
            gather(updates.expect("a request that is right")).await
        };
        tokio::select! {
            outcome = tokio::time::timeout(Duration::from_mins(4), asking) => {
                outcome.expect("the client hangs")
            }
            () = serving => unreachable!("the server serves for ever"),
        }
    })
}

/// Evaluates the rules of a request case: they must hold for the client's body and for the one that
/// works, and not for the one that is refused.
///
/// # Errors
/// The rule that does not.
pub fn check_rules(case: &WireCase, body: &Value, own: OwnChecks) -> Result<(), String> {
    let checks = || {
        let checks = case.expected()["wire_checks"].as_array();
        checks.into_iter().flatten()
    };
    if let Some(check) = checks().find(|check| !holds(check, body, own)) {
        return Err(format!("{check} does not hold for {body}"));
    }
    let all = |body: &Value| checks().all(|check| holds(check, body, own));
    let input = &case.json["input"];
    if !all(&input["must_send"]) {
        return Err("the rules do not hold for must_send".to_owned());
    }
    let rejected = &input["rejected_wire"];
    if rejected.get("raw").is_none() && all(rejected) {
        return Err("the rules hold for rejected_wire".to_owned());
    }
    Ok(())
}
