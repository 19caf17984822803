//! What of the case fi12 no scenario file can say: one name twice.

use raf_core::{ChatClientRunOptions, FinishReason};
use raf_framework::FunctionInvokingOptions;
use raf_testing::{Reply, ScriptedTool};
use raf_tests::in_both_forms;
use raf_tests::leg::assert_lines;
use raf_tools::{ToolOptionsExt, ToolRegistry};

fn registry(tool: ScriptedTool) -> ToolRegistry {
    ToolRegistry::builder()
        .with_tool(tool)
        .build()
        .expect("one tool")
}

/// Registered tools and those given with the run both win over an additional one of the same name.
#[tokio::test(start_paused = true)]
async fn fi12_additional_tools_are_shadowed_by_those_of_the_request() {
    for registered in [true, false] {
        in_both_forms(async |case| {
            let behind = ScriptedTool::returning("f", "from behind");
            let front = ScriptedTool::returning("f", "from the front");
            let behind_log = case.watch_tool(&behind);
            let options = FunctionInvokingOptions::new();
            case.options(options.with_additional_tools(registry(behind)));
            let mut options = ChatClientRunOptions::new();
            let front_log = if registered {
                case.tool(front)
            } else {
                let log = case.watch_tool(&front);
                options = options.with_provider_tools(registry(front));
                log
            };
            case.replies([Reply::calls([("1", "f", "{}")]), Reply::text("done")]);
            let leg = case.say_with("go", options).await;
            assert_eq!(leg.reason(), &FinishReason::Stop);
            assert_eq!(case.request(1).tool_names(), ["f"]);
            assert_lines(&leg.lines()[1..2], &["R(1, ok: 'from the front')"]);
            assert_eq!((front_log.entries(), behind_log.entries()), (1, 0));
        })
        .await;
    }
}
