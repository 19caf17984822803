//! Tools with one planted fault each: the law that forbids it notices.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use raf_core::ToolDeclaration;
use raf_testing::contract::run_real;
use raf_testing::contract::tool::{self, Subject};
use raf_testing::{Behaviour, ScriptedTool};
use raf_tools::{ITool, ToolError, ToolOutput};
use serde_json::json;

fn subject(make: fn() -> Arc<dyn ITool>) -> Subject {
    Subject {
        name: "Faulty",
        make,
        valid: || json!({}),
        invalid: || json!([]),
    }
}

fn must_fail<F: Future<Output = ()>>(law: impl FnOnce() -> F) {
    let held = catch_unwind(AssertUnwindSafe(|| run_real("law", &[], law)));
    assert!(held.is_err(), "the law did not notice the fault");
}

#[test]
fn a_bad_name_is_noticed() {
    let subject = subject(|| Arc::new(ScriptedTool::new("no such name!")));
    must_fail(|| tool::the_name_is_valid(&subject));
}

#[test]
fn a_schema_of_no_object_is_noticed() {
    let subject =
        subject(|| Arc::new(ScriptedTool::new("t").with_parameters(&json!({"type": "string"}))));
    must_fail(|| tool::the_schema_is_a_valid_object_schema(&subject));
}

#[test]
fn a_schema_that_takes_everything_is_noticed() {
    let subject = subject(|| {
        let declaration = ToolDeclaration::new("t", "").with_parameters(&json!({}));
        Arc::new(ScriptedTool::new("t").with_declaration(declaration))
    });
    must_fail(|| tool::the_schema_tells_valid_from_invalid(&subject));
}

#[test]
fn a_failing_tool_is_noticed() {
    let subject = subject(|| Arc::new(ScriptedTool::new("t").always(Behaviour::tell_model("no"))));
    must_fail(|| tool::the_call_works_whole(&subject));
}

#[test]
fn a_tool_that_comes_to_something_else_each_time_is_noticed() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let subject = subject(|| {
        let count = CALLS.fetch_add(1, Ordering::SeqCst).to_string();
        Arc::new(ScriptedTool::returning("t", count))
    });
    must_fail(|| tool::whole_and_streamed_come_to_the_same(&subject));
}

#[test]
fn a_stream_that_breaks_off_is_noticed() {
    let subject = subject(|| {
        Arc::new(ScriptedTool::new("t").always(Behaviour::returns(|| {
            let pieces = [Ok("a".into()), Err(ToolError::tell_model("broken"))];
            ToolOutput::stream(futures::stream::iter(pieces))
        })))
    });
    must_fail(|| tool::whole_and_streamed_come_to_the_same(&subject));
}

#[test]
fn a_task_that_outlives_its_call_is_noticed() {
    let subject = subject(|| {
        Arc::new(
            ScriptedTool::new("t").always(Behaviour::custom(|_, _| async {
                #[expect(clippy::disallowed_methods, reason = "the planted fault")]
                let detached = tokio::spawn(std::future::pending::<()>());
                detached.await.ok();
                Ok(ToolOutput::Void)
            })),
        )
    });
    must_fail(|| tool::dropping_the_call_leaves_nothing_running(&subject));
}
