//! The programs on tools as CI runs them: without a key.

use std::path::Path;
use std::process::{Command, Stdio};

/// What an example says that `cargo test` has built beside these tests.
fn said(name: &str) -> String {
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
    let output = command
        .stdin(Stdio::null())
        .output()
        .expect("it can be run");
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
fn streaming_tool_shows_its_pieces_while_it_is_at_work() {
    in_order(
        &said("streaming_tool"),
        &[
            "read_log is at work:",
            "… 08:00 started",
            "… 08:01 no space left",
            "… 08:02 stopped",
            "the model reads 48 bytes",
            "The disk was full at 08:01.",
        ],
    );
}

#[test]
fn image_tool_returns_typed_parts() {
    in_order(
        &said("image_tool"),
        &[
            "plot says: A plot of \"x * x\".",
            "plot returned an image of type image/png",
            "a parabola",
        ],
    );
}

#[test]
fn middleware_fills_in_retries_and_is_observed() {
    in_order(
        &said("middleware"),
        &[
            r#"> order_status with {"number":7,"tenant":"acme"}"#,
            "< order_status failed",
            "attempt 1 of order_status failed",
            "> order_status",
            "< order_status ended well",
            "Your order 7 is on its way.",
        ],
    );
}

#[test]
fn macro_tool_makes_tools_of_functions() {
    in_order(
        &said("macro_tool"),
        &[
            "weather: Tells the weather of a city.",
            "book_train: Books a seat on the next train.",
            "weather: 18 °C in Oslo",
            "book_train: booked to Oslo as ",
            "a seat is booked.",
        ],
    );
}
