//! Lists models, and says in words what is wrong with an endpoint.

use std::fmt;

use bytes::Bytes;
use raf_core::{Cancellation, ErrorKind, Result};
use raf_wire::{Dialogue, DialogueSetup, Json};

use crate::OpenAiChatClient;

/// A model that an endpoint offers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelInfo {
    /// The name by which a run asks for it.
    pub id: String,
    /// Who made it, where the server says.
    pub owned_by: Option<String>,
    /// The most tokens of its context, where the server says (vLLM, Groq, OpenRouter, Mistral).
    pub context_length: Option<u64>,
}

/// What [`OpenAiChatClient::check`] found out about an endpoint that answers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointHealth {
    /// The address that was asked, without credentials.
    pub endpoint: String,
    /// The models that it offers; unset if it does not list them.
    pub models: Option<Vec<ModelInfo>>,
    /// What is wrong or worth knowing, in words; empty if nothing is.
    pub advice: Vec<String>,
}

impl EndpointHealth {
    /// Whether nothing was found wrong.
    pub fn is_good(&self) -> bool {
        self.advice.is_empty()
    }
}

impl fmt::Display for EndpointHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} answers", self.endpoint)?;
        if let Some(models) = &self.models {
            let plural = if models.len() == 1 { "" } else { "s" };
            write!(f, " and offers {} model{plural}", models.len())?;
        }
        self.advice
            .iter()
            .try_for_each(|advice| write!(f, "; {advice}"))
    }
}

impl OpenAiChatClient {
    /// The models that the endpoint offers, in its order.
    ///
    /// Asks `<base URL>/models`; with an Azure API version `<resource>/openai/models`. Cancel-safe:
    /// dropping it stops the request.
    ///
    /// # Errors
    /// As a run's stream; [`ErrorKind::Misuse`](raf_core::ErrorKind::Misuse) outside a tokio runtime.
    pub async fn list_models(&self) -> Result<Vec<ModelInfo>> {
        let options = self.options();
        let url = match &options.azure_api_version {
            Some(version) => self
                .base()
                .join("openai/models")
                .with_query("api-version", version),
            None => self.base().join("models"),
        };
        let model = options.model.as_deref().unwrap_or("");
        let reporter = self.reporter(&url, model, Bytes::new());
        let timeouts = options.timeouts;
        let mut dialogue = Dialogue::begin(DialogueSetup {
            transport: self.transport().clone(),
            reporter: reporter.clone(),
            limits: options.limits,
            timeouts: timeouts.with_first_byte(timeouts.idle.min(timeouts.first_byte)),
            cancellation: Cancellation::new(),
            deadline: None,
        })?;
        let opened = dialogue.get(&url).await?;
        let body = dialogue.body(opened).await?;
        let text = String::from_utf8_lossy(&body);
        let listed = Json::parse_repaired(text.trim()).ok();
        let models = listed.as_ref().and_then(read_models);
        models.ok_or_else(|| reporter.protocol("answered with something that is no list of models"))
    }

    /// A cheap check of the endpoint, which spends no tokens: whether it answers, takes the key, and
    /// offers the model that is set.
    ///
    /// # Errors
    /// What is wrong if the endpoint cannot be used at all: not reached, key refused, something else
    /// at this address. A server that does not list its models is none of these.
    pub async fn check(&self) -> Result<EndpointHealth> {
        let endpoint = self.base().display();
        let mut advice = Vec::new();
        let models = match self.list_models().await {
            Ok(models) => Some(models),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                advice.push(format!(
                    "it does not list its models at this address: if runs fail too, the base URL is \
                     wrong (its path is '{}', and it usually ends in /v1)",
                    self.base().path()
                ));
                None
            }
            Err(error) => return Err(error),
        };
        match (&self.options().model, &models) {
            (None, _) => advice.push(
                "no default model is set: each run must name one (OPENAI_MODEL sets it)".to_owned(),
            ),
            (Some(model), Some(models))
                if self.options().azure_api_version.is_none()
                    && !models.iter().any(|of| is_named(&of.id, model)) =>
            {
                advice.push(unknown_model(model, models));
            }
            _ => {}
        }
        Ok(EndpointHealth {
            endpoint,
            models,
            advice,
        })
    }
}

/// Gemini lists `models/<name>`, Ollama `<name>:latest`.
fn is_named(id: &str, model: &str) -> bool {
    id == model
        || id.strip_prefix("models/") == Some(model)
        || id.strip_suffix(":latest") == Some(model)
}

fn unknown_model(model: &str, models: &[ModelInfo]) -> String {
    let some: Vec<&str> = models
        .iter()
        .take(5)
        .map(|model| model.id.as_str())
        .collect();
    match some[..] {
        [] => format!("it offers no model at all, so not '{model}' either"),
        _ => format!(
            "it does not list the model '{model}'; it offers {}{}",
            some.join(", "),
            if models.len() > some.len() {
                ", …"
            } else {
                ""
            }
        ),
    }
}

/// `{"data": […]}` (OpenAI), `{"models": […]}`, or the list itself (Together).
fn read_models(listed: &Json) -> Option<Vec<ModelInfo>> {
    let lists = [listed.get("data"), listed.get("models"), Some(listed)];
    let list = lists.into_iter().flatten().find_map(Json::as_array)?;
    let read = list.iter().filter_map(|model| {
        let name = |name| model.get(name).and_then(Json::as_str).map(str::to_owned);
        let lengths = [
            "max_model_len",
            "context_window",
            "context_length",
            "max_context_length",
        ];
        Some(ModelInfo {
            id: name("id").or_else(|| name("name"))?,
            owned_by: name("owned_by"),
            context_length: lengths.iter().find_map(|name| model.get(name)?.as_count()),
        })
    });
    Some(read.collect())
}
