//! The words for why a reply ended, as servers spell them: a table, each row with its evidence.

use raf_core::FinishReason;

/// What a finish reason says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Stop,
    Length,
    ContentFilter,
    /// The reply failed, and says so where others say why they ended.
    Failed,
    Other,
}

/// Lower-case word, meaning. Evidence: O = OpenAI reference; others as noted.
const WORDS: &[(&str, Ending)] = &[
    ("stop", Ending::Stop),                           // O
    ("tool_calls", Ending::Stop),                     // O
    ("function_call", Ending::Stop),                  // O, legacy
    ("length", Ending::Length),                       // O
    ("content_filter", Ending::ContentFilter),        // O
    ("tool_use", Ending::Stop),                       // Anthropic-backed gateways
    ("end_turn", Ending::Stop),                       // Anthropic-backed gateways
    ("stop_sequence", Ending::Stop),                  // Anthropic-backed gateways
    ("refusal", Ending::ContentFilter),               // Anthropic-backed gateways
    ("max_tokens", Ending::Length),                   // Anthropic- and Gemini-backed gateways
    ("eos", Ending::Stop),                            // Together, TGI-derived servers
    ("eos_token", Ending::Stop),                      // TGI
    ("complete", Ending::Stop),                       // Cohere-backed gateways
    ("model_length", Ending::Length), // Mistral (rig, internal/openai_chat_completions_compatible.rs)
    ("max_output_tokens", Ending::Length), // gateways bridging the Responses API
    ("sensitive", Ending::ContentFilter), // Zhipu GLM (BerriAI/litellm#24373)
    ("safety", Ending::ContentFilter), // Gemini-backed gateways
    ("recitation", Ending::ContentFilter), // Gemini-backed gateways
    ("blocklist", Ending::ContentFilter), // Gemini-backed gateways
    ("prohibited_content", Ending::ContentFilter), // Gemini-backed gateways
    ("spii", Ending::ContentFilter),  // Gemini-backed gateways
    ("error", Ending::Failed),        // OpenRouter, errors and debugging
    ("network_error", Ending::Failed), // Zhipu GLM (BerriAI/litellm#24373)
    ("insufficient_system_resource", Ending::Failed), // DeepSeek API reference
];

/// What a server's word means, whatever its case.
pub(crate) fn ending(word: &str) -> Ending {
    let word = word.trim().to_ascii_lowercase();
    WORDS
        .iter()
        .find(|(known, _)| *known == word)
        .map_or(Ending::Other, |(_, ending)| ending.clone())
}

/// The reason that counts: of a reply that was cut the cut, of one with calls the calls, whatever
/// word the server has for it.
pub(crate) fn reason(ending: &Ending, word: &str, has_calls: bool) -> FinishReason {
    match ending {
        Ending::Length => FinishReason::Length,
        Ending::ContentFilter => FinishReason::ContentFilter,
        _ if has_calls => FinishReason::ToolCalls,
        Ending::Other => FinishReason::Other(word.trim().to_owned()),
        Ending::Stop | Ending::Failed => FinishReason::Stop,
    }
}
