//! The command: what it prints, with what it exits, and that a wrong expectation of each kind is
//! noticed.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const RIGHT: &str = include_str!("files/right.yaml");
const NESTED: &str = include_str!("files/nested.yaml");

fn run(arguments: &[&str]) -> Output {
    let command = Command::new(env!("CARGO_BIN_EXE_raf-scenarios"))
        .args(arguments)
        .output();
    command.expect("the command runs")
}

fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    format!("{text}{}", String::from_utf8_lossy(&output.stderr))
}

/// A file of this text in a folder of the test's own.
fn file(folder: &str, name: &str, text: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let path = folder.join(name);
    std::fs::write(&path, text).expect("a file can be written");
    path
}

fn play(path: &Path) -> (Option<i32>, String) {
    let output = run(&[
        "--no-http",
        "--no-stores",
        path.to_str().expect("the path is text"),
    ]);
    (output.status.code(), said(&output))
}

#[test]
fn what_is_right_exits_with_zero() {
    let path = file("right", "right.yaml", RIGHT);
    let (code, said) = play(&path);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.starts_with("ok     right ("), "{said}");
    assert!(said.ends_with("1 cases of 1 files, 0 failed\n"), "{said}");
}

/// What stands in the right file, and what is planted in its place.
const PLANTED: &[(&str, &str)] = &[
    // Of a leg.
    ("    stop: paused\n", "    stop: completed\n"),
    ("pending: [c2 approval]", "pending: [c2 data]"),
    ("pending: [c2 approval]", "pending: []"),
    ("    requests: 1\n", "    requests: 2\n"),
    ("entered: [c1]", "entered: [c1, c2]"),
    ("\"R(c1, ok 'found x')\"]", "\"R(c1, ok 'found y')\"]"),
    ("    text: Looking.", "    text: Look."),
    (
        "tool_start c1 < tool_end c1 ok",
        "tool_end c1 ok < tool_start c1",
    ),
    ("approval_requested c2 == 1", "approval_requested c2 == 2"),
    ("no tool_start c2", "no tool_start c1"),
    ("{outcome: ok, text", "{outcome: denied, text"),
    ("text: found x", "text: found y"),
    ("contains: [found]", "contains: [lost]"),
    ("lacks: [lost]", "lacks: [found]"),
    ("bytes_at_most: 7", "bytes_at_most: 6"),
    ("parts: [text 'found x']", "parts: [text 'found']"),
    ("call_arguments: {c2: \"{}\"}", "call_arguments: {c2: \"\"}"),
    ("    usage: [10, 2]\n", "    usage: [10, 3]\n"),
    ("run_usage: [10, 2]", "run_usage: [11, 2]"),
    ("    counters: {own: 5}", "    counters: {own: 6}"),
    ("rounds: [[10, 2]]", "rounds: [[10, 2], [0, 0]]"),
    ("abandoned: []", "abandoned: [c1]"),
    ("incomplete: false", "incomplete: true"),
    ("refused: []", "refused: [c2 stale]"),
    ("parts: [[text, call, call]]", "parts: [[text, call]]"),
    ("unknown_request, refused", "stale, refused"),
    (
        "refused: [nobody unknown_request]",
        "refused: [nobody stale]",
    ),
    (
        "- expect: {stop: error approval_refused unknown_request, refused: [nobody unknown_request]}\n",
        "",
    ),
    ("ran_with: {to: you}", "ran_with: {to: me}"),
    (
        "c2: {ran_with: {to: you}}",
        "c2: {names_correlation_id: true}",
    ),
    ("unlike: [c2]", "unlike: [c3]"),
    ("started: true", "started: false"),
    (
        "information: {c5: \"which?\"}",
        "information: {c5: \"who?\"}",
    ),
    ("/0/0/asking", "/0/1/asking"),
    // Of the whole case.
    ("    search: 1\n", "    search: 2\n"),
    ("send: {count: 1", "send: {count: 0"),
    ("calls: [c2]", "calls: [c1]"),
    ("arguments: [{to: you}]", "arguments: [{}]"),
    ("at_once: 1", "at_once: 2"),
    ("completed: 1", "completed: 0"),
    ("rounds: [1]", "rounds: [2]"),
    ("attempts: [1]", "attempts: [2]"),
    ("at_most: 1}", "at_most: 0}"),
    ("  requests: 5\n", "  requests: 4\n"),
    ("tool_choice: auto", "tool_choice: none"),
    (
        "tools: [search, send, slow, asking, other]",
        "tools: [search]",
    ),
    ("messages: [\"U:go\"]", "messages: [\"U:stop\"]"),
    (", max_output_tokens: 100}", ", max_output_tokens: 99}"),
    ("same_as_request: 2", "same_as_request: 1"),
    ("message_ids: [m1]", "message_ids: [m2]"),
    (
        "begins_with_request: 1, same_as_request: 2",
        "begins_with_request: 3",
    ),
    ("trace_counts: {A>: 5}", "trace_counts: {A>: 4}"),
    ("\"R(c3, failed)\"]", "\"R(c3, ok)\"]"),
    ("    3: [\"...\"", "    5: [\"...\""),
    (
        "tool_end c1 ok < approval_refused",
        "tool_end c3 error < approval_refused",
    ),
    ("run_end == 5", "run_end == 6"),
    ("completed, cancelled, paused]", "completed, cancelled]"),
    (
        "completed, cancelled, paused]",
        "cancelled, completed, paused]",
    ),
    ("  usage: [61, 10]", "  usage: [60, 10]"),
    ("  - A:Done.\n", "  - A:Undone.\n"),
    ("counters: {searches: 1}", "counters: {searches: 0}"),
    ("trace: [A>, <A,", "trace: [<A, A>,"),
    ("text: a secret", "text: found x"),
    ("logged: nowhere", "logged: a secret"),
    ("event: attempt_reset", "event: run_end stop"),
    ("line: U:nothing", "line: U:go"),
    ("entered: c9", "entered: c2"),
    (
        "entered_with: [send, {}]",
        "entered_with: [send, {to: you}]",
    ),
    ("more_requests_than: 5", "more_requests_than: 4"),
    // Of what happens.
    (
        "- model: {text: Done., usage: [30, 4]}\n",
        "- model: {text: Done., usage: [30, 4]}\n- model: {text: More.}\n",
    ),
    ("- cancel: tool_start c4", "- cancel: tool_start c5"),
];

