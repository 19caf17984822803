//! Paused runs that pass through hands that nobody vouches for: signed, bound, limited in time.

mod fault;
mod form;
mod keys;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use raf_core::PausedRun;
use serde::{Deserialize, Serialize};

pub use self::fault::SealFault;
use self::form::Fields;
pub use self::keys::{SealingKey, SealingKeys};

/// A [`PausedRun`] under a seal: text that a browser, a queue or a customer may keep and give back.
///
/// **Signed, not encrypted**: whoever holds it can read the pending calls and their arguments; nobody
/// can change them, lengthen its time or use it for another audience without a key. Whoever holds it
/// can also give it back **twice**: where no shared store remembers what was answered, that cannot be
/// noticed (the idempotency keys of the calls are the same).
///
/// The text is made of `A`–`Z`, `a`–`z`, `0`–`9`, `-`, `_` and `.`, and needs no escaping in a URL, a
/// header or JSON. `Display`, [`FromStr`] and serde use it; `Debug` shows its length only.
/// [`PausedRunSealer`] makes and opens it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SealedPausedRun(String);

impl SealedPausedRun {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SealedPausedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SealedPausedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealedPausedRun")
            .field("length", &self.0.len())
            .finish_non_exhaustive()
    }
}

impl TryFrom<String> for SealedPausedRun {
    type Error = SealFault;

    fn try_from(text: String) -> Result<Self, SealFault> {
        Fields::from_text(&text)?;
        Ok(Self(text))
    }
}

/// Looks at the form only; the seal is looked at when it is opened.
impl FromStr for SealedPausedRun {
    type Err = SealFault;

    fn from_str(text: &str) -> Result<Self, SealFault> {
        Self::try_from(text.to_owned())
    }
}

impl From<SealedPausedRun> for String {
    fn from(sealed: SealedPausedRun) -> Self {
        sealed.0
    }
}

type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// Seals paused runs for one audience, and opens them again.
///
/// Made by [`SealingKeys::for_audience`], cheaply: make one per request.
///
/// ```
/// use raf_core::{PausedRun, RunId, RunRecord};
/// use raf_framework::{SealFault, SealedPausedRun, SealingKey, SealingKeys};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (secret, former_secret) = ([7; 32], [6; 32]);
/// let keys = SealingKeys::new(SealingKey::new("2026-07", secret)?)
///     .with_previous(SealingKey::new("2026-01", former_secret)?);
/// let sealer = keys.for_audience("user-42");
/// # let paused = PausedRun::new(RunRecord::new(RunId::random()));
/// let text = sealer.seal(&paused).to_string();
///
/// // … later, in another process …
/// let sealed: SealedPausedRun = text.parse()?;
/// assert_eq!(sealer.open(&sealed)?, paused);
/// let other = keys.for_audience("user-43");
/// assert_eq!(other.open(&sealed).unwrap_err(), SealFault::WrongAudience);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PausedRunSealer {
    keys: SealingKeys,
    audience: String,
    lifetime: Option<Duration>,
    clock: Clock,
}

impl PausedRunSealer {
    fn new(keys: SealingKeys, audience: String) -> Self {
        Self {
            keys,
            audience,
            lifetime: Some(Duration::from_hours(24)),
            clock: Arc::new(|| {
                SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default()
            }),
        }
    }

    /// Sets how long what is sealed from now on can be opened. Default: 24 hours.
    pub fn with_lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = Some(lifetime);
        self
    }

    /// Lets what is sealed from now on be opened for ever.
    pub fn without_expiry(mut self) -> Self {
        self.lifetime = None;
        self
    }

    /// Sets the clock: the time since the Unix epoch. For tests.
    pub fn with_clock(mut self, clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Seals a paused run with the current key.
    pub fn seal(&self, paused: &PausedRun) -> SealedPausedRun {
        let key = self.keys.current();
        let expires_at = self.lifetime.map(|lifetime| {
            let at = (self.clock)().saturating_add(lifetime);
            at.as_secs()
        });
        let payload = serde_json::to_vec(paused).expect("a record prints as JSON");
        let fields = Fields::new(key.id(), &self.audience, expires_at, payload);
        SealedPausedRun(fields.into_text(key))
    }

    /// The paused run, if it is whole, from one of the keys, for this audience and in time.
    ///
    /// Nothing of what it holds is looked at before its seal was.
    ///
    /// # Errors
    /// Why it is not taken. As [`raf_core::Error`] (by `?`) the kind is
    /// [`ApprovalRefused`](raf_core::ErrorKind::ApprovalRefused), and the code says which.
    pub fn open(&self, sealed: &SealedPausedRun) -> Result<PausedRun, SealFault> {
        let fields = Fields::from_text(&sealed.0)?;
        let mut keys = self.keys.named(&fields.key_id).peekable();
        if keys.peek().is_none() {
            return Err(SealFault::UnknownKey);
        }
        if !keys.any(|key| fields.is_signed_by(key)) {
            return Err(SealFault::Tampered);
        }
        if fields.audience != self.audience.as_bytes() {
            return Err(SealFault::WrongAudience);
        }
        let now = (self.clock)().as_secs();
        if fields.expires_at.is_some_and(|at| at <= now) {
            return Err(SealFault::Expired);
        }
        let paused: Result<PausedRun, _> = serde_json::from_slice(&fields.payload);
        match paused {
            Ok(paused) if paused.is_supported() => Ok(paused),
            _ => Err(SealFault::Unsupported),
        }
    }
}

impl fmt::Debug for PausedRunSealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PausedRunSealer")
            .field("keys", &self.keys)
            .field("audience", &self.audience)
            .field("lifetime", &self.lifetime)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
