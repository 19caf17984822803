//! What a request says of calls.

use raf_core::{ChatClientRunOptions, ToolChoice, ToolDeclaration};

use super::{forbids_calls, tool_choice};

#[test]
fn f2_what_was_sent_says_whether_anything_may_be_called() {
    let auto = ToolChoice::Auto;
    let none = ToolChoice::None;
    let check = |sent: Option<&ToolChoice>, wanted: Option<&ToolChoice>, tools, forbids| {
        let mut request = ChatClientRunOptions::new();
        request.tool_choice = sent.cloned();
        request.tools = (0..tools).map(|_| ToolDeclaration::new("f", "")).collect();
        assert_eq!(
            forbids_calls(&request, wanted),
            forbids,
            "{sent:?} {wanted:?} {tools}"
        );
    };
    check(Some(&none), Some(&none), 1, true);
    check(None, None, 1, false);
    check(Some(&auto), Some(&auto), 1, false);
    // Hooks have the last word.
    check(Some(&none), Some(&auto), 1, true);
    check(Some(&auto), Some(&none), 1, false);
    check(None, Some(&none), 1, false);
    // Nothing is declared: no choice is sent.
    check(None, Some(&none), 0, true);
    check(None, Some(&auto), 0, false);
}

#[test]
fn f3_a_forced_choice_holds_for_the_first_request_of_a_turn() {
    let named = ToolChoice::Named("f".into());
    let check = |wanted: Option<&ToolChoice>, facts: [bool; 3], expect: Option<ToolChoice>| {
        let [wrap_up, first, keep] = facts;
        assert_eq!(
            tool_choice(wanted, wrap_up, first, keep),
            expect,
            "{wanted:?} {facts:?}"
        );
    };
    for forced in [&ToolChoice::Required, &named] {
        check(Some(forced), [false, true, false], Some(forced.clone()));
        check(Some(forced), [false, false, false], None);
        check(Some(forced), [false, false, true], Some(forced.clone()));
        check(Some(forced), [true, false, true], Some(ToolChoice::None));
    }
    check(
        Some(&ToolChoice::Auto),
        [false, false, false],
        Some(ToolChoice::Auto),
    );
    check(
        Some(&ToolChoice::None),
        [false, false, false],
        Some(ToolChoice::None),
    );
    check(None, [false, true, false], None);
    check(None, [true, true, false], Some(ToolChoice::None));
}
