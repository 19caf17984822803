//! One turn of the model, from its request to its end: the exchanges that it takes, as a plain async
//! function. A turn that the server pauses is sent back and goes on in the same stream.

use raf_core::{AgentResponseUpdate, ChatClientRunOptions, ChatMessage, Emitter, Result};
use raf_wire::{Address, Dialogue, DialogueSetup};

use crate::client::Shared;
use crate::request::Built;
use crate::response::Reply;
use crate::run_options::AnthropicRunOptions;

/// All that a turn needs.
pub(crate) struct Turn {
    pub(crate) shared: Shared,
    pub(crate) setup: DialogueSetup,
    pub(crate) url: Address,
    pub(crate) built: Built,
    pub(crate) reply: Reply,
    /// None where a pause is not gone on with.
    pub(crate) again: Option<Again>,
}

/// What a turn is asked with again, where the server pauses it.
pub(crate) struct Again {
    pub(crate) messages: Vec<ChatMessage>,
    pub(crate) options: ChatClientRunOptions,
    pub(crate) own: AnthropicRunOptions,
    pub(crate) model: String,
}

/// Sends the request, reads the reply, goes on with it as often as it is paused and that is allowed, and
/// says what it says. A drop at any await ends the exchange.
pub(crate) async fn drive(turn: Turn, mut out: Emitter<AgentResponseUpdate>) -> Result<()> {
    let Turn {
        shared,
        setup,
        url,
        built,
        mut reply,
        mut again,
    } = turn;
    let mut dialogue = Dialogue::begin(setup)?;
    let Built {
        mut body, restore, ..
    } = built;
    let finish = loop {
        let mut opened = dialogue.post(&url, body).await?;
        let finish = dialogue
            .listen(&mut opened, &mut reply, &restore, &mut out)
            .await?;
        dialogue.drain(opened).await;
        let (Some(again), Some(paused)) = (&mut again, reply.resume()) else {
            break finish;
        };
        again.messages.push(paused);
        body = shared.build_again(again)?.body;
    };
    out.emit(AgentResponseUpdate::finish(finish)).await;
    Ok(())
}
