//! Which models an endpoint has, and what is wrong with it, in words.

use std::fmt;

use bytes::Bytes;
use raf_core::{ChatClientRunOptions, ErrorKind, Result};

use crate::connection::Connection;
use crate::dialogue::Dialogue;
use crate::json::Json;
use crate::transport::Address;

/// A model that an endpoint offers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelInfo {
    /// The name by which a run asks for it.
    pub id: String,
    /// Who made it, where the server says.
    pub owned_by: Option<String>,
    /// Its name for people, where the server says (Anthropic).
    pub display_name: Option<String>,
    /// The most tokens of its context, where the server says (vLLM, Groq, OpenRouter, Mistral,
    /// Anthropic).
    pub context_length: Option<u64>,
}

/// What a client's `check` found out about an endpoint that answers.
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

impl Connection {
    /// What the endpoint answers to a question that spends no tokens, as JSON. It may take as long as a
    /// read may. Cancel-safe: dropping it stops the request.
    ///
    /// # Errors
    /// As a run's stream; [`ErrorKind::Misuse`] outside a tokio runtime.
    pub async fn get(&self, url: &Address) -> Result<Json> {
        let model = self.options().model.as_deref().unwrap_or("");
        let reporter = self.reporter(url, model, Bytes::new());
        let mut setup = self.setup(reporter.clone(), &ChatClientRunOptions::new());
        let timeouts = setup.timeouts;
        setup.timeouts = timeouts.with_first_byte(timeouts.idle.min(timeouts.first_byte));
        let mut dialogue = Dialogue::begin(setup)?;
        let opened = dialogue.get(url).await?;
        let body = dialogue.body(opened).await?;
        let text = String::from_utf8_lossy(&body);
        Json::parse_repaired(text.trim())
            .map_err(|_| reporter.protocol("answered with something that is no JSON"))
    }

    /// The models that an address lists, in its order.
    ///
    /// # Errors
    /// As [`get`](Connection::get).
    pub async fn models(&self, url: &Address) -> Result<Vec<ModelInfo>> {
        let listed = self.get(url).await?;
        read_models(&listed).ok_or_else(|| {
            let reporter = self.reporter(url, "", Bytes::new());
            reporter.protocol("answered with something that is no list of models")
        })
    }

    /// What a try to list the models says of the endpoint. `names_models` is false where models are asked
    /// for by other names than those of the list.
    ///
    /// # Errors
    /// What is wrong if the endpoint cannot be used at all: not reached, key refused, something else at
    /// this address. A server that does not list its models is none of these.
    pub fn health(
        &self,
        listed: Result<Vec<ModelInfo>>,
        names_models: bool,
    ) -> Result<EndpointHealth> {
        let mut advice = Vec::new();
        let models = match listed {
            Ok(models) => Some(models),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                advice.push(format!(
                    "it does not list its models at this address: if runs fail too, the base URL is \
                     wrong (its path is '{}'; {})",
                    self.base().path(),
                    self.kind().url_hint
                ));
                None
            }
            Err(error) => return Err(error),
        };
        match (&self.options().model, &models) {
            (None, _) => advice.push(format!(
                "no default model is set: each run must name one (set {})",
                self.kind().model_settings
            )),
            (Some(model), Some(models))
                if names_models && !models.iter().any(|of| is_named(&of.id, model)) =>
            {
                advice.push(unknown_model(model, models));
            }
            _ => {}
        }
        Ok(EndpointHealth {
            endpoint: self.base().display(),
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

/// The models of a list: `{"data": […]}` (OpenAI, Anthropic), `{"models": […]}`, or the list itself
/// (Together).
pub fn read_models(listed: &Json) -> Option<Vec<ModelInfo>> {
    let lists = [listed.get("data"), listed.get("models"), Some(listed)];
    let list = lists.into_iter().flatten().find_map(Json::as_array)?;
    let read = list.iter().filter_map(|model| {
        let name = |name| model.get(name).and_then(Json::as_str).map(str::to_owned);
        let lengths = [
            "max_model_len",
            "context_window",
            "context_length",
            "max_context_length",
            "max_input_tokens",
        ];
        Some(ModelInfo {
            id: name("id").or_else(|| name("name"))?,
            owned_by: name("owned_by"),
            display_name: name("display_name"),
            context_length: lengths.iter().find_map(|name| model.get(name)?.as_count()),
        })
    });
    Some(read.collect())
}
