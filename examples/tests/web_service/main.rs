//! The web service as its users have it: servers that are killed, a person in another process, a browser that
//! connects again. On SQLite, and on the PostgreSQL server that `RAF_POSTGRES_URL` names.

#[path = "../../web_service/http.rs"]
mod http;
mod stage;

use std::collections::BTreeSet;
use std::future::Future;
use std::process::ExitCode;

use hyper::{Method, StatusCode};
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::{Value, json};

use crate::stage::{Stage, Watcher};

#[expect(clippy::print_stdout, reason = "what is skipped is said")]
fn main() -> ExitCode {
    let url = std::env::var("RAF_POSTGRES_URL").ok();
    if url.is_none() {
        println!("the web service on PostgreSQL is skipped: RAF_POSTGRES_URL names no server");
    }
    let mut trials = vec![Trial::test("it_plays_by_itself_and_ends", || {
        it_plays_by_itself_and_ends();
        Ok(())
    })];
    for backend in ["sqlite", "postgres"] {
        let of_server = backend == "postgres";
        let skipped = of_server && url.is_none();
        let url = url.clone().filter(|_| of_server);
        let mut trial = |name: &str, body: fn(Option<String>) -> Result<(), Failed>| {
            let url = url.clone();
            let trial = Trial::test(format!("{name}_on_{backend}"), move || body(url));
            trials.push(trial.with_ignored_flag(skipped));
        };
        trial("killed_servers_lose_nothing_and_pay_once", |url| {
            play(killed_servers_lose_nothing_and_pay_once(url))
        });
        trial("answers_over_http_are_taken_once", |url| {
            play(answers_over_http_are_taken_once(url))
        });
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn play(test: impl Future<Output = ()>) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(test);
    Ok(())
}

fn it_plays_by_itself_and_ends() {
    let output = Stage::command_of_example().output().expect("it can be run");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(text.matches("[server] killed").count(), 3, "{text}");
    for words in [
        "No server lives.",
        "wants to run: pay {\"cents\":95000,\"to\":\"landlord\"}",
        "The answer: The bank says: 95000 cents went to landlord.",
        "Payments at the bank: 1\n",
    ] {
        assert!(text.contains(words), "'{words}' is not in {text}");
    }
}

async fn killed_servers_lose_nothing_and_pay_once(url: Option<String>) {
    let stage = Stage::new(url);
    let server = stage.server();
    let new = json!({"message": "Pay the rent.", "session": "ada"});
    let (status, begun) = server.ask(Method::POST, "/runs", &new).await;
    assert_eq!(status, StatusCode::CREATED, "{begun}");
    let run = begun["run_id"].as_str().expect("an id").to_owned();
    let mut watcher = Watcher::of(&run);

    // In the middle of the first reply: nothing but the question is there.
    watcher.until(&server, |name, _| name == "message").await;
    server.kill();

    // In the middle of the second one: a result is there.
    let server = stage.server();
    watcher
        .until(&server, |name, data| {
            name == "message" && data["role"] == "tool"
        })
        .await;
    server.kill();

    // While it waits.
    let server = stage.server();
    let approval = watcher.until(&server, |name, _| name == "approval").await;
    server.kill();

    // Another process sees what is asked, and nothing is paid for looking.
    let listed = stage.inbox(&["list"]);
    let id = approval["request_id"].as_str().expect("an id");
    for words in [
        id,
        r#"pay {"cents":95000,"to":"landlord"}"#,
        "session ada",
        " GMT",
    ] {
        assert!(listed.contains(words), "'{words}' is not in {listed}");
    }
    assert_eq!(stage.payments(), Vec::<String>::new());
    assert!(stage.inbox(&["approve", id]).contains("is kept"));
    let again = stage.inbox(&["deny", id, "too late"]);
    assert!(again.contains("already_settled"), "{again}");

    let server = stage.server();
    let end = watcher.until(&server, |name, _| name == "end").await;
    let answer = "The bank says: 95000 cents went to landlord.";
    assert_eq!(end["answer"], answer);
    assert_eq!(stage.payments().len(), 1, "{:?}", stage.payments());

    // Every message came once, over all connections, and the store has the same ones.
    let (_, view) = server
        .ask(Method::GET, &format!("/runs/{run}"), &Value::Null)
        .await;
    assert_eq!(view["state"], "ended");
    assert_eq!(view["messages"], json!(watcher.messages));
    let roles = roles_of_what_was_done(&watcher.messages);
    let whole = [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ];
    assert_eq!(roles, whole);
    server.kill();
    stage.clean().await;
}

/// Who speaks. A server that is killed between the session's write of a reply and the journal's leaves calls
/// that are settled as not started, and the model is asked again: neither is part of what was done.
fn roles_of_what_was_done(messages: &[Value]) -> Vec<&str> {
    let not_started = json!({"status": "cancelled", "started": false});
    let mut roles = Vec::new();
    for message in messages {
        if message["content"][0]["outcome"] == not_started {
            roles.pop();
        } else {
            roles.extend(message["role"].as_str());
        }
    }
    roles
}

async fn answers_over_http_are_taken_once(url: Option<String>) {
    let stage = Stage::new(url);
    let server = stage.server();
    let new = json!({"message": "Pay the rent."});
    let (_, begun) = server.ask(Method::POST, "/runs", &new).await;
    let run = begun["run_id"].as_str().expect("an id").to_owned();
    let mut watcher = Watcher::of(&run);
    watcher.until(&server, |name, _| name == "approval").await;
    let (_, waiting) = server.ask(Method::GET, "/approvals", &Value::Null).await;
    let waiting = waiting.as_array().expect("a list");
    assert_eq!(waiting.len(), 1);
    assert_eq!(waiting[0]["run_id"], run.as_str());
    assert_eq!(waiting[0]["tool"], "pay");
    assert_eq!(waiting[0]["session_id"], begun["session_id"]);
    assert!(waiting[0]["answer_until_ms"].is_u64(), "{waiting:?}");
    let path = format!(
        "/approvals/{}",
        waiting[0]["request_id"].as_str().expect("an id")
    );

    let deny = json!({"decision": "deny", "reason": "too dear"});
    let (status, _) = server.ask(Method::POST, &path, &deny).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let approve = json!({"decision": "approve"});
    let (status, told) = server.ask(Method::POST, &path, &approve).await;
    assert_eq!(status, StatusCode::CONFLICT, "{told}");
    assert_eq!(told["error"], "already_settled");
    let (status, _) = server.ask(Method::POST, "/approvals/none", &approve).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, _) = server.ask(Method::GET, "/runs/none", &Value::Null).await;
    assert_eq!(status, StatusCode::NOT_FOUND);

    let end = watcher.until(&server, |name, _| name == "end").await;
    let answer = end["answer"].as_str().expect("an answer");
    assert!(answer.contains("too dear"), "{answer}");
    assert_eq!(stage.payments(), Vec::<String>::new());

    // The conversation goes on in its session, with a run of its own.
    let next = json!({"message": "And now?", "session": begun["session_id"]});
    let (status, second) = server.ask(Method::POST, "/runs", &next).await;
    assert_eq!(status, StatusCode::CREATED, "{second}");
    let runs = [&begun, &second].map(|begun| begun["run_id"].as_str().expect("an id"));
    assert_eq!(BTreeSet::from(runs).len(), 2);
    server.kill();
    stage.clean().await;
}
