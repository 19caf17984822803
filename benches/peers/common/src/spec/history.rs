//! The conversation that stands before the user's prompt.

use super::HISTORY_CHARS;
use super::answer::token;

/// One message of the initial history.
pub struct Turn {
    pub from_user: bool,
    pub text: String,
}

/// The initial history: user and assistant take turns.
pub fn history(messages: usize) -> Vec<Turn> {
    (0..messages)
        .map(|i| {
            let mut text = format!("Message {i}. ");
            let mut word = i;
            while text.len() < HISTORY_CHARS {
                text.push_str(token(word));
                word += 1;
            }
            text.truncate(HISTORY_CHARS);
            Turn {
                from_user: i % 2 == 0,
                text,
            }
        })
        .collect()
}