#[test]
fn a_wrong_expectation_of_each_kind_exits_with_one() {
    for (index, (right, wrong)) in PLANTED.iter().enumerate() {
        assert!(RIGHT.contains(right), "{right} is not in the file");
        let planted = RIGHT.replacen(right, wrong, 1);
        let path = file("wrong", &format!("wrong_{index}.yaml"), &planted);
        let (code, said) = play(&path);
        assert_eq!(code, Some(1), "{right} → {wrong}: {said}");
        assert!(said.contains("FAILED right ("), "{right} → {wrong}: {said}");
    }
}

#[test]
fn a_difference_is_shown_with_file_line_and_both_sides() {
    let planted = RIGHT.replacen("text: Looking.\n", "text: Look.\n", 1);
    let (_, said) = play(&file("shown", "shown.yaml", &planted));
    let at = planted
        .lines()
        .position(|line| line.contains("- expect:"))
        .unwrap()
        + 1;
    assert!(said.contains(&format!("shown.yaml:{at}: ")), "{said}");
    assert!(
        said.contains("the last text is 'Looking.', expected 'Look.'"),
        "{said}"
    );
    assert!(said.contains("(in every way)"), "{said}");
}

#[test]
fn a_case_that_takes_too_long_on_the_paused_clock_differs() {
    let text = "id: x\ntitle: x\ntools: {f: {does: {sleeps_ms: 20, returns: a}}}\nscript:\n\
                - user: go\n- model: {calls: [[c1, f, '{}']]}\n- model: {text: done}\n\
                expect: {elapsed_ms_at_most: 19, stop: [completed]}\n";
    let (code, said) = play(&file("slow", "slow.yaml", text));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("expected 19 at most"), "{said}");
}

