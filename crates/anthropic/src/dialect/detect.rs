//! Which dialect a base URL speaks, where the host leaves no doubt.

use raf_wire::Address;

use super::Dialect;
use crate::endpoint::MESSAGES;

/// End of the host, dialect.
const HOSTS: &[(&str, &str)] = &[
    ("api.anthropic.com", "anthropic"),
    ("aiplatform.googleapis.com", "vertex"),
    ("api.deepseek.com", "deepseek"),
    ("api.moonshot.cn", "kimi"),
    ("api.moonshot.ai", "kimi"),
    ("api.kimi.com", "kimi"),
    ("open.bigmodel.cn", "glm"),
    ("api.z.ai", "glm"),
    ("api.minimax.io", "minimax"),
    ("api.minimaxi.com", "minimax"),
    ("openrouter.ai", "openrouter"),
    ("api.githubcopilot.com", "copilot"),
];

pub(super) fn detect(base_url: &str) -> Dialect {
    let name = Address::parse(base_url, &MESSAGES).ok().and_then(|url| {
        let host = url.host();
        if host.starts_with("bedrock-runtime.") && host.ends_with(".amazonaws.com") {
            return Some("bedrock");
        }
        HOSTS
            .iter()
            .find(|(end, _)| {
                host.strip_suffix(end)
                    .is_some_and(|before| before.is_empty() || before.ends_with(['.', '-']))
            })
            .map(|(_, name)| *name)
    });
    name.and_then(Dialect::named)
        .unwrap_or_else(Dialect::compatible)
}
