//! The bytes of a sealed value, and what of them is signed.
//!
//! The text is [`PREFIX`], then the body in base64url without padding. The body is five fields, each
//! behind its length as four bytes, most significant first: key id, audience, expiry (nothing, or the
//! Unix time in seconds as eight bytes), payload (the run as JSON), signature. The signature is
//! HMAC-SHA256 over [`PURPOSE`] and the first four fields, each behind its length: no byte can move
//! from one field to the next without changing what is signed, and no other use of the same key signs
//! these bytes.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::fault::SealFault;
use super::keys::SealingKey;

const PREFIX: &str = "raf-paused-1.";
const PURPOSE: &[u8] = b"raf sealed paused run, form 1";
const SIGNATURE_LENGTH: usize = 32;

/// A sealed value taken apart.
pub(super) struct Fields {
    pub(super) key_id: Vec<u8>,
    pub(super) audience: Vec<u8>,
    pub(super) expires_at: Option<u64>,
    pub(super) payload: Vec<u8>,
    signature: Vec<u8>,
}

impl Fields {
    /// A value that is not signed yet.
    pub(super) fn new(
        key_id: &str,
        audience: &str,
        expires_at: Option<u64>,
        payload: Vec<u8>,
    ) -> Self {
        Self {
            key_id: key_id.as_bytes().to_vec(),
            audience: audience.as_bytes().to_vec(),
            expires_at,
            payload,
            signature: Vec::new(),
        }
    }

    /// Signs the value; its text.
    pub(super) fn into_text(self, key: &SealingKey) -> String {
        let mut body = self.signed();
        let signature = self.signature_by(key).finalize().into_bytes();
        put(&mut body, &signature);
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(body))
    }

    /// Takes a text apart. Believes nothing of it.
    pub(super) fn from_text(text: &str) -> Result<Self, SealFault> {
        let body = text.strip_prefix(PREFIX).ok_or(SealFault::Malformed)?;
        let body = URL_SAFE_NO_PAD
            .decode(body)
            .map_err(|_| SealFault::Malformed)?;
        let rest = &mut body.as_slice();
        let fields = Self {
            key_id: take(rest)?.to_vec(),
            audience: take(rest)?.to_vec(),
            expires_at: match take(rest)? {
                [] => None,
                seconds => Some(u64::from_be_bytes(
                    seconds.try_into().map_err(|_| SealFault::Malformed)?,
                )),
            },
            payload: take(rest)?.to_vec(),
            signature: take(rest)?.to_vec(),
        };
        if rest.is_empty() && fields.signature.len() == SIGNATURE_LENGTH {
            Ok(fields)
        } else {
            Err(SealFault::Malformed)
        }
    }

    /// Whether the signature is that of a key. Takes the same time wherever they differ.
    pub(super) fn is_signed_by(&self, key: &SealingKey) -> bool {
        self.signature_by(key).verify_slice(&self.signature).is_ok()
    }

    fn signature_by(&self, key: &SealingKey) -> Hmac<Sha256> {
        let mut purpose = Vec::new();
        put(&mut purpose, PURPOSE);
        let mut hmac =
            Hmac::<Sha256>::new_from_slice(key.secret()).expect("HMAC takes keys of any length");
        hmac.update(&purpose);
        hmac.update(&self.signed());
        hmac
    }

    /// The fields that are signed, each behind its length.
    fn signed(&self) -> Vec<u8> {
        let expires_at = self.expires_at.map(u64::to_be_bytes);
        let mut signed = Vec::with_capacity(self.payload.len() + 256);
        put(&mut signed, &self.key_id);
        put(&mut signed, &self.audience);
        put(&mut signed, expires_at.as_ref().map_or(&[], |at| &at[..]));
        put(&mut signed, &self.payload);
        signed
    }
}

fn put(into: &mut Vec<u8>, field: &[u8]) {
    let length = u32::try_from(field.len()).expect("a field has less than 4 GiB");
    into.extend_from_slice(&length.to_be_bytes());
    into.extend_from_slice(field);
}

fn take<'a>(from: &mut &'a [u8]) -> Result<&'a [u8], SealFault> {
    let (length, rest) = from.split_first_chunk::<4>().ok_or(SealFault::Malformed)?;
    let length = usize::try_from(u32::from_be_bytes(*length)).map_err(|_| SealFault::Malformed)?;
    let (field, rest) = rest.split_at_checked(length).ok_or(SealFault::Malformed)?;
    *from = rest;
    Ok(field)
}
