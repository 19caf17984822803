//! Which orders of layers are refused.

use std::any::{Any, TypeId};
use std::sync::Arc;

use async_trait::async_trait;

use super::{ChatClientBuilder, ChatClientLayer, LayerPlacement, LoopMarker};
use crate::{
    ChatClientMetadata, ChatClientRunOptions, ChatMessage, DelegatingChatClient, ErrorKind,
    IChatClient, Result, UpdateStream,
};

#[derive(Debug)]
struct Inner {
    has_loop: bool,
}

#[async_trait]
impl IChatClient for Inner {
    async fn run(&self, _: &[ChatMessage], _: ChatClientRunOptions) -> Result<UpdateStream> {
        Ok(Box::pin(futures::stream::empty()))
    }

    fn metadata(&self) -> ChatClientMetadata {
        ChatClientMetadata::new("inner")
    }

    fn service(&self, id: TypeId) -> Option<&(dyn Any + Send + Sync)> {
        (self.has_loop && id == TypeId::of::<LoopMarker>()).then_some(&LoopMarker)
    }
}

fn check(inner_has_loop: bool, placements: &[LayerPlacement], works: bool) {
    let mut builder = ChatClientBuilder::from_shared(Arc::new(Inner {
        has_loop: inner_has_loop,
    }));
    for placement in placements {
        let layer = ChatClientLayer::new("layer", *placement, DelegatingChatClient::new);
        builder = builder.layer(layer);
    }
    match builder.build() {
        Ok(client) => {
            assert!(works, "{inner_has_loop} {placements:?} must be refused");
            assert_eq!(client.metadata().provider.as_deref(), Some("inner"));
        }
        Err(error) => {
            assert!(!works, "{inner_has_loop} {placements:?} must work: {error}");
            assert_eq!(error.kind(), ErrorKind::Configuration);
        }
    }
}

#[test]
fn an_order_that_cannot_work_is_refused() {
    use LayerPlacement::{Anywhere, InsideLoop, Loop, OutsideLoop};
    check(false, &[], true);
    check(false, &[Anywhere, Loop, Anywhere], true);
    check(false, &[OutsideLoop, Loop, InsideLoop], true);
    check(false, &[InsideLoop], true);
    check(false, &[InsideLoop, Loop], false);
    check(false, &[Loop, OutsideLoop], false);
    check(false, &[OutsideLoop], false);
    check(false, &[Loop, Anywhere, Loop], false);
    check(true, &[OutsideLoop, Anywhere], true);
    check(true, &[Loop], false);
    check(true, &[InsideLoop], false);
}

#[test]
fn the_first_layer_added_is_the_outermost() {
    #[derive(Debug)]
    #[expect(dead_code, reason = "read by Debug")]
    struct Named(&'static str, Arc<dyn IChatClient>);

    #[async_trait]
    impl IChatClient for Named {
        async fn run(
            &self,
            messages: &[ChatMessage],
            options: ChatClientRunOptions,
        ) -> Result<UpdateStream> {
            self.1.run(messages, options).await
        }
    }

    let named = |name| {
        ChatClientLayer::new(name, LayerPlacement::Anywhere, move |inner| {
            Named(name, inner)
        })
    };
    let stack = ChatClientBuilder::new(Inner { has_loop: false })
        .layer(named("first"))
        .layer(named("second"))
        .build()
        .unwrap();
    assert_eq!(
        format!("{stack:?}"),
        r#"Named("first", Named("second", Inner { has_loop: false }))"#
    );
}
