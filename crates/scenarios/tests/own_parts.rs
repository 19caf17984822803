//! Files that are played against the caller's own parts, and the words that no case needs.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use raf_core::{ChatClientRunOptions, ChatMessage, IChatClient, Result, UpdateStream};
use raf_framework::FunctionInvokingChatClient;
use raf_scenarios::{Runner, Scenario};
use raf_testing::{EchoTool, Reply, ScriptedChatClient};

fn only(text: &str) -> Scenario {
    let mut cases = Scenario::parse("own.yaml", text).expect("it is a scenario");
    cases.remove(0)
}

#[test]
fn every_word_of_the_vocabulary_does_what_it_says() {
    let text = include_str!("files/vocabulary.yaml");
    let cases = Scenario::parse("vocabulary.yaml", text).expect("it is a scenario");
    assert_eq!(cases.len(), 6);
    for case in cases {
        Runner::new().play(&case).assert_passed();
    }
}

const GIVEN: &str = "id: own\ntitle: own\ntools: {echo: {given: true}}\nscript:\n- user: go\n\
    - model: {calls: [[c1, echo, '{\"text\":\"x\"}']]}\n- model: {text: done}\n\
    expect: {exec: {echo: 1}, stop: [completed]}\n";

#[test]
fn a_tool_of_the_callers_own_is_counted_and_one_that_is_not_given_is_missed() {
    let case = only(GIVEN);
    let runner = Runner::new().with_tool(EchoTool::new());
    runner.play(&case).assert_passed();
    let report = Runner::new().play(&case);
    assert!(!report.passed());
    assert!(
        report.to_string().contains("give it to the runner"),
        "{report}"
    );
}

#[test]
fn a_model_of_the_callers_own_is_judged_by_the_same_file() {
    let text = "id: own\ntitle: own\ntools: {f: {does: {returns: r}}}\nscript:\n- user: go\n\
        expect: {exec: {f: 1}, stop: [completed], conversation: ['U:go', 'A:[*]', 'R(*, ok)', 'A:*done*']}\n";
    let case = only(text);
    let obedient = || {
        ScriptedChatClient::new([
            Reply::calls([("any", "f", "{}")]),
            Reply::text("It is done."),
        ])
    };
    let report = Runner::new().with_model(obedient).play(&case);
    report.assert_passed();
    let lazy = || ScriptedChatClient::new([Reply::text("It is done.")]);
    let report = Runner::new().with_model(lazy).play(&case);
    assert!(!report.passed());
    assert!(
        report
            .to_string()
            .contains("'f' was entered 0 times, expected 1"),
        "{report}"
    );
}

#[test]
fn a_stack_that_hides_the_loop_differs() {
    let case = only(GIVEN);
    let runner = Runner::new()
        .with_tool(EchoTool::new())
        .with_stack(|parts| parts.model);
    assert!(!runner.play(&case).passed());
}

/// Notes with how many messages and answers a loop is asked.
#[derive(Debug)]
struct Noting {
    inner: FunctionInvokingChatClient,
    asked: Arc<Mutex<Vec<(usize, usize)>>>,
}

#[async_trait]
impl IChatClient for Noting {
    async fn run(
        &self,
        messages: &[ChatMessage],
        options: ChatClientRunOptions,
    ) -> Result<UpdateStream> {
        let answers = options.tool_approval_responses.len();
        self.asked
            .lock()
            .expect("nobody panicked")
            .push((messages.len(), answers));
        self.inner.run(messages, options).await
    }
}

#[test]
fn a_killed_process_goes_on_by_the_store_alone() {
    let case = only(
        "id: own\ntitle: own\ntools: {f: {gate: always, does: {returns: r}}}\nscript:\n- user: go\n\
         - model: {calls: [[c1, f, '{}']]}\n- decide: {c1: approve}\n- model: {text: done}\n\
         expect: {exec: {f: 1}, stop: [paused, completed], \
         conversation: ['U:go', 'A:[c1]', \"R(c1, ok 'r')\", 'A:done']}\n",
    );
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&asked);
    let runner = Runner::new().with_http(false).with_stack(move |parts| {
        let inner =
            FunctionInvokingChatClient::with_options(parts.model, parts.tools, parts.options);
        let asked = Arc::clone(&noted);
        Noting { inner, asked }
    });
    runner.play(&case).assert_passed();
    let asked = asked.lock().unwrap();
    // Streamed and whole, killed and reopened from SQLite: no message, and the answer is in the store.
    let alone = asked.iter().filter(|asked| **asked == (0, 0)).count();
    assert_eq!(alone, 2, "{asked:?}");
    let with_the_caller = asked.iter().filter(|asked| **asked == (2, 1)).count();
    assert_eq!(with_the_caller, 12, "{asked:?}");
}
