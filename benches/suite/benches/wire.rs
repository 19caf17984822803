//! Reading replies: events, calls from their pieces, schemas.

use divan::{Bencher, counter::BytesCount};
use raf_core::ToolDeclaration;
use raf_tools::CompiledSchema;
use serde_json::json;

fn main() {
    divan::main();
}

fn body(events: usize) -> Vec<u8> {
    let event = concat!(
        r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","#,
        r#""choices":[{"index":0,"delta":{"content":"some words "},"finish_reason":null}]}"#,
        "\n\n"
    );
    event.repeat(events).into_bytes()
}

#[divan::bench(args = [64, 1_460, 16_384])]
fn decoder_by_size_of_reads(bencher: Bencher<'_, '_>, read: usize) {
    let body = body(1_000);
    bencher
        .counter(BytesCount::new(body.len()))
        .bench(|| raf_benches::events(&body, read));
}

#[divan::bench(args = [10, 100, 1_000, 10_000])]
fn calls_from_fragments(fragments: u32) {
    raf_benches::arguments(fragments);
}

#[divan::bench(args = [1, 10, 100])]
fn schema_validation(bencher: Bencher<'_, '_>, items: usize) {
    let declaration = ToolDeclaration::new("f", "").with_parameters(&json!({
        "type": "object",
        "properties": {"items": {"type": "array", "items": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "count": {"type": "integer"}},
            "required": ["name", "count"],
        }}},
        "required": ["items"],
    }));
    let schema = CompiledSchema::compile(&declaration).expect("a schema");
    let arguments = json!({"items": vec![json!({"name": "a", "count": 1}); items]});
    bencher.bench(|| raf_benches::validate(&schema, &arguments));
}

#[divan::bench]
fn schema_compilation() {
    raf_benches::lookup_tools(1);
}
