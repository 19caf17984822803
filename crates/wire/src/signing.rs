//! The seam for requests that a key alone does not open: signatures of a cloud, tokens that expire.

use std::fmt::Debug;

use async_trait::async_trait;
use raf_core::Result;

/// Adds headers to each request just before it is sent.
///
/// A provider calls it for every request it makes, the further ones of a run included, so a signature is
/// fresh and a token can be renewed. It is awaited within the run's time to the first byte, and dropped
/// where the run is cancelled.
///
/// ```
/// use std::sync::{Arc, RwLock};
///
/// use async_trait::async_trait;
/// use raf_core::Result;
/// use raf_wire::{IRequestSigner, UnsignedRequest};
///
/// /// A bearer token that somebody keeps fresh.
/// #[derive(Debug)]
/// struct FreshToken(Arc<RwLock<String>>);
///
/// #[async_trait]
/// impl IRequestSigner for FreshToken {
///     async fn sign(&self, _: UnsignedRequest<'_>) -> Result<Vec<(String, String)>> {
///         let token = self.0.read().expect("no panic holds it").clone();
///         Ok(vec![("authorization".to_owned(), format!("Bearer {token}"))])
///     }
/// }
/// ```
#[async_trait]
pub trait IRequestSigner: Debug + Send + Sync {
    /// The headers that this request needs. One that the request has already gives way to them. They are
    /// treated as secrets: an error that a server makes of them does not repeat them.
    ///
    /// # Errors
    /// What keeps it from being signed. The request is not sent, and the run ends in this error as it is.
    async fn sign(&self, request: UnsignedRequest<'_>) -> Result<Vec<(String, String)>>;
}

/// A request as it will be sent, but for what a signer adds.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct UnsignedRequest<'a> {
    /// `POST`, or `GET`.
    pub method: &'a str,
    /// The whole address, query included.
    pub url: &'a str,
    /// Names (in lower case) and values of the headers that are set so far, as far as they are text.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body; empty where there is none.
    pub body: &'a [u8],
}
