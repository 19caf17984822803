//! Plays a case in one way.

mod agent;
mod answers;
mod body;
mod canonical;
mod config;
mod executor;
mod invariants;
mod kept;
mod ledger;
mod leg;
mod legs;
mod log;
mod model;
mod player;
mod server;
mod store;
mod store_alone;
mod watch;

pub(crate) use canonical::is_model_error;
pub(crate) use leg::{Leg, waits};
pub(crate) use model::is_choice;
pub(crate) use player::Player;
pub(crate) use server::Server;
