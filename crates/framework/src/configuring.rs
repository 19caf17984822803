//! Fills in and overrules the options of each run that passes through.

use std::any::{Any, TypeId};
use std::sync::Arc;

use async_trait::async_trait;
use raf_core::{
    ChatClientLayer, ChatClientMetadata, ChatClientRunOptions, ChatMessage, IChatClient,
    LayerPlacement, Result, UpdateStream,
};

pub(crate) mod merge;

/// Gives each run default options, and options that cannot be changed by the caller.
///
/// Precedence, the strongest first: overrides, the run's own options, defaults. By field:
///
/// | options | how they are merged |
/// |---|---|
/// | single values: `model`, `temperature`, `tool_choice`, `deadline`, `session_id`, … | the strongest that is set |
/// | `stop` | the strongest that is not empty |
/// | `tools` | all, weakest first; of one name the strongest, at the place of the weakest |
/// | `extra_body` | all fields; of one name the strongest, whole |
/// | `extensions` | all types; of one type the strongest |
/// | tools given with `with_provider_tools` | all sources, strongest first |
/// | `cancellation`, answers to pending requests | the run's own, always |
///
/// - **Default.** Without overrides: [`ConfiguringChatClient::new`] sets defaults only.
/// - **Place.** Anywhere; what it changes decides. Before the loop it configures legs, and that is
///   where tools, sources of tools, `deadline`, `session_id` and extensions belong. After the loop it
///   configures each model request: `temperature` or `extra_body`, say. A tool that is added there
///   is offered to the model, yet the loop does not know it and answers the call with
///   `unknown_tool`.
///
///   ```text
///   .configuring(defaults).function_invoking(tools)    right: the loop sees the tools of `defaults`
///   .function_invoking(tools).configuring(defaults)    wrong, if `defaults` hold tools
///   ```
/// - **Drop.** Dropping the stream drops the inner stream: it is the inner stream.
#[derive(Clone, Debug)]
pub struct ConfiguringChatClient {
    inner: Arc<dyn IChatClient>,
    defaults: ChatClientRunOptions,
    overrides: ChatClientRunOptions,
}

impl ConfiguringChatClient {
    /// Defaults for what a run leaves unset.
    pub fn new(inner: Arc<dyn IChatClient>, defaults: ChatClientRunOptions) -> Self {
        Self {
            inner,
            defaults,
            overrides: ChatClientRunOptions::new(),
        }
    }

    /// Sets options that win over those of the run. Default: none.
    pub fn with_overrides(mut self, overrides: ChatClientRunOptions) -> Self {
        self.overrides = overrides;
        self
    }

    /// Defaults as a layer for a [`ChatClientBuilder`](raf_core::ChatClientBuilder).
    pub fn layer(defaults: ChatClientRunOptions) -> ChatClientLayer {
        Self::layer_with_overrides(defaults, ChatClientRunOptions::new())
    }

    /// Defaults and overrides as a layer.
    pub fn layer_with_overrides(
        defaults: ChatClientRunOptions,
        overrides: ChatClientRunOptions,
    ) -> ChatClientLayer {
        ChatClientLayer::new("configuring", LayerPlacement::Anywhere, |inner| {
            Self::new(inner, defaults).with_overrides(overrides)
        })
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl IChatClient for ConfiguringChatClient {
    async fn run(
        &self,
        messages: &[ChatMessage],
        options: ChatClientRunOptions,
    ) -> Result<UpdateStream> {
        let options = merge::merge(&self.defaults, &options, &self.overrides);
        self.inner.run(messages, options).await
    }

    fn metadata(&self) -> ChatClientMetadata {
        let mut metadata = self.inner.metadata();
        let model = self
            .overrides
            .model
            .as_ref()
            .or(self.defaults.model.as_ref());
        if let Some(model) = model {
            metadata.model = Some(model.clone());
        }
        metadata
    }

    fn service(&self, id: TypeId) -> Option<&(dyn Any + Send + Sync)> {
        self.inner.service(id)
    }
}
