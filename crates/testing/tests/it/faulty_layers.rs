//! Layers with one planted fault each: the law that forbids it notices.

use std::any::{Any, TypeId};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use raf_core::{
    AgentResponseUpdate as Update, ChatClientMetadata, ChatClientRunOptions, ChatMessage, Error,
    Finish, FinishReason, IChatClient, Result, UpdateStream,
};
use raf_testing::contract::decorator::{self, Subject};
use raf_testing::contract::run_paused;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    CollectsFirst,
    DropsUnknownContent,
    PollsAtOnce,
    SpawnsADetachedTask,
    LosesTheToken,
    ReplacesErrors,
    EndsACutStream,
    TwoFinishes,
    CopiesMessages,
    DropsAnswers,
    HidesTheStack,
    LosesMetadata,
    ReadsAhead,
}

#[derive(Clone)]
struct Faulty {
    inner: Arc<dyn IChatClient>,
    fault: Fault,
}

impl std::fmt::Debug for Faulty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("Faulty");
        if self.fault != Fault::HidesTheStack {
            debug.field("inner", &self.inner);
        }
        debug.finish()
    }
}

#[async_trait]
impl IChatClient for Faulty {
    async fn run(
        &self,
        messages: &[ChatMessage],
        mut options: ChatClientRunOptions,
    ) -> Result<UpdateStream> {
        let mut messages = messages.to_vec();
        match self.fault {
            Fault::LosesTheToken => options.cancellation = raf_core::Cancellation::new(),
            Fault::DropsAnswers => options.tool_approval_responses.clear(),
            Fault::CopiesMessages => {
                let copy = |message: &ChatMessage| message.to_builder().build();
                messages = messages.iter().map(copy).collect();
            }
            _ => {}
        }
        let mut stream = self.inner.run(&messages, options).await?;
        Ok(match self.fault {
            Fault::CollectsFirst => {
                let all = async move { futures::stream::iter(stream.collect::<Vec<_>>().await) };
                futures::stream::once(all).flatten().boxed()
            }
            Fault::DropsUnknownContent => stream
                .filter(|item| std::future::ready(!matches!(item, Ok(Update::Content { .. }))))
                .boxed(),
            Fault::PollsAtOnce => {
                let first = stream.next().await;
                futures::stream::iter(first).chain(stream).boxed()
            }
            Fault::SpawnsADetachedTask => {
                let (sender, receiver) = tokio::sync::mpsc::channel(1);
                #[expect(clippy::disallowed_methods, reason = "the planted fault")]
                tokio::spawn(async move {
                    while let Some(item) = stream.next().await {
                        let _ = sender.send(item).await;
                    }
                });
                let next = |mut receiver: tokio::sync::mpsc::Receiver<_>| async move {
                    receiver.recv().await.map(|item| (item, receiver))
                };
                futures::stream::unfold(receiver, next).boxed()
            }
            Fault::ReplacesErrors => stream
                .map(|item| item.map_err(|error| Error::misuse(error.to_string())))
                .boxed(),
            Fault::EndsACutStream => {
                let end = Update::finish(Finish::new(FinishReason::Stop));
                stream.chain(futures::stream::iter([Ok(end)])).boxed()
            }
            Fault::TwoFinishes => stream
                .flat_map(|item| {
                    let again = matches!(item, Ok(Update::Finish { .. }));
                    let finish = Update::finish(Finish::new(FinishReason::Stop));
                    futures::stream::iter(std::iter::once(item).chain(again.then_some(Ok(finish))))
                })
                .boxed(),
            Fault::ReadsAhead => stream
                .ready_chunks(8)
                .flat_map(futures::stream::iter)
                .boxed(),
            _ => stream,
        })
    }

    fn metadata(&self) -> ChatClientMetadata {
        if self.fault == Fault::LosesMetadata {
            return ChatClientMetadata::default();
        }
        self.inner.metadata()
    }

    fn service(&self, id: TypeId) -> Option<&(dyn Any + Send + Sync)> {
        self.inner.service(id)
    }
}

macro_rules! notices {
    ($($test:ident: $fault:ident breaks $law:ident;)*) => {$(
        #[test]
        fn $test() {
            let subject = Subject {
                name: "Faulty",
                wrap: |inner| Arc::new(Faulty { inner, fault: Fault::$fault }),
            };
            must_fail(|| decorator::$law(&subject));
        }
    )*};
}

fn must_fail<F: Future<Output = ()>>(law: impl FnOnce() -> F) {
    let held = catch_unwind(AssertUnwindSafe(|| run_paused("law", &[], law)));
    assert!(held.is_err(), "the law did not notice the fault");
}

notices! {
    collecting: CollectsFirst breaks updates_come_before_the_inner_stream_ends;
    reading_ahead: ReadsAhead breaks at_most_one_item_ahead;
    dropping_content: DropsUnknownContent breaks unknown_content_passes_unchanged_in_order;
    polling_early: PollsAtOnce breaks nothing_is_sent_before_the_first_poll;
    spawning_sends_early: SpawnsADetachedTask breaks nothing_is_sent_before_the_first_poll;
    spawning_outlives: SpawnsADetachedTask breaks dropping_the_stream_drops_the_inner_stream;
    losing_the_token: LosesTheToken breaks cancellation_reaches_the_inner_stream;
    replacing_errors: ReplacesErrors breaks an_error_keeps_kind_and_source_and_is_last;
    inventing_an_end: EndsACutStream breaks a_cut_stream_does_not_become_a_finish;
    ending_twice: TwoFinishes breaks exactly_one_terminal_item;
    copying_messages: CopiesMessages breaks messages_and_options_of_the_caller_are_unchanged;
    dropping_answers: DropsAnswers breaks resume_data_is_not_lost;
    hiding_the_stack: HidesTheStack breaks debug_shows_the_stack_and_no_text;
    losing_metadata: LosesMetadata breaks metadata_and_services_reach_the_innermost;
}

#[test]
#[should_panic(expected = "there is no law no_such_law")]
fn a_skip_that_names_no_law_is_a_mistake() {
    raf_testing::contract::check_skips(&["a_law"], &[("no_such_law", "because")]);
}
