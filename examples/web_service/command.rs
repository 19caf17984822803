//! What the program is asked to do: its command line.

use std::net::SocketAddr;

/// What there is to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Play everything by itself.
    Demonstrate,
    /// Be the server.
    Serve { listen: SocketAddr },
    /// Look into the inbox, or answer.
    Inbox(InboxCommand),
}

/// What a person does with the inbox.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum InboxCommand {
    /// Show what waits.
    List,
    /// Let a call run.
    Approve { request_id: String },
    /// Turn a call down; a blank reason is none.
    Deny { request_id: String, reason: String },
}

const USAGE: &str = "usage: web_service [serve [--listen ADDRESS:PORT] | inbox list | inbox approve ID | \
                     inbox deny ID [REASON]]";

impl Command {
    /// Reads the arguments behind the program's name.
    ///
    /// # Errors
    /// What is wrong with them, and how it is written.
    pub(crate) fn from_arguments(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let arguments: Vec<String> = arguments.collect();
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        match words.as_slice() {
            [] => Ok(Self::Demonstrate),
            ["serve"] => Ok(Self::Serve {
                listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            }),
            ["serve", "--listen", address] => match address.parse() {
                Ok(listen) => Ok(Self::Serve { listen }),
                Err(error) => Err(format!("'{address}' is no address to listen on: {error}")),
            },
            ["inbox", "list"] => Ok(Self::Inbox(InboxCommand::List)),
            ["inbox", "approve", id] => Ok(Self::Inbox(InboxCommand::Approve {
                request_id: (*id).to_owned(),
            })),
            ["inbox", "deny", id, reason @ ..] => Ok(Self::Inbox(InboxCommand::Deny {
                request_id: (*id).to_owned(),
                reason: reason.join(" "),
            })),
            _ => Err(USAGE.to_owned()),
        }
    }
}
