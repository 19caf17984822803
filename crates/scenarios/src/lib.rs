#![doc = include_str!("../README.md")]

pub mod format;
mod judge;
mod load;
pub mod notation;
mod play;
mod report;
mod runner;
mod schema;
mod way;

pub use load::{LoadError, Scenario};
pub use report::{CaseReport, Fault, WayReport};
pub use runner::{Runner, StackParts};
pub use schema::json_schema;
pub use way::{DurableStore, Form, Reload, Way, Wire};
