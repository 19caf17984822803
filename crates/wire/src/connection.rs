//! What a client of one endpoint holds: its options, its address, and the transport to it.

use std::sync::OnceLock;

use raf_core::{ChatClientMetadata, ChatClientRunOptions, ChatMessage, Error, Result};

use crate::dialogue::DialogueSetup;
use crate::endpoint::EndpointKind;
use crate::error::{Reporter, Said};
use crate::options::EndpointOptions;
use crate::transport::{Address, KeyHeader, Transport};

/// The way to one endpoint, as a provider's client holds it. Makes no connection by itself.
#[derive(Clone, Debug)]
pub struct Connection {
    kind: &'static EndpointKind,
    options: EndpointOptions,
    base: Address,
    transport: Transport,
    /// The first path that was asked for, and its address.
    first: OnceLock<(String, Address)>,
}

impl Connection {
    /// The way to the endpoint of these options. Of the headers, those of the options count last.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration): a base URL, key or header that
    /// cannot be used.
    pub fn new(
        kind: &'static EndpointKind,
        options: EndpointOptions,
        key_header: KeyHeader,
        mut headers: Vec<(String, String)>,
    ) -> Result<Self> {
        let base = Address::parse(&options.base_url, kind)?;
        let key = options.api_key.as_deref().map(str::trim);
        let key = key.filter(|key| !key.is_empty());
        headers.extend(options.headers.iter().cloned());
        let transport = Transport::new(
            kind,
            options.http_client.clone(),
            options.timeouts.connect,
            key.map(|key| (key, key_header)),
            &headers,
        )?;
        Ok(Self {
            kind,
            base,
            transport: transport.with_signer(options.request_signer.clone()),
            options,
            first: OnceLock::new(),
        })
    }

    /// What is fixed of the endpoint.
    pub(crate) fn kind(&self) -> &'static EndpointKind {
        self.kind
    }

    /// The options that it was made of.
    pub fn options(&self) -> &EndpointOptions {
        &self.options
    }

    /// The address below which everything lies.
    pub fn base(&self) -> &Address {
        &self.base
    }

    /// The address of a path below the base, made once for that which is asked for first.
    pub fn address(&self, path: &str) -> Address {
        let first = || (path.to_owned(), self.base.join(path));
        let (first, address) = self.first.get_or_init(first);
        if first == path {
            return address.clone();
        }
        self.base.join(path)
    }

    /// The model of a run: its own, else that of the options.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration) if there is none.
    pub fn model<'a>(&'a self, run: &'a ChatClientRunOptions) -> Result<&'a str> {
        let model = run.model.as_deref().or(self.options.model.as_deref());
        let model = model.map(str::trim).filter(|model| !model.is_empty());
        model.ok_or_else(|| {
            Error::configuration(format!(
                "no model is named for {}: set {}, or ChatClientRunOptions::with_model",
                self.base.display(),
                self.kind.model_settings
            ))
        })
    }

    /// The model of a run that can be asked for.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`](raf_core::ErrorKind::Misuse) for a run that brings answers no provider knows
    /// of, or no message; else as [`model`](Connection::model).
    pub fn begin<'a>(
        &'a self,
        messages: &[ChatMessage],
        run: &'a ChatClientRunOptions,
    ) -> Result<&'a str> {
        run.refuse_resume_data()?;
        let model = self.model(run)?;
        if messages.is_empty() {
            return Err(Error::misuse(
                "the conversation is empty: give at least one message",
            ));
        }
        Ok(model)
    }

    /// What makes the errors of an exchange at this address; `said` is what its messages say.
    pub fn reporter(&self, url: &Address, model: &str, said: impl Into<Said>) -> Reporter {
        let options = &self.options;
        let headers = options.headers.iter().map(|(_, value)| value.clone());
        let secrets = options.api_key.iter().cloned().chain(headers).collect();
        Reporter::new(self.kind, url.display(), model, secrets, said)
    }

    /// What the exchanges of a run need.
    pub fn setup(&self, reporter: Reporter, run: &ChatClientRunOptions) -> DialogueSetup {
        DialogueSetup {
            transport: self.transport.clone(),
            reporter,
            limits: self.options.limits,
            timeouts: self.options.timeouts,
            cancellation: run.cancellation.clone(),
            deadline: run.deadline,
        }
    }

    /// What a client of this endpoint says of itself.
    pub fn metadata(&self, provider: &str) -> ChatClientMetadata {
        let metadata = ChatClientMetadata::new(provider).with_endpoint(self.base.display());
        match &self.options.model {
            Some(model) => metadata.with_model(model),
            None => metadata,
        }
    }
}
