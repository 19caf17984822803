//! The programs on approvals as CI runs them: without a key, with nobody at a terminal.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// An example that `cargo test` has built beside these tests.
fn example(name: &str) -> Command {
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
    command.stdin(Stdio::null());
    command
}

fn run(command: &mut Command) -> Output {
    command.output().expect("it can be run")
}

#[track_caller]
fn said(output: &Output, words: &[&str]) {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    for words in words {
        assert!(text.contains(words), "'{words}' is not in {text}");
    }
}

#[test]
fn approval_runs_what_was_approved_and_nothing_else() {
    let output = run(&mut example("approval"));
    said(
        &output,
        &[
            "+ delete_file: draft.tmp is deleted",
            "- delete_file: Rejected: it is still needed",
            "Ended with Stop.",
            "Left: notes.txt.",
        ],
    );
}

#[test]
fn ask_the_user_goes_on_with_the_answer() {
    let output = run(&mut example("ask_the_user"));
    said(&output, &["which one?", "booked for 4 in the garden"]);
}

#[test]
fn a_run_is_paused_in_one_process_and_resumed_in_another() {
    let output = run(&mut example("pause_across_processes"));
    said(&output, &["1 call(s) wait", "sent 50000 to landlord"]);
}

/// A file that goes when the test ends.
struct File(PathBuf);

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_file_that_was_changed_or_is_of_another_key_is_refused() {
    let name = format!("raf_approvals_{}.json", std::process::id());
    let file = File(std::env::temp_dir().join(name));
    let step = |step: &str, key: &str| {
        let mut command = example("pause_across_processes");
        command.arg(step).arg(&file.0).env("RAF_SEALING_KEY", key);
        run(&mut command)
    };
    let (key, other) = ("k".repeat(32), "o".repeat(32));
    said(&step("ask", &key), &["1 call(s) wait"]);
    let refused = step("answer", &other);
    assert!(!refused.status.success());
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(error.contains("Tampered"), "{error}");

    // The arguments in the conversation are no authority: what was recorded runs, or nothing.
    let whole = std::fs::read_to_string(&file.0).expect("it is there");
    let forged = whole.replace("landlord", "mallory");
    assert_ne!(forged, whole);
    std::fs::write(&file.0, forged).expect("it can be written");
    let refused = step("answer", &key);
    assert!(!refused.status.success());
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(error.contains("args_mismatch"), "{error}");
}
