//! The inbox of whoever decides: a process of its own, next to the store. It starts nothing: a server acts on
//! the answer, at once or when there is one again.

use std::error::Error;

use raf_core::{AnswerOutcome, ToolApprovalResponse};

use crate::command::InboxCommand;
use crate::settings::Settings;
use crate::views::ApprovalView;

pub(crate) async fn run(command: InboxCommand, settings: &Settings) -> Result<(), Box<dyn Error>> {
    let stores = settings.open().await?;
    let answer = match command {
        InboxCommand::List => {
            let waiting = ApprovalView::all(&stores).await?;
            for approval in &waiting {
                println!("{approval}");
            }
            println!("{} call(s) wait.", waiting.len());
            return Ok(());
        }
        InboxCommand::Approve { request_id } => ToolApprovalResponse::approve(request_id),
        InboxCommand::Deny { request_id, reason } => ToolApprovalResponse::deny(request_id, reason),
    };
    match stores.runs.answer(&answer).await? {
        AnswerOutcome::Kept => {
            println!("The answer is kept: a server acts on it.");
            Ok(())
        }
        AnswerOutcome::Refused(reason) => {
            Err(format!("that answer does not fit ({reason}): nothing runs for it").into())
        }
    }
}
