//! Token counts, under the names that servers have for them.

use raf_core::Usage;

use raf_wire::Json;

/// Reads a usage object; nothing if it counts nothing.
///
/// Input and output are `prompt_tokens` and `completion_tokens`, or `input_tokens` and
/// `output_tokens` (gateways bridging the Responses API). A total that is missing is their sum.
/// Cached tokens: `prompt_tokens_details.cached_tokens` (OpenAI), `prompt_cache_hit_tokens`
/// (DeepSeek), `cached_tokens` (Moonshot). Reasoning: `completion_tokens_details.reasoning_tokens`,
/// or `reasoning_tokens` beside the others (`SGLang`). Other whole counts are kept as extras.
pub(crate) fn read(value: &Json) -> Option<Usage> {
    let Json::Object(members) = value else {
        return None;
    };
    let count = |names: &[&str]| names.iter().find_map(|name| value.get(name)?.as_count());
    let detail = |objects: &[&str], name: &str| {
        objects
            .iter()
            .find_map(|object| value.get(object)?.get(name)?.as_count())
    };
    let mut usage = Usage::default();
    usage.input_tokens = count(&["prompt_tokens", "input_tokens"]);
    usage.output_tokens = count(&["completion_tokens", "output_tokens"]);
    usage.total_tokens = count(&["total_tokens"]).or_else(|| {
        let (input, output) = (usage.input_tokens?, usage.output_tokens?);
        Some(input.saturating_add(output))
    });
    usage.cached_tokens = detail(
        &["prompt_tokens_details", "input_tokens_details"],
        "cached_tokens",
    )
    .or_else(|| count(&["prompt_cache_hit_tokens", "cached_tokens"]));
    usage.reasoning_tokens = detail(
        &["completion_tokens_details", "output_tokens_details"],
        "reasoning_tokens",
    )
    .or_else(|| count(&["reasoning_tokens"]));
    for (name, value) in members {
        if let (false, Some(count)) = (is_read(name), value.as_count()) {
            usage.extra.insert(name.clone(), count);
        }
    }
    (!usage.is_empty()).then_some(usage)
}

fn is_read(name: &str) -> bool {
    matches!(
        name,
        "prompt_tokens"
            | "input_tokens"
            | "completion_tokens"
            | "output_tokens"
            | "total_tokens"
            | "prompt_cache_hit_tokens"
            | "cached_tokens"
            | "reasoning_tokens"
    )
}
