//! Answers in a type: read, handed back when they do not fit, beside tool calls.

use raf_core::{ChatClientRunOptions, ErrorKind, FinishReason, MessageSource, ResponseFormat};
use raf_testing::{Reply, ScriptedChatClient};
use raf_tools::{TypedChatClientExt, TypedOutput, schemars};
use serde::Deserialize;

#[derive(Debug, PartialEq, Deserialize, schemars::JsonSchema)]
struct Weather {
    city: String,
    celsius: i32,
}

#[derive(Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mood {
    Good,
    Bad,
}

const FITS: &str = r#"{"city": "Bern", "celsius": 20}"#;

#[test]
fn a_type_that_is_no_object_is_wrapped_and_a_fence_is_taken_off() {
    let list = TypedOutput::<Vec<Weather>>::new().unwrap();
    let answer = format!("```json\n{{\"value\": [{FITS}]}}\n```");
    assert_eq!(list.read(&answer).unwrap()[0].city, "Bern");
    let mood = TypedOutput::<Mood>::new().unwrap();
    assert_eq!(mood.read(r#"{"value": "good"}"#), Ok(Mood::Good));
    assert!(mood.read(r#"{"value": "so-so"}"#).is_err());
    assert!(mood.read("good").unwrap_err().contains("no JSON"));
    assert_eq!(
        TypedOutput::<u64>::new()
            .unwrap()
            .read(r#"{"value": 18446744073709551615}"#),
        Ok(u64::MAX)
    );
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_handed_back_with_what_is_wrong() {
    let model = ScriptedChatClient::new([
        Reply::text(r#"{"city": "Bern", "celsius": "warm"}"#).usage(10, 1),
        Reply::text(FITS).usage(20, 2),
    ]);
    let options = ChatClientRunOptions::new();
    let answer = model
        .get_typed::<Weather>(&["Bern?".into()], options)
        .await
        .unwrap();
    assert_eq!(
        answer.value,
        Weather {
            city: "Bern".into(),
            celsius: 20
        }
    );
    assert_eq!(answer.response.usage.input_tokens, Some(30));
    assert_eq!(answer.response.messages.len(), 3);
    assert_eq!(
        answer.response.messages[1].source(),
        MessageSource::Framework
    );
    let requests = model.requests();
    assert!(
        requests[1].user_text().contains("/celsius"),
        "{}",
        requests[1].user_text()
    );
    for request in &requests {
        let format = request.options.response_format.as_ref();
        let Some(ResponseFormat::JsonSchema(format)) = format else {
            panic!("no schema")
        };
        assert_eq!(format.name, "Weather");
        assert!(format.schema.get().contains("celsius"));
    }
}

#[tokio::test]
async fn it_is_handed_back_twice_at_most_and_nothing_is_lost() {
    let model = ScriptedChatClient::always(Reply::text("warm"));
    let options = ChatClientRunOptions::new();
    let error = model
        .get_typed::<Weather>(&["Bern?".into()], options)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert_eq!(model.request_count(), 3);
    assert_eq!(error.leg().unwrap().messages.len(), 5);
}

#[tokio::test]
async fn a_leg_that_ends_without_an_answer_is_told_from_a_wrong_one() {
    let model = ScriptedChatClient::new([Reply::text("{").finish(FinishReason::Length)]);
    let options = ChatClientRunOptions::new();
    let error = model
        .get_typed::<Weather>(&["Bern?".into()], options)
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.code()),
        (ErrorKind::Misuse, Some("no_answer"))
    );
    assert_eq!(error.leg().unwrap().messages.len(), 1);
}
