//! What a batch costs: nothing stays of a call that has finished, and what is off costs nothing. One
//! test alone in its process, for the allocator counts everything.

use std::alloc::System;

use raf_core::{Cancellation, ChatMessage, Extensions, Occurrence, RunId, ToolCall};
use raf_tools::{
    BatchContext, BatchEvent, CallState, ExecuteOptions, ExecutionOptions, IToolCallback,
    IToolMiddleware, QueuedCall, ToolExecutor, ToolRegistry, ToolSet, tool_fn,
};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[derive(Debug)]
struct Idle;

impl IToolCallback for Idle {}

impl IToolMiddleware for Idle {}

fn executor(options: ExecutionOptions) -> ToolExecutor {
    let tool = tool_fn("f", "Returns a kilobyte.", |(): ()| async {
        tokio::task::yield_now().await;
        "x".repeat(1_024)
    });
    let registry = ToolRegistry::builder().with_tool(tool).build();
    ToolExecutor::with_options(registry.expect("a good name"), options)
}

/// The bytes that are still held when this many calls have finished and their results were dropped.
async fn held_after(count: u32) -> usize {
    let executor = executor(ExecutionOptions::new().with_max_concurrency(8));
    let tools = ToolSet::merge(executor.registry().tools(), &[], &[], &[], &[]).expect("one tool");
    let region = Region::new(ALLOCATOR);
    let run_id = RunId::from("run");
    let extensions = Extensions::new();
    let calls = (0..count).map(|position| {
        let call = ToolCall::new(position.to_string(), "f", "{}");
        let preparation = executor.preparation(&tools, &run_id, &extensions);
        let occurrence = Occurrence::new(0, position);
        match preparation.prepare(occurrence, &call).into_state() {
            CallState::Ready(ready) => QueuedCall::Ready(ready),
            other => panic!("{other:?}"),
        }
    });
    let context = BatchContext::new(run_id.clone(), Cancellation::new());
    let mut batch = executor.batch(context, calls.collect());
    let mut finished = 0;
    while let Some(event) = batch.next().await {
        finished += u32::from(matches!(event, BatchEvent::Finished(_)));
    }
    assert_eq!(finished, count);
    let change = region.change();
    let held = change.bytes_allocated - change.bytes_deallocated;
    drop(batch);
    held
}

/// The allocations of one more call of a batch.
async fn allocations(options: ExecutionOptions) -> usize {
    let executor = executor(options);
    let mut counts = Vec::new();
    for calls in [1, 2, 3] {
        let calls = (0..calls).map(|index| ToolCall::new(index.to_string(), "f", "{}"));
        let message = ChatMessage::assistant_calls(calls);
        let region = Region::new(ALLOCATOR);
        let execution = executor.execute(&message, ExecuteOptions::new()).await;
        counts.push(region.change().allocations);
        drop(execution);
    }
    counts[2] - counts[1]
}

#[test]
fn d8_nothing_stays_of_a_finished_call_and_what_is_off_costs_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        // What is made once per process is made here.
        held_after(10).await;
        let (few, many) = (held_after(100).await, held_after(1_000).await);
        let per_call = many.saturating_sub(few) / 900;
        assert!(per_call < 64, "{per_call} bytes stay of each call");

        let plain = allocations(ExecutionOptions::new()).await;
        let observed = async |count: usize| {
            let add = |options: ExecutionOptions, _| options.with_callback(Idle);
            allocations((0..count).fold(ExecutionOptions::new(), add)).await
        };
        let (one, fifty) = (observed(1).await, observed(50).await);
        assert!(plain > 0, "the count counts");
        assert_eq!(
            (one, fifty),
            (plain, plain),
            "callbacks are shared, not copied"
        );

        let scoped = async |count: usize| {
            let add = |options: ExecutionOptions, _| {
                options.with_middleware_for(|tool| tool == "other", Idle)
            };
            allocations((0..count).fold(ExecutionOptions::new(), add)).await
        };
        let (one, fifty) = (scoped(1).await, scoped(50).await);
        assert_eq!(one, fifty, "middleware is shared, not copied");
    });
}
