//! The programs on agents as CI runs them: without a key and without a terminal.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// What an example says to these lines; `cargo test` has built it beside these tests.
fn said(name: &str, lines: &str) -> String {
    let tests = std::env::current_exe().expect("a test knows where it is");
    let built = tests.parent().and_then(Path::parent);
    let example = built
        .expect("it is in deps")
        .join("examples")
        .join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(
        example.is_file(),
        "the examples are not built: run `cargo test -p raf-examples`, without `--test`"
    );
    let mut command = Command::new(example);
    for name in ["OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"] {
        command.env_remove(name);
    }
    let mut program = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it can be run");
    let mut input = program.stdin.take().expect("it is piped");
    input.write_all(lines.as_bytes()).expect("it reads");
    drop(input);
    let output = program.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("it writes text")
}

/// The words stand in the text, in this order.
#[track_caller]
fn in_order(text: &str, words: &[&str]) {
    let mut rest = text;
    for words in words {
        let Some((_, behind)) = rest.split_once(words) else {
            panic!("'{words}' is not where it should be in {text}");
        };
        rest = behind;
    }
}

#[test]
fn chat_plays_a_conversation_of_its_own_where_there_is_none() {
    let talk = [
        "+ list_notes",
        "? delete_note",
        "+ delete_note: deleted",
        "Only the bread is left.",
    ];
    in_order(&said("chat", ""), &talk);
}

#[test]
fn chat_takes_its_lines_from_standard_input_and_a_no_runs_nothing() {
    let text = said("chat", "hello\ndelete it\nn\n");
    in_order(
        &text,
        &[
            "> hello",
            "> delete it",
            "[y]es or [n]o: n",
            "+ delete_note",
        ],
    );
    assert!(!text.contains("delete_note: deleted"), "{text}");
}

#[test]
fn specialists_are_both_asked_and_counted() {
    let text = said("specialists", "");
    in_order(
        &text,
        &["meteorologist looks: Bern", "It will be sunny: take a walk"],
    );
    in_order(
        &text,
        &[
            "guide: The rose garden",
            "5 model requests, 3 of them by the specialists.",
        ],
    );
}

#[test]
fn user_profile_brings_what_is_true_when_a_run_begins() {
    let words = [
        "Hello, Ada.",
        "auf Deutsch",
        "Du heißt Ada.",
        "told of 3 turns",
    ];
    in_order(&said("user_profile", ""), &words);
}
