//! Under which keys the rendered form of messages is kept: one per dialect and model, for thinking
//! goes back only to the model that made it.

use std::sync::{Mutex, PoisonError};

use raf_core::RenderKey;

use crate::dialect::Rules;

/// How many keys are kept: of a program that asks more models in turn, some messages are rendered
/// again.
const MOST: usize = 64;

/// The key of these rules and this model: the same for all clients, so that they share what they have
/// rendered.
pub(super) fn render_key(rules: &Rules, model: &str) -> RenderKey {
    static KEYS: Mutex<Vec<(Rules, String, RenderKey)>> = Mutex::new(Vec::new());
    let mut keys = KEYS.lock().unwrap_or_else(PoisonError::into_inner);
    let found = keys
        .iter()
        .rev()
        .find(|(of, name, _)| name == model && of == rules);
    if let Some((.., key)) = found {
        return *key;
    }
    if keys.len() == MOST {
        keys.remove(0);
    }
    let key = RenderKey::unique();
    keys.push((rules.clone(), model.to_owned(), key));
    key
}
