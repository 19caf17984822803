//! When a model repeats itself.

use raf_core::{Occurrence, ToolCall, ToolOutcome};
use raf_tools::{BatchCall, CallState, ResultDigest};

use super::{NoProgress, Repetition, round_calls};

fn digest(text: &str) -> ResultDigest {
    ResultDigest::of(ToolOutcome::Ok, text)
}

/// Plays rounds of one call each, `arguments=result`, and says what follows from each.
fn play(limit: u32, rounds: &[&str]) -> Vec<Repetition> {
    let mut state = NoProgress::default();
    rounds
        .iter()
        .map(|round| {
            let (arguments, result) = round.split_once('=').unwrap();
            let call = ToolCall::new("c", "f", arguments);
            let occurrence = Occurrence::new(0, 0);
            let call = BatchCall::new(occurrence, call, CallState::DeclaredOnly);
            let calls = [call];
            let may_warn = state.may_warn(&calls, limit);
            let end = state.count(round_calls(&calls), vec![digest(result)], limit);
            assert!(may_warn || end != Repetition::Warn, "a warning is foreseen");
            end
        })
        .collect()
}

#[test]
fn f4_the_third_identical_round_ends_and_the_second_is_warned_about() {
    use Repetition::{End, GoOn, Warn};
    let a = r#"{"q":1}=x"#;
    let same = r#"{ "q": 1 }=x"#;
    let other_result = r#"{"q":1}=y"#;
    let other_call = r#"{"q":2}=x"#;
    assert_eq!(play(3, &[a, same, a]), [GoOn, Warn, End]);
    assert_eq!(play(3, &[a, other_result, a, a]), [GoOn, GoOn, GoOn, Warn]);
    assert_eq!(
        play(3, &[a, other_call, a, a, a]),
        [GoOn, GoOn, GoOn, Warn, End]
    );
    assert_eq!(play(2, &[a, a]), [GoOn, End]);
    assert_eq!(play(0, &[a, a, a, a]), [GoOn, GoOn, GoOn, GoOn]);
}
