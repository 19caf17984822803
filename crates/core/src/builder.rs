//! Stacks layers on a client, and refuses an order that cannot work.

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;

use crate::client::IChatClient;
use crate::error::{Error, Result};

/// Where a layer belongs, seen from the function-invoking loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LayerPlacement {
    /// It works on either side.
    Anywhere,
    /// It is the loop: at most one in a stack.
    Loop,
    /// It sees each model request: below the loop (retry, rate limits, caching).
    InsideLoop,
    /// It sees whole legs: above the loop (approval, sessions).
    OutsideLoop,
}

/// A client that is or holds the loop answers a look-up of this service, so that a second loop is
/// noticed wherever it sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopMarker;

type Wrap = Box<dyn FnOnce(Arc<dyn IChatClient>) -> Result<Arc<dyn IChatClient>> + Send>;

/// A layer that is not yet around a client: its name, its place, how to make it.
pub struct ChatClientLayer {
    name: &'static str,
    placement: LayerPlacement,
    wrap: Wrap,
}

impl ChatClientLayer {
    /// A layer that can always be made.
    pub fn new<C: IChatClient + 'static>(
        name: &'static str,
        placement: LayerPlacement,
        wrap: impl FnOnce(Arc<dyn IChatClient>) -> C + Send + 'static,
    ) -> Self {
        Self::fallible(name, placement, move |inner| Ok(wrap(inner)))
    }

    /// A layer whose settings can be wrong.
    pub fn fallible<C: IChatClient + 'static>(
        name: &'static str,
        placement: LayerPlacement,
        wrap: impl FnOnce(Arc<dyn IChatClient>) -> Result<C> + Send + 'static,
    ) -> Self {
        Self {
            name,
            placement,
            wrap: Box::new(move |inner| Ok(Arc::new(wrap(inner)?))),
        }
    }
}

impl fmt::Debug for ChatClientLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatClientLayer")
            .field("name", &self.name)
            .field("placement", &self.placement)
            .finish_non_exhaustive()
    }
}

/// Builds a stack of layers. The first layer added is the outermost.
///
/// ```
/// use raf_core::{ChatClientBuilder, ChatClientLayer, DelegatingChatClient, LayerPlacement};
/// # fn stack(provider: impl raf_core::IChatClient + 'static) -> raf_core::Result<()> {
/// let client = ChatClientBuilder::new(provider)
///     .layer(ChatClientLayer::new("mine", LayerPlacement::Anywhere, DelegatingChatClient::new))
///     .build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ChatClientBuilder {
    inner: Arc<dyn IChatClient>,
    layers: Vec<ChatClientLayer>,
}

impl ChatClientBuilder {
    /// Starts from the innermost client.
    pub fn new(inner: impl IChatClient + 'static) -> Self {
        Self::from_shared(Arc::new(inner))
    }

    /// Starts from the innermost client, shared.
    pub fn from_shared(inner: Arc<dyn IChatClient>) -> Self {
        Self {
            inner,
            layers: Vec::new(),
        }
    }

    /// Adds a layer inside those added before.
    pub fn layer(mut self, layer: ChatClientLayer) -> Self {
        self.layers.push(layer);
        self
    }

    /// Adds a layer inside those added before, if there is one.
    pub fn layer_if(self, layer: Option<ChatClientLayer>) -> Self {
        match layer {
            Some(layer) => self.layer(layer),
            None => self,
        }
    }

    /// The stack.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) if the order cannot work, or
    /// what a layer's own settings are refused with.
    pub fn build(self) -> Result<Arc<dyn IChatClient>> {
        let inner_has_loop = self.inner.service(TypeId::of::<LoopMarker>()).is_some();
        check_order(&self.layers, inner_has_loop)?;
        self.layers
            .into_iter()
            .rev()
            .try_fold(self.inner, |inner, layer| (layer.wrap)(inner))
    }
}

fn check_order(layers: &[ChatClientLayer], inner_has_loop: bool) -> Result<()> {
    let loops: Vec<usize> = (0..layers.len())
        .filter(|&index| layers[index].placement == LayerPlacement::Loop)
        .collect();
    if loops.len() + usize::from(inner_has_loop) > 1 {
        return Err(Error::configuration(
            "the stack has two function-invoking loops: the outer one would never see a call. \
             Keep one",
        ));
    }
    let place_of_loop = loops.first().copied();
    for (index, layer) in layers.iter().enumerate() {
        let outside = match place_of_loop {
            Some(place) => index < place,
            None => inner_has_loop,
        };
        let has_loop = place_of_loop.is_some() || inner_has_loop;
        match layer.placement {
            LayerPlacement::InsideLoop if has_loop && outside => {
                return Err(Error::configuration(format!(
                    "the layer '{}' belongs inside the function-invoking loop, where it sees each \
                     model request: add it after the loop",
                    layer.name
                )));
            }
            LayerPlacement::OutsideLoop if !outside => {
                return Err(Error::configuration(format!(
                    "the layer '{}' belongs outside the function-invoking loop, where it sees \
                     whole legs: add it before the loop{}",
                    layer.name,
                    if has_loop {
                        ""
                    } else {
                        " (this stack has none)"
                    },
                )));
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
