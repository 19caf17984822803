//! Each kind, called whole and as a stream, runs its body once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::{StreamExt, TryStreamExt, stream};
use raf_core::{Content, MediaContent, ToolDeclaration, TrustLabel};
use serde_json::json;

use super::{KindTool, KindToolBuilder, call_stream, call_whole};
use crate::{ITool, ToolArguments, ToolContext, ToolError, ToolLimits};

fn declaration() -> ToolDeclaration {
    ToolDeclaration::new("t", "")
}

fn context() -> ToolContext {
    ToolContext::detached("c1")
}

fn image() -> Content {
    Content::Image(MediaContent::base64("AA==", "image/png"))
}

async fn check(
    make: impl Fn(Arc<AtomicUsize>) -> KindToolBuilder,
    whole: &[Content],
    pieces: usize,
) {
    let runs = Arc::new(AtomicUsize::new(0));
    let tool = make(Arc::clone(&runs)).build();
    let parts = call_whole(&tool, context(), ToolArguments::new())
        .await
        .unwrap();
    assert_eq!(parts, whole);
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    let streamed: Vec<Content> = call_stream(&tool, context(), ToolArguments::new())
        .await
        .try_collect()
        .await
        .unwrap();
    assert_eq!(streamed.len(), pieces);
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn te03_every_kind_converts_and_runs_once() {
    let text = [Content::text("xyz")];
    check(
        |runs| {
            KindTool::invokable(declaration(), move |_, _| {
                runs.fetch_add(1, Ordering::SeqCst);
                async { Ok(json!("xyz")) }
            })
        },
        &text,
        1,
    )
    .await;
    check(
        |runs| {
            KindTool::streamable(declaration(), move |_, _| {
                runs.fetch_add(1, Ordering::SeqCst);
                async {
                    Ok(stream::iter(
                        ["x", "y", "z"].map(|piece| Ok(piece.to_owned())),
                    ))
                }
            })
        },
        &text,
        3,
    )
    .await;
    let parts = [Content::text("a"), image()];
    check(
        |runs| {
            KindTool::enhanced_invokable(declaration(), move |_, _| {
                runs.fetch_add(1, Ordering::SeqCst);
                async { Ok(vec![Content::text("a"), image()]) }
            })
        },
        &parts,
        2,
    )
    .await;
    let two_images = [Content::text("ab"), image(), image()];
    check(
        |runs| {
            KindTool::enhanced_streamable(declaration(), move |_, _| {
                runs.fetch_add(1, Ordering::SeqCst);
                let pieces = [Content::text("a"), Content::text("b"), image(), image()];
                async { Ok(stream::iter(pieces.map(Ok))) }
            })
        },
        &two_images,
        4,
    )
    .await;
}

#[tokio::test]
async fn te03_a_stream_without_pieces_is_an_empty_result() {
    check(
        |runs| {
            KindTool::streamable(declaration(), move |_, _| {
                runs.fetch_add(1, Ordering::SeqCst);
                async { Ok(stream::empty()) }
            })
        },
        &[],
        0,
    )
    .await;
}

#[tokio::test]
async fn te04_enhanced_wins_and_the_other_is_never_run() {
    let plain = Arc::new(AtomicUsize::new(0));
    let runs = Arc::clone(&plain);
    let tool = KindTool::invokable(declaration(), move |_, _| {
        runs.fetch_add(1, Ordering::SeqCst);
        async { Ok(json!("I")) }
    })
    .or(KindTool::enhanced_streamable(declaration(), |_, _| async {
        Ok(stream::iter(
            ["E1", "E2"].map(|piece| Ok(Content::text(piece))),
        ))
    }))
    .build();
    let parts = call_whole(&tool, context(), ToolArguments::new())
        .await
        .unwrap();
    assert_eq!(parts, [Content::text("E1E2")]);
    assert_eq!(plain.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn te23_an_error_in_the_middle_of_a_stream_discards_what_came_before() {
    let tool = KindTool::streamable(declaration(), |_, _| async {
        let pieces = [Ok("p".to_owned()), Err(ToolError::tell_model("broken"))];
        Ok(stream::iter(pieces))
    })
    .build();
    let error = call_whole(&tool, context(), ToolArguments::new())
        .await
        .unwrap_err();
    assert_eq!(error.message(), "broken");
    let pieces: Vec<_> = call_stream(&tool, context(), ToolArguments::new())
        .await
        .collect()
        .await;
    assert!(pieces[0].is_ok() && pieces[1].is_err());
}

#[test]
fn settings_are_those_of_the_tool() {
    let limits = ToolLimits::new().with_idempotent(true);
    let tool = KindTool::invokable(declaration(), |_, _| async { Ok(json!(1)) })
        .with_approval()
        .with_limits(limits.clone())
        .with_trust(TrustLabel::Trusted)
        .build();
    assert!(tool.requires_approval());
    assert_eq!(tool.limits(), limits);
    assert_eq!(tool.trust(), TrustLabel::Trusted);
}
