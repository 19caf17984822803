//! Files that are read, and files that are refused with their line.

use super::Scenario;

fn error(text: &str) -> (u64, String) {
    let error = Scenario::parse("x.yaml", text).unwrap_err();
    assert!(error.to_string().starts_with("x.yaml:"), "{error}");
    (error.line(), error.text().to_owned())
}

const HEAD: &str = "id: x\ntitle: x\ntools: {f: {does: {returns: a}}}\n";

#[test]
fn a_case_and_its_variants_are_read() {
    let text = format!(
        "{HEAD}script:\n- user: go\n- model: {{text: done}}\nexpect: {{stop: [stop]}}\nvariants:\n- name: other\n  config: {{max_rounds: 2}}\n"
    );
    let cases = Scenario::parse("x.yaml", &text).unwrap();
    let names: Vec<_> = cases.iter().map(Scenario::name).collect();
    assert_eq!(names, ["x", "x / other"]);
}

#[test]
fn what_is_unknown_or_impossible_is_refused_with_its_line() {
    for (rest, line, holds) in [
        (
            "script:\n- usr: go\nexpect: {stop: [stop]}",
            5,
            "unknown field `usr`",
        ),
        (
            "script:\n- model: {text: a}\nexpect: {stop: [stop]}",
            5,
            "belongs to a leg",
        ),
        (
            "script:\n- user: go\n- model: {txt: a}\nexpect: {stop: [stop]}",
            6,
            "unknown field `txt`",
        ),
        (
            "script:\n- user: go\n  model: {text: a}\nexpect: {stop: [stop]}",
            5,
            "two steps",
        ),
        (
            "script:\n- user: go\n- {}\nexpect: {stop: [stop]}",
            6,
            "says nothing",
        ),
        (
            "script:\n- user: go\n- cancel: tool_begin c1\nexpect: {stop: [stop]}",
            6,
            "no event",
        ),
        (
            "script:\n- user: go\nexpect:\n  stop: [done]",
            7,
            "no end of a leg",
        ),
        (
            "script:\n- user: go\nexpect:\n  exec: {g: 1}",
            7,
            "there is no tool 'g'",
        ),
        (
            "script:\n- user: go\nexpect:\n  events:\n  - a < b",
            8,
            "no event",
        ),
        (
            "script:\n- user: go\nexpect:\n  request:\n    2:\n    - X:go",
            9,
            "no line",
        ),
        (
            "script:\n- user: go\nexpect:\n  request:\n    0: []",
            8,
            "numbered from 1",
        ),
        ("script:\n- user: go", 1, "nothing is expected"),
        ("script:\n- expect: {stop: stop}", 5, "there is none"),
        (
            "script:\n- batch: [[c1, f, '{}']]\nexpect: {exec: {f: 1}}",
            5,
            "mode: executor",
        ),
        (
            "script:\n- decide: {c1: perhaps}\nexpect: {stop: [stop]}",
            5,
            "perhaps",
        ),
        ("expect: {stop: [stop]}", 1, "neither"),
        ("script: []\nexpect: {stop: [stop]}", 1, "no leg"),
    ] {
        let (at, text) = error(&format!("{HEAD}{rest}\n"));
        assert!(text.contains(holds), "{rest}: {text}");
        assert_eq!(at, line, "{rest}: {text}");
    }
}

#[test]
fn tools_that_cannot_be_are_refused() {
    for (does, holds) in [
        ("{returns: a, hangs: true}", "ends in one way"),
        ("{agent: {}, hangs: true}", "ends in one way"),
        ("{agent: {}, counts: x}", "does nothing else"),
        (
            "{agent: {tools: {g: {visible: hidden}}}}",
            "other than offered",
        ),
        ("dances", "dances"),
        ("{fails: {softly: x}}", "softly"),
    ] {
        let text = format!(
            "id: x\ntitle: x\ntools:\n  f:\n    does: {does}\nscript:\n- user: go\nexpect: {{stop: [stop]}}\n"
        );
        let (line, text) = error(&text);
        assert_eq!(line, 5, "{text}");
        assert!(text.contains(holds), "{text}");
    }
}
