//! What a run writes, counted in bytes: a round costs the same however long the run is already.

use std::sync::Arc;
use std::time::Duration;

use raf_core::{ChatClientExt, ChatMessage, JournalKey, RunId};
use raf_framework::{FunctionInvokingChatClient, FunctionInvokingOptions};
use raf_testing::ScriptedTool;

use crate::work::{self, LEASE};
use raf_tests::backend::Backend;

const ROUNDS: u32 = 200;

pub(crate) async fn of_a_round_stay_the_same(backend: &Backend) {
    let store = backend.open(Duration::ZERO, LEASE).await;
    // Results differ, so that nobody takes the run for one that goes round in circles.
    let pay = Arc::new(ScriptedTool::new("pay").always(raf_testing::Behaviour::echo()));
    let options = FunctionInvokingOptions::new()
        .with_max_rounds(ROUNDS + 1)
        .with_max_calls(None);
    let model = Arc::new(work::model(ROUNDS as usize));
    let client = FunctionInvokingChatClient::with_options(model, work::tools(&pay), options);
    let run_id = RunId::from("long");
    let response = client
        .get_response(&[ChatMessage::user("Pay.")], work::options(&store, &run_id))
        .await
        .expect("an answer");
    assert_eq!(response.text(), work::ANSWER);

    let entries = store.journal(&JournalKey::root(run_id.clone()), 0).await;
    let mut bytes = vec![0; ROUNDS as usize];
    for entry in entries.expect("the store") {
        let json = entry.to_json().expect("JSON");
        let round = entry.step.strip_prefix("round/");
        let round = round.and_then(|rest| rest.split('/').next()?.parse::<usize>().ok());
        if let Some(bytes) = round.and_then(|round| bytes.get_mut(round)) {
            *bytes += json.len();
        }
    }
    let (early, late) = (bytes[10], bytes[ROUNDS as usize - 10]);
    assert!(early > 0, "each round is in the journal: {bytes:?}");
    // Numbers have more digits by then.
    assert!(
        late < early + early / 10,
        "round 10: {early} bytes, round 190: {late}"
    );
    let record = store
        .load(&run_id)
        .await
        .expect("the store")
        .expect("the run");
    let record = record.to_json().expect("JSON").len();
    assert!(
        record < 20 * early + 200 * ROUNDS as usize,
        "the record has {record} bytes"
    );
}
