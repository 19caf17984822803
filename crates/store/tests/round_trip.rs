//! What is kept comes back as it was: every integer exactly, every number as the core has it, every text to the
//! letter, and so the order of members in the arguments that a model wrote. For any values, in both stores.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use raf_core::{
    CallRecord, CallStatus, ChatMessage, IRunStore, ISessionStore, JournalEntry, JournalKey,
    JournalKind, RunClaim, RunId, RunRecord, SessionChange, ToolCall, ToolResult, WriteOutcome,
};
use raf_store::{PostgresOptions, PostgresStore, SqliteOptions, SqliteStore, Synchronous};
use serde_json::{Map, Value};
use tokio_postgres::NoTls;

#[expect(clippy::print_stdout, reason = "what is skipped is said")]
fn main() -> ExitCode {
    let url = std::env::var("RAF_POSTGRES_URL").ok();
    if url.is_none() {
        println!("round trips through PostgreSQL are skipped: RAF_POSTGRES_URL names no server");
    }
    let skipped = url.is_none();
    let trials = vec![
        Trial::test("what_is_kept_comes_back_from_sqlite", || {
            of_sqlite();
            Ok(())
        }),
        Trial::test("what_is_kept_comes_back_from_postgres", || {
            let url = url.ok_or("no server")?;
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()?;
            runtime.block_on(of_postgres(url));
            Ok(())
        })
        .with_ignored_flag(skipped),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn of_sqlite() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = SqliteOptions::new().with_synchronous(Synchronous::Normal);
    let store = SqliteStore::open_with(folder.path().join("raf.db"), options);
    for_any_values(&store.expect("a store"));
}

async fn of_postgres(url: String) {
    let schema = format!("raf_round_{}", RunId::random());
    let options = PostgresOptions::new().with_schema(&schema);
    let store = PostgresStore::open_with(&url, options).await;
    for_any_values(&store.expect("the server"));
    let connected = tokio_postgres::connect(&url, NoTls).await;
    let (client, connection) = connected.expect("the server");
    let sql = format!("DROP SCHEMA {schema} CASCADE");
    tokio::select! {
        dropped = client.batch_execute(&sql) => dropped.expect("it is gone"),
        _ = connection => panic!("the connection has ended"),
    }
}

fn for_any_values(store: &(impl IRunStore + ISessionStore)) {
    let values = (any_json(), any_arguments(), any_text());
    let mut runner = TestRunner::new(Config {
        cases: 128,
        failure_persistence: None,
        ..Config::default()
    });
    let tested = runner.run(&values, |(value, arguments, text)| {
        futures::executor::block_on(through(store, &value, &arguments, &text));
        Ok(())
    });
    if let Err(fault) = tested {
        panic!("{fault}");
    }
}

/// Numbers as the core has them: integers of 64 bits, signed and unsigned, and doubles.
fn any_number() -> impl Strategy<Value = Value> {
    let beyond_a_double = (1_u64 << 53) + 1;
    prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter_map("JSON has no other", |double| {
            double.is_finite().then(|| Value::from(double))
        }),
        prop::sample::select(vec![
            Value::from(u64::MAX),
            Value::from(i64::MIN),
            Value::from(beyond_a_double),
            Value::from(-9_007_199_254_740_993_i64),
            Value::from(0.1),
            Value::from(-0.0),
            Value::from(f64::MIN_POSITIVE),
            Value::from(f64::MAX),
            Value::from(1e2),
        ]),
    ]
}

/// Any characters, those that databases and JSON treat as their own among them.
fn any_text() -> impl Strategy<Value = String> {
    let letters = prop_oneof![
        8 => any::<char>(),
        1 => prop::sample::select(vec!['\0', '"', '\\', '\u{7f}', '\u{2028}', '\u{10ffff}', '\'']),
    ];
    prop::collection::vec(letters, 0..20).prop_map(String::from_iter)
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any_number(),
        any_text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((any_text(), inner), 0..5)
                .prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
}

/// Arguments as a model may write them: members in any order, twice even, decimals of any length.
fn any_arguments() -> impl Strategy<Value = String> {
    let decimal = "-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?";
    let member = ("[a-z]{1,3}", decimal);
    prop::collection::vec(member, 0..8).prop_map(|members| {
        let members = members
            .iter()
            .map(|(name, value)| format!("\"{name}\" : {value}"));
        format!("{{ {} }}", members.collect::<Vec<_>>().join(",\n"))
    })
}

async fn through(
    store: &(impl IRunStore + ISessionStore),
    value: &Value,
    arguments: &str,
    text: &str,
) {
    let call = ToolCall::new("c1", "f", arguments);
    let mut record = RunRecord::new(RunId::random());
    record.counters = value.clone();
    record.unknown.insert("later".to_owned(), value.clone());
    let called = CallRecord::new(0, call.clone(), value.clone(), CallStatus::Started);
    record.calls.push(called);
    let mut entry = JournalEntry::new(0, "step", JournalKind::Step, value.clone());
    entry.unknown.insert("later".to_owned(), value.clone());
    let key = JournalKey::root(record.run_id.clone());
    let claim = RunClaim::new();
    let entries = std::slice::from_ref(&entry);
    let written = store.append(&key, &claim, 0, entries, Some(&record)).await;
    assert_eq!(written.expect("a write"), WriteOutcome::Written(1));
    record.revision = 1;
    let kept = IRunStore::load(store, &record.run_id).await;
    assert_eq!(kept.expect("a read"), Some(record));
    let journal = store.journal(&key, 0).await.expect("a read");
    assert_eq!(journal, entries);

    let messages = [
        ChatMessage::user(text),
        ChatMessage::assistant_calls([call]),
        ChatMessage::tool(ToolResult::ok("c1", text)),
    ];
    let session = key.root.as_str();
    let change = SessionChange::messages(messages.clone());
    let written = store.write(session, 0, change).await.expect("a write");
    assert_eq!(written, WriteOutcome::Written(1));
    let kept = ISessionStore::load(store, session).await.expect("a read");
    let kept = kept.expect("the session").messages;
    assert_eq!(kept, messages);
    // To the letter.
    let calls: Vec<&str> = kept[1].tool_calls().map(ToolCall::arguments).collect();
    assert_eq!(calls, [arguments]);
}
