//! What the endpoint writes and reads, seen by a plain socket.

use raf_core::{Error, ErrorKind, ToolChoice};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::ScriptedEndpoint;
use crate::Reply;

/// Sends a request and returns status line and body, chunks joined.
async fn post(endpoint: &ScriptedEndpoint, body: &Value) -> (String, String) {
    let address = endpoint.server().url().replace("http://", "");
    let mut stream = TcpStream::connect(address).await.unwrap();
    let body = body.to_string();
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    let body = if head.contains("chunked") {
        body.split("\r\n").skip(1).step_by(2).collect()
    } else {
        body.to_owned()
    };
    (head.to_owned(), body)
}

fn events(body: &str) -> Vec<Value> {
    body.split("\n\n")
        .filter_map(|event| event.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap_or_else(|_| data.into()))
        .collect()
}

#[tokio::test]
async fn a_streamed_reply_is_chat_completion_chunks() {
    let reply = Reply::text("Hi")
        .call_in_pieces("c1", "add", ["{\"a\"", ":1}"])
        .call("c2", "add", "{}")
        .usage(7, 3);
    let endpoint = ScriptedEndpoint::chat_completions([reply]);
    let request = json!({
        "model": "m", "stream": true, "stream_options": {"include_usage": true},
        "messages": [{"role": "user", "content": "x"}],
    });
    let (head, body) = post(&endpoint, &request).await;
    assert!(head.contains("text/event-stream"));
    let events = events(&body);
    let deltas: Vec<&Value> = events
        .iter()
        .filter_map(|event| event.pointer("/choices/0/delta"))
        .collect();
    assert_eq!(deltas[0], &json!({"role": "assistant", "content": ""}));
    assert_eq!(deltas[1], &json!({"content": "Hi"}));
    assert_eq!(deltas[2]["tool_calls"][0]["id"], "c1");
    assert_eq!(deltas[4]["tool_calls"][0]["function"]["arguments"], ":1}");
    assert_eq!(deltas[5]["tool_calls"][0]["index"], 1);
    assert_eq!(
        events[events.len() - 3]["choices"][0]["finish_reason"],
        "tool_calls"
    );
    assert_eq!(events[events.len() - 2]["usage"]["total_tokens"], 10);
    assert_eq!(events[events.len() - 1], "[DONE]");
    assert_eq!(events[0]["model"], "m");
    endpoint.assert_done();
}

#[tokio::test]
async fn a_whole_reply_is_one_object() {
    let reply = Reply::text("Hi")
        .reasoning("hm")
        .call("c1", "add", "{}")
        .usage(7, 3);
    let endpoint = ScriptedEndpoint::chat_completions([reply]);
    let request = json!({"messages": [{"role": "user", "content": "x"}]});
    let (_, body) = post(&endpoint, &request).await;
    let body: Value = serde_json::from_str(&body).unwrap();
    let message = &body["choices"][0]["message"];
    assert_eq!(message["content"], "Hi");
    assert_eq!(message["reasoning_content"], "hm");
    assert_eq!(message["tool_calls"][0]["function"]["name"], "add");
    assert_eq!(body["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(body["usage"]["prompt_tokens"], 7);
}

#[tokio::test]
async fn requests_are_read_back() {
    let endpoint = ScriptedEndpoint::chat_completions([Reply::text("ok")]);
    let request = json!({
        "model": "m", "temperature": 0.5, "tool_choice": {"type": "function", "function": {"name": "t"}},
        "tools": [{"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}}],
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": [{"type": "text", "text": "go"}]},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "t", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "done"},
        ],
        "service_tier": "flex",
    });
    post(&endpoint, &request).await;
    let seen = endpoint.requests().remove(0);
    assert_eq!(
        seen.lines(),
        ["S:be brief", "U:go", "A:[c1]", "R(c1, ok: 'done')"]
    );
    assert_eq!(seen.tool_names(), ["t"]);
    assert_eq!(
        seen.options.tool_choice,
        Some(ToolChoice::Named("t".to_owned()))
    );
    assert_eq!(seen.options.extra_body["service_tier"], "flex");
}

#[tokio::test]
async fn errors_are_statuses_and_a_missing_reply_is_a_violation() {
    let refused = Error::new(ErrorKind::RateLimit, "slow down")
        .with_retry_after(Some(std::time::Duration::from_secs(7)));
    let endpoint = ScriptedEndpoint::chat_completions([Reply::error_at_start(refused)]);
    let request = json!({"messages": []});
    let (head, body) = post(&endpoint, &request).await;
    assert!(
        head.starts_with("HTTP/1.1 429") && head.contains("retry-after: 7"),
        "{head}"
    );
    assert!(body.contains("rate_limit_exceeded"));
    let (head, _) = post(&endpoint, &request).await;
    assert!(head.starts_with("HTTP/1.1 500"));
    assert_eq!(endpoint.violations().len(), 1);
}

#[tokio::test]
async fn a_cut_stream_has_no_end_and_an_error_stands_in_the_stream() {
    let failing = Reply::text("a").error(Error::new(ErrorKind::Server, "down"));
    let endpoint = ScriptedEndpoint::chat_completions([Reply::text("a").cut(), failing]);
    let request = json!({"stream": true, "messages": []});
    let (_, body) = post(&endpoint, &request).await;
    assert_eq!(events(&body).len(), 2);
    let (_, body) = post(&endpoint, &request).await;
    assert_eq!(events(&body)[2]["error"]["message"], "down");
}

#[tokio::test]
async fn pieces_do_not_change_the_bytes() {
    let request = json!({"stream": true, "messages": []});
    let script = || [Reply::text("green").call("c1", "t", "{}")];
    let whole = post(&ScriptedEndpoint::chat_completions(script()), &request).await;
    let pieces = ScriptedEndpoint::chat_completions_in_pieces(script(), 1);
    assert_eq!(post(&pieces, &request).await.1, whole.1);
}
