//! Which dialect a base URL speaks, where the host or port leaves no doubt.

use raf_wire::Address;

use super::{Dialect, known};
use crate::endpoint::CHAT_COMPLETIONS;

/// End of the host, dialect.
const HOSTS: &[(&str, &str)] = &[
    ("api.openai.com", "openai"),
    (".openai.azure.com", "azure"),
    (".cognitiveservices.azure.com", "azure"),
    (".services.ai.azure.com", "azure"),
    ("generativelanguage.googleapis.com", "gemini"),
    ("aiplatform.googleapis.com", "gemini"),
    ("api.mistral.ai", "mistral"),
    ("api.groq.com", "groq"),
    ("api.deepseek.com", "deepseek"),
    ("dashscope.aliyuncs.com", "qwen"),
    ("dashscope-intl.aliyuncs.com", "qwen"),
    ("dashscope-us.aliyuncs.com", "qwen"),
    ("open.bigmodel.cn", "glm"),
    ("api.z.ai", "glm"),
    ("api.moonshot.cn", "kimi"),
    ("api.moonshot.ai", "kimi"),
    ("openrouter.ai", "openrouter"),
    ("api.anthropic.com", "anthropic"),
    ("api.x.ai", "xai"),
    ("api.cerebras.ai", "cerebras"),
    ("api.cloudflare.com", "cloudflare"),
    (".cloud.databricks.com", "databricks"),
    (".azuredatabricks.net", "databricks"),
    ("api.minimax.io", "minimax"),
    ("api.minimaxi.com", "minimax"),
    ("api.together.xyz", "together"),
    ("api.together.ai", "together"),
    ("api.fireworks.ai", "fireworks"),
];

/// Port, dialect: the default of one local server, which nothing else is known to use.
const PORTS: &[(u16, &str)] = &[(11434, "ollama"), (1234, "lmstudio")];

pub(crate) fn detect(base_url: &str) -> Dialect {
    let name = Address::parse(base_url, &CHAT_COMPLETIONS)
        .ok()
        .and_then(|url| {
            let host = url.host();
            if host.starts_with("bedrock-runtime.") && host.ends_with(".amazonaws.com") {
                return Some("bedrock");
            }
            let of_host = HOSTS.iter().find(|(end, _)| {
                host == *end || (host.ends_with(end) && (end.starts_with('.') || dotted(host, end)))
            });
            let of_port = || PORTS.iter().find(|(port, _)| url.port() == Some(*port));
            of_host
                .map(|(_, name)| *name)
                .or_else(|| of_port().map(|(_, name)| *name))
        });
    name.and_then(known::rules)
        .map_or_else(Dialect::compatible, Dialect::from_rules)
}

fn dotted(host: &str, end: &str) -> bool {
    host[..host.len() - end.len()].ends_with('.')
}
