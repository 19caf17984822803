//! The doors of the service.
//!
//! | request | what |
//! |---|---|
//! | `POST /runs` `{"message": …, "session": …}` | begins a run; 201 with its id when it is in the store |
//! | `GET /runs/{id}` | where it stands, its conversation, what waits |
//! | `GET /runs/{id}/events` | the same as server-sent events, then what follows |
//! | `GET /approvals` | all that waits for a person |
//! | `POST /approvals/{id}` `{"decision": "approve"}` or `{"decision": "deny", "reason": …}` | an answer |

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use raf_core::{AnswerOutcome, RunId, ToolApprovalResponse};
use serde::Deserialize;
use serde_json::json;

use crate::events;
use crate::failure::Failure;
use crate::server::Service;
use crate::views::{ApprovalView, RunView};

pub(crate) fn router(service: Service) -> Router {
    Router::new()
        .route("/runs", post(begin))
        .route("/runs/{id}", get(run))
        .route("/runs/{id}/events", get(watch))
        .route("/approvals", get(approvals))
        .route("/approvals/{id}", post(answer))
        .with_state(service)
}

#[derive(Deserialize)]
struct NewRun {
    message: String,
    /// The conversation that it goes on with; none: a new one.
    session: Option<String>,
}

async fn begin(
    State(service): State<Service>,
    Json(new): Json<NewRun>,
) -> Result<Response, Failure> {
    let session = new
        .session
        .unwrap_or_else(|| RunId::random().as_str().to_owned());
    let begun = service.player.begin(&session, new.message).await?;
    let run_id = begun.run_id().clone();
    // A server that is about to end takes no more: the next one finds the run in the store.
    let _ = service.begun.send(begun).await;
    let told = json!({
        "run_id": run_id.as_str(),
        "session_id": session,
        "events": format!("/runs/{run_id}/events"),
    });
    Ok((StatusCode::CREATED, Json(told)).into_response())
}

async fn run(
    State(service): State<Service>,
    Path(id): Path<String>,
) -> Result<Json<RunView>, Failure> {
    let view = RunView::load(&service.stores, &RunId::from(id.as_str())).await?;
    view.map(Json).ok_or(Failure::NoSuchRun)
}

async fn watch(
    State(service): State<Service>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let run_id = RunId::from(id.as_str());
    if service.stores.runs.load(&run_id).await?.is_none() {
        return Err(Failure::NoSuchRun);
    }
    // A browser sends it by itself when it connects again.
    let seen = headers.get("last-event-id");
    let seen = seen.and_then(|id| id.to_str().ok()?.parse().ok());
    let events = events::of_run(service, run_id, seen.unwrap_or(0));
    Ok(Sse::new(events)
        .keep_alive(KeepAlive::default())
        .into_response())
}

async fn approvals(State(service): State<Service>) -> Result<Json<Vec<ApprovalView>>, Failure> {
    Ok(Json(ApprovalView::all(&service.stores).await?))
}

#[derive(Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
enum Answer {
    Approve,
    Deny {
        #[serde(default)]
        reason: String,
    },
}

async fn answer(
    State(service): State<Service>,
    Path(id): Path<String>,
    Json(answer): Json<Answer>,
) -> Result<StatusCode, Failure> {
    let answer = match answer {
        Answer::Approve => ToolApprovalResponse::approve(id),
        Answer::Deny { reason } => ToolApprovalResponse::deny(id, reason),
    };
    // Kept, and no more: a worker, of this server or of another one, acts on it.
    match service.stores.runs.answer(&answer).await? {
        AnswerOutcome::Kept => Ok(StatusCode::ACCEPTED),
        AnswerOutcome::Refused(reason) => Err(Failure::Refused(reason)),
    }
}
