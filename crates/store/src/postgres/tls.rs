//! Encrypted connections to PostgreSQL: whose certificates are trusted.

use std::fmt::{self, Debug};
use std::sync::Arc;

use raf_core::{Error, Result};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio_postgres_rustls::MakeRustlsConnect;

/// How a [`PostgresStore`](super::PostgresStore) encrypts its connections, and whose certificates it trusts.
/// Set it with [`PostgresOptions::with_tls`](super::PostgresOptions::with_tls).
///
/// A server is trusted only if its certificate is signed by a trusted one, is valid now, and is made out to
/// the host that the address names. There is no way around that, and no fall back to a plain connection.
/// TLS 1.2 and 1.3, by rustls; passwords are bound to the connection where the server offers it.
#[derive(Clone)]
pub struct PostgresTls(Arc<ClientConfig>);

impl PostgresTls {
    /// Trusts those whom the operating system trusts: for servers with certificates of a public authority,
    /// or of one that was added to the system.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration) if the system's authorities cannot be
    /// read.
    pub fn with_platform_roots() -> Result<Self> {
        let config = builder()?.with_platform_verifier();
        let config = config.map_err(|error| {
            Error::configuration("the certificates that the system trusts cannot be used")
                .with_source(error)
        })?;
        Ok(Self(Arc::new(config.with_no_client_auth())))
    }

    /// Trusts these certificates alone, in PEM, one behind another: for an authority of your own, as the
    /// hosts of databases have one, or for the certificate that a server has signed itself. Text around the
    /// certificates is skipped.
    ///
    /// A certificate that a server has signed itself may not be marked as an authority (`CA:TRUE`).
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration) if there is none, or one cannot be
    /// read.
    pub fn with_roots(pem: &[u8]) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| unreadable().with_source(error))?;
            let added = roots.add(certificate);
            added.map_err(|error| unreadable().with_source(error))?;
        }
        if roots.is_empty() {
            return Err(unreadable());
        }
        let config = builder()?.with_root_certificates(roots);
        Ok(Self(Arc::new(config.with_no_client_auth())))
    }

    pub(super) fn connector(&self) -> MakeRustlsConnect {
        MakeRustlsConnect::new(ClientConfig::clone(&self.0))
    }
}

impl Debug for PostgresTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresTls").finish_non_exhaustive()
    }
}

/// With a provider of its own: the process need not have chosen one.
fn builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>> {
    ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::configuration("TLS cannot be used here").with_source(error))
}

fn unreadable() -> Error {
    Error::configuration(
        "there is no certificate to trust: give certificates in PEM (`-----BEGIN CERTIFICATE-----`), of an \
         authority or of the server itself",
    )
}
