//! The keys of a seal, and how they are changed.

use std::fmt;
use std::sync::Arc;

use raf_core::{Error, Result};
use zeroize::Zeroizing;

use super::PausedRunSealer;

/// A key shorter than the hash is weaker than it.
const SHORTEST_KEY: usize = 32;
const LONGEST_ID: usize = 64;

/// A secret that signs, and the id by which what it signed names it.
///
/// `Debug` shows the id only; the secret is wiped from memory when the last handle is dropped.
#[derive(Clone)]
pub struct SealingKey {
    id: Arc<str>,
    secret: Arc<Zeroizing<Vec<u8>>>,
}

impl SealingKey {
    /// A key of at least 32 random bytes.
    ///
    /// Take them from a secret store, made by a generator of random bytes
    /// (`openssl rand -hex 32`: its 64 characters can be used as they are). A pass phrase is no key.
    ///
    /// # Errors
    /// [`Configuration`](raf_core::ErrorKind::Configuration) if the secret is too short, or the id is
    /// empty or over 64 bytes.
    pub fn new(id: impl Into<Arc<str>>, secret: impl AsRef<[u8]>) -> Result<Self> {
        let (id, secret) = (id.into(), secret.as_ref());
        if id.is_empty() || id.len() > LONGEST_ID {
            return Err(Error::configuration(
                "the id of a sealing key has 1 to 64 bytes",
            ));
        }
        if secret.len() < SHORTEST_KEY {
            return Err(Error::configuration(format!(
                "the sealing key has {} bytes: give at least {SHORTEST_KEY} random ones",
                secret.len()
            ))
            .with_context("key", &*id));
        }
        Ok(Self {
            id,
            secret: Arc::new(Zeroizing::new(secret.to_vec())),
        })
    }

    /// The id. It is no secret.
    pub fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn secret(&self) -> &[u8] {
        &self.secret
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealingKey")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// The key that seals, and those that still open.
///
/// To change keys: first give all processes the new key as a previous one, then make it the current
/// one, and drop the old one when what it sealed is expired.
#[derive(Clone, Debug)]
pub struct SealingKeys {
    current: SealingKey,
    previous: Vec<SealingKey>,
}

impl SealingKeys {
    /// Seals and opens with this key.
    pub fn new(current: SealingKey) -> Self {
        Self {
            current,
            previous: Vec::new(),
        }
    }

    /// Opens with this key as well.
    pub fn with_previous(mut self, key: SealingKey) -> Self {
        self.previous.push(key);
        self
    }

    /// Seals and opens for an audience: who may give the value back, and for what. A tenant, a user, a
    /// session, or several of these in a form that cannot be read in two ways.
    ///
    /// Take it from what **you** know of the caller (the signed-in user), never from what the caller
    /// sends along. It can be read in the sealed text.
    pub fn for_audience(&self, audience: impl Into<String>) -> PausedRunSealer {
        PausedRunSealer::new(self.clone(), audience.into())
    }

    pub(super) fn current(&self) -> &SealingKey {
        &self.current
    }

    /// The keys of an id. Ids should be unique; if they are not, any of them opens.
    pub(super) fn named(&self, id: &[u8]) -> impl Iterator<Item = &SealingKey> {
        std::iter::once(&self.current)
            .chain(&self.previous)
            .filter(move |key| key.id().as_bytes() == id)
    }
}
