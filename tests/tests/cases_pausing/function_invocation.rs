//! What of case 19 of the function-invocation cases no scenario file can say: gates inside wrappers.

use std::sync::Arc;

use raf_testing::{Reply, ScriptedTool};
use raf_tests::leg::assert_lines;
use raf_tests::pausing::{PausingCase, in_every_way};
use raf_tools::{ApprovalRequiredTool, RegisteredTool, ToolRegistry};

use crate::support::assert_paused;

#[tokio::test(start_paused = true)]
async fn fi19_approval_is_asked_for_the_wrapped_call_alone() {
    in_every_way(async |case: &mut PausingCase| {
        let f = ScriptedTool::returning("f", "r1");
        let log = f.log().clone();
        let registered = RegisteredTool::from_shared(Arc::new(ApprovalRequiredTool::new(f)));
        let registry =
            ToolRegistry::from_tools([registered.expect("it is a tool")]).expect("one tool");
        // Once more around it: the gate is a property of what stands in the registry.
        let shared = Arc::clone(registry.get("f").expect("it is there").tool());
        case.shared_tool(shared, &log);
        case.tool(ScriptedTool::returning("g", "r2"));
        case.replies([Reply::calls([("1", "f", "{}"), ("2", "g", "{}")]).message_id("m1")]);
        let paused = case.say("go").await;
        assert_paused(&paused, &["1 approval"]);
        assert_lines(&paused.lines(), &["A:[1,2]", "R(2, ok: 'r2')"]);
        paused.assert_order(&["call_ready 1", "call_ready 2", "tool_end 2 ok"]);
        assert_eq!(case.ledger().count(&paused, "approval_requested 1"), 1);
        assert_eq!(case.request_count(), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn fi19_a_gate_survives_a_namespace() {
    in_every_way(async |case: &mut PausingCase| {
        let f = ScriptedTool::returning("f", "r1").gated();
        let log = f.log().clone();
        let registry = ToolRegistry::builder().with_tool(f).build().unwrap();
        let namespaced = registry.namespaced("files").unwrap();
        let name = namespaced.tool_names().next().unwrap().to_owned();
        let shared = Arc::clone(namespaced.get(&name).unwrap().tool());
        case.shared_tool(shared, &log);
        case.replies([Reply::calls([("1", name.as_str(), "{}")])]);
        assert_paused(&case.say("go").await, &["1 approval"]);
        assert_eq!(log.entries(), 0);
    })
    .await;
}
