//! The approval layer holds the laws of a layer, with a handler that decides nothing and with one
//! that says yes to everything.

use raf_core::ApprovalRequest;
use raf_framework::{ApprovalAnswer, ApprovingChatClient};
use raf_testing::decorator_contract;

decorator_contract!(
    approving_nothing: ApprovingChatClient,
    |inner| ApprovingChatClient::new(inner, async |_: ApprovalRequest| None::<ApprovalAnswer>)
);

decorator_contract!(
    approving_all_unseen: ApprovingChatClient,
    |inner| ApprovingChatClient::new(inner, async |_: ApprovalRequest| ApprovalAnswer::approve())
        .with_settled_requests_hidden(true)
);
