//! Tools with one planted fault each: the law that forbids it notices.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use raf_core::ToolDeclaration;
use raf_testing::contract::run_real;
use raf_testing::contract::tool::{self, Subject};
use raf_testing::{Behaviour, ScriptedTool};
use raf_tools::{ITool, ToolOutput};
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
