//! The headers of a request: what is really sent, against what a case says of them.

use raf_anthropic::{AnthropicChatClient, AnthropicOptions};
use raf_core::{ChatClientRunOptions, ChatMessage, IChatClient, collect};
use raf_testing::wire::{WireCase, list};
use raf_testing::{HttpResponse, HttpServer};
use serde_json::{Value, json};

use crate::transcript::MODEL;

/// Sends a request with these options, and evaluates the rules of its headers.
pub(crate) fn check(case: &WireCase, options: &AnthropicOptions) -> Result<(), String> {
    if list(&case.expected()["header_checks"]).is_empty() {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let sent = runtime.block_on(async {
        let message = json!({"type": "message", "content": "ok", "stop_reason": "end_turn"});
        let server = HttpServer::start([HttpResponse::json(200, &message)]);
        let options = options
            .clone()
            .with_base_url(server.url())
            .with_model(MODEL);
        let client = AnthropicChatClient::new(options).expect("options that work");
        let asked = [ChatMessage::user("Hi")];
        let updates = client.run(&asked, ChatClientRunOptions::new()).await;
        let updates = updates.expect("a request that is right");
        collect(updates).await.expect("a reply that is right");
        server.requests().remove(0).headers
    });
    match broken(case, &sent) {
        Some(check) => Err(format!("{check} does not hold for {sent:?}")),
        None => Ok(()),
    }
}

/// Whether the rules hold for the headers that a case gives itself.
pub(crate) fn hold(case: &WireCase, member: &str) -> bool {
    let headers = case.json["input"][member].as_object();
    let headers: Vec<(String, String)> = headers
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.clone(), value.as_str().unwrap_or("").to_owned()))
        .collect();
    broken(case, &headers).is_none()
}

fn broken<'a>(case: &'a WireCase, headers: &[(String, String)]) -> Option<&'a Value> {
    let checks = list(&case.expected()["header_checks"]);
    checks.iter().find(|check| !holds(check, headers))
}

fn holds(check: &Value, headers: &[(String, String)]) -> bool {
    let name = check["name"].as_str().unwrap_or("");
    let mut found = headers
        .iter()
        .filter(|(of, _)| of.eq_ignore_ascii_case(name));
    let found = found.next().map(|(_, value)| value.as_str());
    let wanted = check["value"].as_str().unwrap_or("");
    match check["op"].as_str().unwrap_or("") {
        "absent" => found.is_none(),
        "present" => found.is_some_and(|value| !value.is_empty()),
        "equals" => found == Some(wanted),
        "not_mentions" => found.is_none_or(|value| !value.contains(wanted)),
        "matches" => found.is_some_and(|value| {
            let check = json!({"path": "value", "op": "matches", "value": wanted});
            raf_testing::wire::holds(&check, &json!({"value": value}), |_, _| None)
        }),
        other => panic!("the runner does not know the check '{other}' of headers"),
    }
}
