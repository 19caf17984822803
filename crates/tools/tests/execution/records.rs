//! What a record of a batch must not forget.

use raf_core::{Extensions, Occurrence, RunId, ToolCall};
use raf_testing::ScriptedTool;
use raf_tools::{CallState, ExecutionMode, ExecutionOptions, HoldPolicy, OpenBatch, ToolSet};

use super::executor;

#[test]
fn e2_a_gated_call_that_is_recorded_before_it_is_announced_is_still_gated() {
    let tool = ScriptedTool::returning("f", "x").gated();
    let executor = executor(ExecutionOptions::new(), &[&tool]);
    let tools = ToolSet::merge(executor.registry().tools(), &[], &[], &[], &[]).unwrap();
    let (run_id, extensions) = (RunId::from("run"), Extensions::new());
    let preparation = executor.preparation(&tools, &run_id, &extensions);
    let call = preparation.batch_call(Occurrence::new(0, 0), &ToolCall::new("c", "f", "{}"));
    assert!(matches!(call.state, CallState::Gated { .. }));
    let batch = OpenBatch::new(run_id.clone(), 0, vec![call]);
    let hold = HoldPolicy {
        mode: ExecutionMode::Parallel,
        whole_batch: false,
    };
    let records = batch.to_records(Some(hold));
    let json = serde_json::to_string(&records).unwrap();
    let records: Vec<_> = serde_json::from_str(&json).unwrap();
    let mut restored = OpenBatch::from_record(preparation, 0, &records).unwrap();
    assert!(restored.runnable(hold).is_empty(), "nobody said yes");
    assert_eq!(
        restored.make_requests(|request| request).len(),
        1,
        "it is asked about"
    );
}