#[test]
fn what_never_ends_is_a_difference_and_not_a_hang() {
    let text = "id: x\ntitle: x\ntools: {f: {does: {waits_for: nobody}, deadline_ms: 99999999}}\n\
                script:\n- user: go\n- model: {calls: [[c1, f, '{}']]}\nexpect: {stop: [completed]}\n";
    let (code, said) = play(&file("endless", "endless.yaml", text));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("it never ends"), "{said}");
}

#[test]
fn a_file_that_cannot_be_read_exits_with_one_and_the_others_are_played() {
    file("mixed", "a.yaml", "id: x\ntitle: x\nscrpt: []\n");
    let folder = file("mixed", "b.yaml", RIGHT);
    let (code, said) = play(folder.parent().unwrap());
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("a.yaml:3: unknown field `scrpt`, expected one of"),
        "{said}"
    );
    assert!(said.contains("ok     right"), "{said}");
}

#[test]
fn to_be_called_wrongly_exits_with_two() {
    for arguments in [
        &[][..],
        &["--what"],
        &["no/such/file.yaml"],
        &["file.yaml", "--postgres"],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            said(&output).contains("usage: raf-scenarios"),
            "{arguments:?}"
        );
    }
    assert_eq!(run(&["--help"]).status.code(), Some(0));
}

#[test]
fn a_case_is_played_over_http_too() {
    let text = "id: x\ntitle: x\nscript:\n- user: Hi\n- model: {text: Hello, usage: [3, 1]}\n\
                expect: {stop: [completed], usage: [3, 1]}\n";
    let path = file("http", "http.yaml", text);
    let output = run(&[path.to_str().expect("the path is text")]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(said(&output).contains("26 ways"), "{}", said(&output));
    let wrong = text.replace(
        "usage: [3, 1]}\n             expect",
        "usage: [3, 1]}\nexpect",
    );
    let wrong = wrong.replace(
        "text: Hello",
        "text: Hello, breaks: {refused: authentication}",
    );
    let output = run(&[file("http", "wrong.yaml", &wrong).to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said(&output).contains("authentication"),
        "{}",
        said(&output)
    );
}

#[test]
fn the_schema_in_the_documents_is_the_one_of_the_types() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenario.schema.json");
    let Ok(written) = std::fs::read_to_string(&path) else {
        // The package alone has no documents.
        assert!(
            !path.parent().unwrap().exists(),
            "the schema is missing: {path:?}"
        );
        return;
    };
    let output = run(&["--schema"]);
    assert!(
        written.as_bytes() == output.stdout,
        "write it anew: raf-scenarios --schema > docs/scenario.schema.json"
    );
}

#[test]
fn what_is_planted_within_an_agent_is_noticed() {
    let (code, said) = play(&file("nested", "right.yaml", NESTED));
    assert_eq!(code, Some(0), "{said}");
    let planted = [
        ("pending: [s1 approval]", "pending: [c1 approval]"),
        ("requested s1 == 1", "requested s1 == 2"),
        ("usage: [17, 4]", "usage: [10, 1]"),
        ("0/0/sub: [[7, 3], [8, 4]]", "0/0/sub: [[7, 3]]"),
        ("0/0/sub:", "1/0/sub:"),
        ("rounds: [[10, 1], [20, 2]]", "rounds: [[10, 1]]"),
        ("look: 1", "look: 0"),
        ("text: nowhere", "text: hit"),
        (
            "text: found, usage: [8, 4]}",
            "text: found, usage: [8, 4]}\n        - {text: more}",
        ),
    ];
    for (right, wrong) in planted {
        assert!(NESTED.contains(right), "{right}");
        let path = file("nested", "wrong.yaml", &NESTED.replacen(right, wrong, 1));
        let (code, said) = play(&path);
        assert_eq!(code, Some(1), "{wrong}: {said}");
    }
}
