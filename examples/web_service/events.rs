//! What a browser watches of a run: what the store has, from where it left off, then what follows.
//!
//! | event | id | what |
//! |---|---|---|
//! | `message` | how many messages there are with it | a message of the conversation, as the store has it |
//! | `text` | none | a piece of text on its way; the message that holds it follows |
//! | `tool_started` | none | a body was entered |
//! | `approval` | none | a call that waits for a person |
//! | `end` | none | the run is at its end, with its answer |
//!
//! Whoever connects again with the last id gets each message once. What waits is told again, and pieces of
//! text that nobody read are gone: the message has them. It does not matter which server plays the run.

use std::collections::VecDeque;
use std::convert::Infallible;

use axum::response::sse::Event;
use futures::{Stream, stream};
use raf_core::{AgentResponseUpdate, CancellationToken, Result, RunId};
use serde::Serialize;
use serde_json::json;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::player::Live;
use crate::server::{LOOK, Service};
use crate::settings::Stores;
use crate::views::{RunState, RunView};

/// The events of a run, behind the messages that were seen.
pub(crate) fn of_run(
    service: Service,
    run_id: RunId,
    seen: usize,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let feed = Feed {
        live: Some(service.player.watch()),
        stores: service.stores,
        stop: service.stop,
        run_id,
        look,
        seen,
        announced: Vec::new(),
        queue: VecDeque::new(),
        ended: false,
    };
    stream::unfold(feed, |mut feed| async {
        let event = feed.next().await?;
        Some((Ok(event), feed))
    })
}

struct Feed {
    stores: Stores,
    stop: CancellationToken,
    run_id: RunId,
    live: Option<broadcast::Receiver<Live>>,
    look: Interval,
    seen: usize,
    /// The requests that were told of.
    announced: Vec<String>,
    queue: VecDeque<Event>,
    ended: bool,
}

impl Feed {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Some(event);
            }
            if self.ended {
                return None;
            }
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return None,
                _ = self.look.tick() => {
                    if let Err(error) = self.look_into_the_store().await {
                        // It may be there again at the next look.
                        tracing::warn!(%error, run = %self.run_id, "the store cannot be read");
                    }
                }
                live = next_live(&mut self.live) => match live {
                    Ok((run_id, update)) if run_id == self.run_id => self.show(&update),
                    Ok(_) | Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => self.live = None,
                },
            }
        }
    }

    /// What is played in this process, before it is in the store.
    fn show(&mut self, update: &AgentResponseUpdate) {
        match update {
            AgentResponseUpdate::TextDelta { text } => self.tell("text", &json!({"text": text})),
            AgentResponseUpdate::ToolStarted { call, .. } => {
                self.tell("tool_started", &json!({"tool": call.name}));
            }
            _ => {}
        }
    }

    async fn look_into_the_store(&mut self) -> Result<()> {
        let Some(view) = RunView::load(&self.stores, &self.run_id).await? else {
            self.ended = true;
            return Ok(());
        };
        for (place, message) in view.messages.iter().enumerate().skip(self.seen) {
            self.seen = place + 1;
            let event = Event::default().id(self.seen.to_string());
            self.push(event.event("message"), message);
        }
        for approval in &view.approvals {
            if !self.announced.contains(&approval.request_id) {
                self.announced.push(approval.request_id.clone());
                self.tell("approval", approval);
            }
        }
        if view.state == RunState::Ended {
            self.tell("end", &json!({"answer": view.answer()}));
            self.ended = true;
        }
        Ok(())
    }

    fn tell(&mut self, name: &str, data: &impl Serialize) {
        self.push(Event::default().event(name), data);
    }

    fn push(&mut self, event: Event, data: &impl Serialize) {
        match event.json_data(data) {
            Ok(event) => self.queue.push_back(event),
            Err(error) => tracing::warn!(%error, "an event has no JSON form"),
        }
    }
}

/// The next update that is played here; none comes from a player that is gone.
async fn next_live(live: &mut Option<broadcast::Receiver<Live>>) -> Result<Live, RecvError> {
    match live {
        Some(live) => live.recv().await,
        None => std::future::pending().await,
    }
}
