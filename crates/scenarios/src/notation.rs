//! The words that expectations are written in: patterns of texts, message lines, events and ends.

mod ending;
mod event;
mod line;
mod pattern;

pub use self::ending::{STOPS, is_stop, stop_words};
pub use self::event::{EVENTS, Event, EventPattern, EventRule, show};
pub use self::line::{LINE_FORMS, Line, LinePattern, OUTCOMES, is_outcome, outcome_words};
pub use self::pattern::Pattern;

#[cfg(test)]
mod tests;
