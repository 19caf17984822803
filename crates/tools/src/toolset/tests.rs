//! Precedence, visibility and gates of merged tools.

use raf_core::ToolDeclaration;

use super::{ToolEntryKind, ToolSet};
use crate::RegisteredTool;
use crate::registry::tests::named;

fn tools(names: &[&str]) -> Vec<RegisteredTool> {
    names
        .iter()
        .map(|name| {
            let (name, gated) = match name.strip_suffix('!') {
                Some(name) => (name, true),
                None => (*name, false),
            };
            let tool = named(name);
            RegisteredTool::new(if gated { tool.gated() } else { tool }).unwrap()
        })
        .collect()
}

fn declared(names: &[&str]) -> Vec<ToolDeclaration> {
    names
        .iter()
        .map(|name| ToolDeclaration::new(*name, "declared"))
        .collect()
}

#[test]
fn precedence_order_and_visibility() {
    let registered = tools(&["a", "b"]);
    let set = ToolSet::merge(
        &registered,
        &tools(&["c", "a"]),
        &tools(&["d", "e"]),
        &tools(&["f", "b", "e", "g"]),
        &declared(&["b", "e", "f"]),
    )
    .unwrap();
    let visible: Vec<_> = set.visible_names().collect();
    assert_eq!(visible, ["a", "b", "c", "e", "f", "d"]);
    assert_eq!(set.declarations().len(), 6);
    assert!(set.get("g").unwrap().hidden);
    assert!(set.get("a").unwrap().body().unwrap().tool().as_ref().name() == "a");
    assert!(matches!(set.get("b").unwrap().kind, ToolEntryKind::Body(_)));
    for name in ["e", "f"] {
        let entry = set.get(name).unwrap();
        assert!(
            matches!(entry.kind, ToolEntryKind::DeclaredOnly(_)),
            "{name}"
        );
        assert!(!entry.hidden, "{name}");
    }
    assert!(set.get("z").is_none());
}

#[test]
fn a_gated_twin_of_any_origin_gates_whatever_wins() {
    type Case<'a> = (&'a str, [&'a [RegisteredTool]; 4], &'a [&'a str]);

    let none: &[RegisteredTool] = &[];
    let free = tools(&["a"]);
    let gated = tools(&["a!"]);
    let cases: [Case<'_>; 6] = [
        ("registered", [&gated, none, none, none], &[]),
        ("registered over per run", [&free, &gated, none, none], &[]),
        ("registered over context", [&free, none, &gated, none], &[]),
        ("registered over hidden", [&free, none, none, &gated], &[]),
        ("declared over context", [none, none, &gated, none], &["a"]),
        ("gated over free", [&gated, &free, none, none], &[]),
    ];
    for (case, [registered, per_run, context, hidden], names) in cases {
        let set = ToolSet::merge(registered, per_run, context, hidden, &declared(names)).unwrap();
        assert!(set.get("a").unwrap().gated, "{case}");
        assert_eq!(set.len(), 1, "{case}");
    }
    let set = ToolSet::merge(&free, &free, none, none, &[]).unwrap();
    assert!(!set.get("a").unwrap().gated);
}

#[test]
fn duplicates_within_one_source_are_refused() {
    let twice = tools(&["a", "b", "a"]);
    let error = ToolSet::merge(&[], &twice, &[], &[], &[]).unwrap_err();
    for part in ["given with the run", "'a'", "number 1", "number 3"] {
        assert!(error.message().contains(part), "{error}");
    }
    let error = ToolSet::merge(&[], &[], &[], &[], &declared(&["x", "x"])).unwrap_err();
    assert!(error.message().contains("declared"), "{error}");
}
