//! Why a sealed value is not taken.

use raf_core::{Error, ErrorKind};
use thiserror::Error as ThisError;

/// Why a sealed paused run is not taken. Nothing was run, and nothing of it was believed.
///
/// As [`raf_core::Error`] it is of kind [`ApprovalRefused`](ErrorKind::ApprovalRefused): like an
/// answer that does not fit, it came from outside and was turned away. The code is
/// [`as_str`](Self::as_str).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ThisError)]
#[non_exhaustive]
pub enum SealFault {
    /// It is no sealed paused run: cut, pasted wrongly, of another kind.
    #[error("the text is no sealed paused run: it was cut or changed on the way")]
    Malformed,
    /// No key of its id is at hand: it was sealed by someone else, or the key was retired.
    #[error("the paused run was sealed with a key that is not at hand, or is no longer accepted")]
    UnknownKey,
    /// The signature does not fit: something of it was changed.
    #[error("the seal of the paused run does not fit its contents")]
    Tampered,
    /// It is whole, and was sealed for another audience.
    #[error("the paused run was sealed for another audience")]
    WrongAudience,
    /// It is whole, and its time is over.
    #[error("the paused run is expired: start the turn again")]
    Expired,
    /// It is whole, and written in a form that this version cannot read.
    #[error("the paused run was written by a later version: update raf to resume it")]
    Unsupported,
}

impl SealFault {
    /// The fault as text: lower case, words joined by `_`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "sealed_malformed",
            Self::UnknownKey => "sealed_unknown_key",
            Self::Tampered => "sealed_tampered",
            Self::WrongAudience => "sealed_wrong_audience",
            Self::Expired => "sealed_expired",
            Self::Unsupported => "sealed_unsupported",
        }
    }
}

impl From<SealFault> for Error {
    fn from(fault: SealFault) -> Self {
        Self::new(ErrorKind::ApprovalRefused, fault.to_string())
            .with_code(fault.as_str())
            .with_source(fault)
    }
}
