//! The one table of codes and phrases by which an error's class is known where its HTTP status does
//! not tell, each with its evidence.

use raf_core::ErrorKind;

use crate::error::envelope::WireError;

/// What a row looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorSign {
    /// One of the error's codes, types or statuses, whatever its case.
    Code(&'static str),
    /// Words of the message, all of them, in lower case.
    Words(&'static [&'static str]),
}

use ErrorSign::{Code, Words};

/// A sign, the class that it stands for, and the evidence.
pub type SignRow = (ErrorSign, ErrorKind, &'static str);

/// Sign, class, evidence. The first row that fits decides: words that overrule a code come first,
/// then codes that tell exactly, then words alone. Codes that tell little (`invalid_request_error`,
/// `api_error`, `server_error`) are left to the HTTP status.
const SIGNS: &[SignRow] = &[
    // Words that overrule a code.
    (
        Words(&["request too large", "tokens per min"]),
        ErrorKind::ContextLength,
        "OpenAI vanna-ai/vanna-flask#11, Groq: 413 and 429 that can never succeed, code rate_limit_exceeded",
    ),
    (
        Words(&["quota", "per minute"]),
        ErrorKind::RateLimit,
        "Scaleway LibreChat-AI/agents#357: INSUFFICIENT QUOTA is per minute",
    ),
    (
        Words(&["per minute rate limit"]),
        ErrorKind::RateLimit,
        "Databricks REQUEST_LIMIT_EXCEEDED n8n-io/n8n#38642",
    ),
    // Codes that tell exactly.
    (
        Code("context_length_exceeded"),
        ErrorKind::ContextLength,
        "OpenAI rahul2002m/ChatPDF#6",
    ),
    (
        Code("exceed_context_size_error"),
        ErrorKind::ContextLength,
        "llama.cpp server, rig cassette error_matrix/context_overflow_streaming",
    ),
    (
        Code("insufficient_quota"),
        ErrorKind::Quota,
        "OpenAI langchain-ai/langchainjs#1929",
    ),
    (
        Code("billing_hard_limit_reached"),
        ErrorKind::Quota,
        "OpenAI error codes",
    ),
    (
        Code("billing_not_active"),
        ErrorKind::Quota,
        "OpenAI error codes",
    ),
    (
        Code("insufficient_credits"),
        ErrorKind::Quota,
        "OpenRouter errors and debugging",
    ),
    (
        Code("1008"),
        ErrorKind::Quota,
        "MiniMax error codes: insufficient balance",
    ),
    (
        Code("content_filter"),
        ErrorKind::ContentFilter,
        "Azure langroid/langroid#659",
    ),
    (
        Code("responsibleaipolicyviolation"),
        ErrorKind::ContentFilter,
        "Azure innererror.code, langroid/langroid#659",
    ),
    (
        Code("content_policy_violation"),
        ErrorKind::ContentFilter,
        "OpenAI error codes",
    ),
    (
        Code("data_inspection_failed"),
        ErrorKind::ContentFilter,
        "DashScope error codes",
    ),
    (
        Code("datainspectionfailed"),
        ErrorKind::ContentFilter,
        "DashScope error codes",
    ),
    (
        Code("1026"),
        ErrorKind::ContentFilter,
        "MiniMax error codes: sensitive input",
    ),
    (
        Code("1027"),
        ErrorKind::ContentFilter,
        "MiniMax error codes: sensitive output",
    ),
    (
        Code("1301"),
        ErrorKind::ContentFilter,
        "Zhipu GLM error codes: unsafe content",
    ),
    (
        Code("invalid_api_key"),
        ErrorKind::Authentication,
        "OpenAI error codes",
    ),
    (
        Code("api_key_invalid"),
        ErrorKind::Authentication,
        "Gemini ErrorInfo.reason, cequence-io/openai-scala-client#109",
    ),
    (
        Code("authentication_error"),
        ErrorKind::Authentication,
        "Anthropic errors",
    ),
    (
        Code("unauthenticated"),
        ErrorKind::Authentication,
        "Google RPC status",
    ),
    (
        Code("1004"),
        ErrorKind::Authentication,
        "MiniMax error codes",
    ),
    (
        Code("permission_error"),
        ErrorKind::Permission,
        "Anthropic errors",
    ),
    (
        Code("permission_denied"),
        ErrorKind::Permission,
        "Google RPC status",
    ),
    (
        Code("model_not_found"),
        ErrorKind::NotFound,
        "OpenAI error codes",
    ),
    (
        Code("deploymentnotfound"),
        ErrorKind::NotFound,
        "Azure chatboxai/chatbox#646",
    ),
    (
        Code("not_found_error"),
        ErrorKind::NotFound,
        "Anthropic errors",
    ),
    (
        Code("not_found"),
        ErrorKind::NotFound,
        "Google RPC status, rig cassette gemini/error_envelope",
    ),
    (
        Code("tool_use_failed"),
        ErrorKind::ToolUseFailed,
        "Groq langchain4j/langchain4j#2585",
    ),
    (
        Code("rate_limit_exceeded"),
        ErrorKind::RateLimit,
        "OpenAI, Groq",
    ),
    (
        Code("rate_limit_error"),
        ErrorKind::RateLimit,
        "Anthropic errors",
    ),
    (
        Code("request_limit_exceeded"),
        ErrorKind::RateLimit,
        "Databricks n8n-io/n8n#38642",
    ),
    (
        Code("resource_exhausted"),
        ErrorKind::RateLimit,
        "Gemini n4ze3m/page-assist#406",
    ),
    (
        Code("throttlingexception"),
        ErrorKind::RateLimit,
        "AWS Bedrock API errors",
    ),
    (
        Code("limit_requests"),
        ErrorKind::RateLimit,
        "DashScope error codes",
    ),
    (Code("1002"), ErrorKind::RateLimit, "MiniMax error codes"),
    (
        Code("overloaded_error"),
        ErrorKind::Overloaded,
        "Anthropic agentscope-ai/QwenPaw#1891",
    ),
    (
        Code("unavailable"),
        ErrorKind::Overloaded,
        "Google RPC status, voideditor/void#557",
    ),
    (
        Code("unavailable_error"),
        ErrorKind::Overloaded,
        "llama.cpp server mostlygeek/llama-swap#146",
    ),
    (
        Code("service_unavailable"),
        ErrorKind::Overloaded,
        "Groq error codes",
    ),
    (
        Code("engine_overloaded_error"),
        ErrorKind::Overloaded,
        "Moonshot error codes",
    ),
    (
        Code("deadline_exceeded"),
        ErrorKind::Timeout,
        "Google RPC status",
    ),
    (Code("timeout"), ErrorKind::Timeout, "LiteLLM, gateways"),
    // Words alone.
    (
        Words(&["maximum context length"]),
        ErrorKind::ContextLength,
        "vLLM earendil-works/pi#5929",
    ),
    (
        Words(&["context length", "exceed"]),
        ErrorKind::ContextLength,
        "LM Studio, SGLang",
    ),
    (
        Words(&["context window", "exceed"]),
        ErrorKind::ContextLength,
        "OpenAI Responses, LiteLLM",
    ),
    (
        Words(&["available context size"]),
        ErrorKind::ContextLength,
        "llama.cpp server",
    ),
    (
        Words(&["range of input length should be"]),
        ErrorKind::ContextLength,
        "DashScope anomalyco/opencode#45834",
    ),
    (
        Words(&["prompt is too long"]),
        ErrorKind::ContextLength,
        "Anthropic-backed gateways",
    ),
    (
        Words(&["input is too long"]),
        ErrorKind::ContextLength,
        "AWS Bedrock",
    ),
    (
        Words(&["input token count", "exceeds the maximum"]),
        ErrorKind::ContextLength,
        "Gemini",
    ),
    (
        Words(&["maximum prompt length"]),
        ErrorKind::ContextLength,
        "xAI",
    ),
    (
        Words(&["reduce the length of the messages"]),
        ErrorKind::ContextLength,
        "OpenAI, Groq",
    ),
    (
        Words(&["credit balance"]),
        ErrorKind::Quota,
        "Anthropic router-for-me/CLIProxyAPI#3859",
    ),
    (
        Words(&["insufficient balance"]),
        ErrorKind::Quota,
        "DeepSeek 402, MiniMax MiniMax-AI/MiniMax-M2#62",
    ),
    (
        Words(&["insufficient credits"]),
        ErrorKind::Quota,
        "OpenRouter 402",
    ),
    (
        Words(&["incorrect api key"]),
        ErrorKind::Authentication,
        "OpenAI; xAI sends it with 400 (rig cassette xai/response_identity)",
    ),
    (
        Words(&["invalid api key"]),
        ErrorKind::Authentication,
        "Mistral (rig cassette mistral/response_identity_edge)",
    ),
    (
        Words(&["api key not valid"]),
        ErrorKind::Authentication,
        "Gemini sends it with 400 (cequence-io/openai-scala-client#109)",
    ),
    (
        Words(&["model not found"]),
        ErrorKind::NotFound,
        "xAI sends it with 400 (rig cassette xai/response_identity)",
    ),
    (
        Words(&["input was flagged"]),
        ErrorKind::ContentFilter,
        "OpenRouter 403, errors and debugging",
    ),
    (
        Words(&["content management policy"]),
        ErrorKind::ContentFilter,
        "Azure OpenAI content filtering",
    ),
    (
        Words(&["requires --jinja"]),
        ErrorKind::InvalidRequest,
        "llama.cpp server sends it with 500 (rig cassette llamacpp/error_matrix/tools_without_jinja)",
    ),
    (
        Words(&["failed to parse tool call arguments"]),
        ErrorKind::InvalidRequest,
        "llama.cpp server sends it with 500 (ggml-org/llama.cpp#22948)",
    ),
    (
        Words(&["loading model"]),
        ErrorKind::Overloaded,
        "llama.cpp server mostlygeek/llama-swap#146",
    ),
    (
        Words(&["is overloaded"]),
        ErrorKind::Overloaded,
        "Gemini voideditor/void#557",
    ),
    (
        Words(&["too many requests"]),
        ErrorKind::RateLimit,
        "nginx limit_req, i-am-bee/bee-observe#16",
    ),
    (
        Words(&["rate limit"]),
        ErrorKind::RateLimit,
        "OpenRouter mid-stream errors",
    ),
];

/// The class that a table knows: the endpoint's own rows come before those for all.
pub(super) fn class(error: &WireError, own: &[SignRow]) -> Option<ErrorKind> {
    let message = error.message.to_ascii_lowercase();
    own.iter()
        .chain(SIGNS)
        .find(|(sign, ..)| match sign {
            Code(code) => error.codes.iter().any(|of| of.eq_ignore_ascii_case(code)),
            // A code may hold the words: Scaleway's error is a text in capitals.
            Words(words) => words.iter().all(|word| message.contains(word)),
        })
        .map(|(_, kind, _)| *kind)
}

/// The class of an HTTP status.
pub(super) fn class_of_status(status: u16) -> ErrorKind {
    match status {
        401 | 407 => ErrorKind::Authentication,
        402 => ErrorKind::Quota,
        403 => ErrorKind::Permission,
        404 | 410 => ErrorKind::NotFound,
        // Of proxies before a silent server (anthropics/claude-code#6784, earendil-works/pi#6239).
        408 | 504 | 522 | 524 => ErrorKind::Timeout,
        413 => ErrorKind::PayloadTooLarge,
        // Failed dependency and too early: Databricks, Bedrock gateways.
        424 | 425 => ErrorKind::Server,
        429 => ErrorKind::RateLimit,
        503 | 529 => ErrorKind::Overloaded,
        400..=499 => ErrorKind::InvalidRequest,
        500..=599 => ErrorKind::Server,
        _ => ErrorKind::Protocol,
    }
}
