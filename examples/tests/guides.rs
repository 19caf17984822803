//! The guides name every kind of error, every way in which a leg ends, and every option of a run and of
//! the loop.

use std::path::Path;

use raf_core::ChatClientRunOptions;

/// The names in the first column of the tables of a guide.
fn rows(guide: &str) -> Vec<&str> {
    let cells = guide.lines().filter(|line| line.starts_with("| `"));
    cells
        .filter_map(|line| line.split('|').nth(1))
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect()
}

/// The variants of an enum, read from its source: lines that begin with a capital letter.
fn variants<'a>(source: &'a str, name: &str) -> Vec<&'a str> {
    let start = format!("pub enum {name} {{\n");
    let (_, body) = source.split_once(&start).expect("the enum is there");
    let (body, _) = body.split_once("\n}").expect("it ends");
    body.lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.starts_with(|letter: char| letter.is_ascii_uppercase()))
        .map(|line| line.split(['(', ',', ' ']).next().unwrap_or(line))
        .collect()
}

#[track_caller]
fn check(guide: &str, names: &[&str]) {
    assert!(names.len() > 5, "they are found: {names:?}");
    let rows = rows(guide);
    let missing: Vec<_> = names.iter().filter(|name| !rows.contains(name)).collect();
    assert!(missing.is_empty(), "give each a row: {missing:?}");
}

#[test]
fn errors_has_a_row_for_every_kind() {
    let kinds = variants(include_str!("../../crates/core/src/error.rs"), "ErrorKind");
    check(include_str!("../../docs/errors.md"), &kinds);
}

#[test]
fn loop_has_a_row_for_every_end_of_a_leg_and_of_a_call() {
    let guide = include_str!("../../docs/loop.md");
    let reasons = variants(
        include_str!("../../crates/core/src/finish.rs"),
        "FinishReason",
    );
    check(guide, &reasons);
    let results = include_str!("../../crates/core/src/content/tool_result.rs");
    check(guide, &variants(results, "ToolOutcome"));
}

#[test]
fn options_has_a_row_for_every_option() {
    let shown = format!("{:#?}", ChatClientRunOptions::new());
    let fields: Vec<&str> = shown
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_once(':'))
        .map(|(field, _)| field)
        .collect();
    check(include_str!("../../docs/options.md"), &fields);
}

#[test]
fn loop_has_a_row_for_every_option_of_the_loop() {
    let source = include_str!("../../crates/framework/src/function_invoking/options.rs");
    let (_, fields) = source
        .split_once("pub struct FunctionInvokingOptions {\n")
        .expect("the struct is there");
    let (fields, _) = fields.split_once("\n}").expect("it ends");
    let names: Vec<&str> = fields
        .lines()
        .filter_map(|line| line.strip_prefix("    pub "))
        .filter_map(|line| line.split_once(':'))
        .map(|(name, _)| name)
        .collect();
    check(include_str!("../../docs/loop.md"), &names);
}

/// A heading as the anchor that it has on a page.
fn anchor(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = words
        .chars()
        .filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.collect::<String>().replace(' ', "-")
}

#[test]
fn links_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut pages = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    let guides = std::fs::read_dir(root.join("docs")).unwrap();
    pages.extend(guides.map(|entry| entry.unwrap().path()));
    let mut broken = Vec::new();
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        let links = text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.starts_with("http")) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => page.clone(),
                file => page.parent().unwrap().join(file),
            };
            let found = std::fs::read_to_string(&target).is_ok_and(|text| {
                heading.is_empty()
                    || text
                        .lines()
                        .any(|line| line.starts_with('#') && anchor(line) == heading)
            });
            if !found {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn approvals_has_a_row_for_every_refusal() {
    let guide = include_str!("../../docs/approvals.md");
    let faults = include_str!("../../crates/framework/src/sealed/fault.rs");
    check(guide, &variants(faults, "SealFault"));
    let reasons = include_str!("../../crates/core/src/approval.rs");
    let (_, texts) = reasons
        .split_once("impl RefusalReason")
        .expect("it is there");
    let (texts, _) = texts.split_once("\n}").expect("it ends");
    let texts: Vec<&str> = texts.split('"').skip(1).step_by(2).collect();
    check(guide, &texts);
}
