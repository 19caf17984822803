//! The program at the top of the README is the example that runs, and is as short as it says.

/// From the first item to the end of `main`.
fn program(text: &str) -> Vec<&str> {
    let (_, from_first_item) = text.split_once("\n#[derive").expect("it has a typed tool");
    let (program, _) = from_first_item.split_once("\n}\n").expect("main ends");
    program.lines().collect()
}

#[test]
fn the_readme_and_the_example_are_one_program() {
    let example = include_str!("../smallest_agent.rs");
    let example = example.replace(
        "raf_examples::provider(script())?",
        "OpenAiChatClient::from_env()?",
    );
    assert_eq!(program(include_str!("../../README.md")), program(&example));
}

#[test]
fn it_has_ten_lines_at_most_beside_its_imports() {
    let lines = program(include_str!("../../README.md"));
    let code = lines.iter().filter(|line| !line.trim().is_empty());
    // One more: the brace that closes main.
    assert!(code.count() < 10, "{lines:#?}");
}
