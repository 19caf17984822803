//! Laws of what is kept: nothing unknown is lost, nothing later is touched, numbers are exact.

use raf_core::{JournalEntry, JournalKind, WriteOutcome};
use serde_json::{Value, json};

use super::{IRunStoreFixture, in_flight, waiting};

pub(super) async fn unknown_members_survive(fixture: &dyn IRunStoreFixture) {
    let store = fixture.open().await;
    let (record, _) = waiting("run");
    let mut json: Value = serde_json::from_str(&record.to_json().unwrap()).unwrap();
    json["new"] = json!({"deep": [1, {"x": null}]});
    json["calls"][0]["new"] = json!("call");
    json["calls"][0]["status"]["request"]["new"] = json!("request");
    let record = raf_core::RunRecord::from_json(&json.to_string()).unwrap();
    let _ = store.create(&record, None).await.unwrap();
    let mut kept = store.load(&record.run_id).await.unwrap().unwrap();
    kept.worked_ms = 7;
    assert_eq!(store.save(&kept).await.unwrap(), WriteOutcome::Written(2));
    let kept = store.load(&record.run_id).await.unwrap().unwrap();
    let again: Value = serde_json::from_str(&kept.to_json().unwrap()).unwrap();
    assert_eq!(again["new"], json["new"]);
    assert_eq!(again["calls"][0]["new"], json!("call"));
    assert_eq!(
        again["calls"][0]["status"]["request"]["new"],
        json!("request")
    );
    let (_, claim, key) = in_flight(&*store, "other").await;
    let entry = r#"{"format":1,"leg":0,"step":"s","kind":"started","value":1,"new":[true]}"#;
    let entry = JournalEntry::from_json(entry).unwrap();
    let entries = [entry.clone()];
    let _ = store.append(&key, &claim, 1, &entries, None).await.unwrap();
    let kept = store.journal(&key, 1).await.unwrap();
    assert_eq!(kept, [entry]);
    assert_eq!(kept[0].unknown["new"], json!([true]));
}

pub(super) async fn a_later_format_is_refused_and_left_alone(fixture: &dyn IRunStoreFixture) {
    let store = fixture.open().await;
    let (record, request_id) = waiting("run");
    let _ = store.create(&record, None).await.unwrap();
    let later = r#"{"format":999,"run_id":"run","what":"nobody knows yet"}"#;
    assert!(
        fixture.replace_record(&record.run_id, later, 999).await,
        "the fixture replaces nothing: skip this law, with the reason"
    );
    let refusal = store.load(&record.run_id).await.unwrap_err();
    assert_eq!(refusal.kind(), raf_core::ErrorKind::Store);
    assert_eq!(refusal.code(), Some("later_format"));
    let mut mine = record.clone();
    mine.revision = 1;
    assert_eq!(
        store.save(&mine).await.unwrap_err().code(),
        Some("later_format")
    );
    let claim = raf_core::RunClaim::new();
    let claimed = store.claim(&record.run_id, &claim).await;
    assert_eq!(claimed.unwrap_err().code(), Some("later_format"));
    let answer = raf_core::ToolApprovalResponse::approve(request_id);
    assert_eq!(
        store.answer(&answer).await.unwrap_err().code(),
        Some("later_format")
    );
    // Others are none the worse for it.
    let (other, _) = waiting("other");
    let _ = store.create(&other, None).await.unwrap();
    assert!(store.load(&other.run_id).await.unwrap().is_some());
    fixture.pass(super::LIFETIME * 5);
    let _ = store.expire().await.unwrap();
    assert_eq!(
        store.load(&record.run_id).await.unwrap_err().code(),
        Some("later_format")
    );
}

pub(super) async fn numbers_and_texts_are_exact(fixture: &dyn IRunStoreFixture) {
    let store = fixture.open().await;
    let (_, claim, key) = in_flight(&*store, "run").await;
    let values = [
        json!(u64::MAX),
        json!(i64::MIN),
        json!(9_007_199_254_740_993_u64),
        json!(0.1),
        json!(1e300),
        json!("\u{0} \u{7f} \u{2028} 🦀 \" \\ \n"),
        json!({"z": 1, "a": {"\u{0}": []}, "": null}),
        Value::Null,
    ];
    let entries: Vec<JournalEntry> = values
        .iter()
        .map(|value| JournalEntry::new(3, "s", JournalKind::Settled, value.clone()))
        .collect();
    let _ = store.append(&key, &claim, 1, &entries, None).await.unwrap();
    assert_eq!(store.journal(&key, 1).await.unwrap(), entries);
    let mut record = store.load(&key.root).await.unwrap().unwrap();
    record.counters = Value::Array(values.to_vec());
    record.worked_ms = u64::MAX;
    let _ = store.save(&record).await.unwrap();
    let kept = store.load(&key.root).await.unwrap().unwrap();
    assert_eq!((kept.counters, kept.worked_ms), (record.counters, u64::MAX));
}
