#![doc = include_str!("../README.md")]

pub mod format;
mod judge;
mod load;
pub mod notation;
mod play;
mod report;
mod runner;
mod schema;

pub use load::{LoadError, Scenario};
pub use report::{CaseReport, Fault, WayReport};
pub use runner::{Form, Reload, Runner, StackParts, Way, Wire};
pub use schema::json_schema;
