//! Patterns, lines, events and ends, and what is none.

use super::{
    EventPattern, EventRule, Line, LinePattern, Pattern, is_stop, outcome_words, stop_words,
};

fn result(id: &str, outcome: &str, text: &str) -> Line {
    Line::Result {
        id: id.to_owned(),
        outcome: outcome.to_owned(),
        text: text.to_owned(),
    }
}

#[test]
fn a_star_stands_for_any_text() {
    for (pattern, text, fits) in [
        ("a", "a", true),
        ("a", "ab", false),
        ("a*", "ab", true),
        ("*b*", "abc", true),
        ("*b*d", "abcd", true),
        ("*b*d", "abc", false),
        ("a*a", "a", false),
        (r"2 \* 3", "2 * 3", true),
        (r"2 \* 3", "2 + 3", false),
    ] {
        assert_eq!(Pattern::new(pattern).fits(text), fits, "{pattern} {text}");
    }
}

#[test]
fn lines_are_read_in_the_words_of_the_cases() {
    let ok = LinePattern::parse("R(c1, ok 'A')").unwrap();
    assert!(ok.fits(&result("c1", "ok", "A")));
    assert!(!ok.fits(&result("c1", "ok", "B")));
    assert!(!ok.fits(&result("c2", "ok", "A")));
    let error = LinePattern::parse("R(c1, error)").unwrap();
    assert!(error.fits(&result("c1", "error failed", "x")));
    assert!(!error.fits(&result("c1", "ok", "x")));
    let limit = LinePattern::parse("R(c1, limit)").unwrap();
    assert!(limit.fits(&result("c1", "skipped limit", "x")));
    assert!(!limit.fits(&result("c1", "skipped terminated", "x")));
    let both = LinePattern::parse("A:'Partial.' [c1, c2]").unwrap();
    let said = |calls: &[&str]| Line::Message {
        letter: 'A',
        text: "Partial.".to_owned(),
        calls: calls.iter().map(|id| (*id).to_owned()).collect(),
    };
    assert!(both.fits(&said(&["c1", "c2"])));
    assert!(!both.fits(&said(&["c2", "c1"])));
    assert!(!both.fits(&said(&[])));
    for wrong in ["X:hello", "R(c1)", "R(c1, fine)", "hello"] {
        assert!(LinePattern::parse(wrong).is_err(), "{wrong}");
    }
    assert_eq!(outcome_words("failed").unwrap(), ["error", "failed"]);
}

fn events() -> Vec<Vec<String>> {
    let lines: [&[&str]; 4] = [
        &["tool_start", "c1"],
        &["text", "a < b"],
        &["tool_end", "c1", "ok"],
        &["run_end", "stop"],
    ];
    let own = |words: &&[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    lines.iter().map(own).collect()
}

#[test]
fn events_are_ordered_and_counted() {
    for (rule, holds) in [
        ("tool_start c1 < tool_end c1 ok < run_end", true),
        ("tool_start(c1) < tool_end(c1, ok)", true),
        ("tool_end c1 ok|error < run_end", true),
        ("tool_end c1 error < run_end", false),
        ("run_end < tool_start c1", false),
        ("text 'a < b' < run_end stop", true),
        ("run_end == 1", true),
        ("run_end == 2", false),
        ("tool_start >= 1", true),
        ("tool_start >= 2", false),
        ("no tool_start c2", true),
        ("no tool_start c1", false),
        ("text 'a*'", true),
    ] {
        let fault = EventRule::parse(rule).unwrap().fault(&events());
        assert_eq!(fault.is_none(), holds, "{rule}: {fault:?}");
    }
    assert!(EventPattern::parse("tool_begin c1").is_err());
    assert!(EventRule::parse("run_end == many").is_err());
    assert!(EventRule::parse("text 'open").is_err());
}

#[test]
fn ends_have_words() {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let expected = stop_words("cancelled").unwrap();
    assert!(is_stop(&words("error cancelled"), &expected, false));
    let expected = stop_words("model_error").unwrap();
    assert!(is_stop(&words("error transport"), &expected, true));
    assert!(!is_stop(&words("error store"), &expected, false));
    assert!(stop_words("done").is_err());
}
