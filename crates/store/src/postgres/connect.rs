//! How a connection is made: plain, or by TLS where the store was told whom to trust.

use futures::future::LocalBoxFuture;
use raf_core::{Error, Result};
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, NoTls, Socket};

use super::PostgresOptions;
use super::fault::Fault;

/// How connections are made.
#[derive(Clone, Debug)]
pub(super) struct Way {
    config: Config,
    #[cfg(feature = "postgres-tls")]
    tls: Option<super::PostgresTls>,
}

impl Way {
    /// The way that an address and settings ask for.
    ///
    /// # Errors
    /// The address is none, or asks for TLS without saying whom to trust, or the other way round.
    pub(super) fn new(url: &str, options: &PostgresOptions) -> Result<Self> {
        let mut config: Config = url.parse().map_err(|_| {
            // What stands there may hold a password.
            Error::configuration(
                "the address of the PostgreSQL server is none: write \
                 postgres://user:password@host:port/database; sslmode is disable, prefer or require",
            )
        })?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(options.connect_timeout);
        }
        if config.get_application_name().is_none() {
            config.application_name("raf-store");
        }
        #[cfg(feature = "postgres-tls")]
        let has_tls = options.tls.is_some();
        #[cfg(not(feature = "postgres-tls"))]
        let has_tls = false;
        let asked = config.get_ssl_mode();
        if has_tls {
            if asked == SslMode::Disable {
                return Err(Error::configuration(
                    "the address says sslmode=disable, and the settings have TLS: take one of them out",
                ));
            }
            // Never plain because somebody in between says so.
            config.ssl_mode(SslMode::Require);
        } else if asked == SslMode::Require {
            return Err(Error::configuration(
                "the address says sslmode=require: say whose certificates are trusted, by \
                 `PostgresOptions::with_tls` (feature `postgres-tls`)",
            ));
        }
        Ok(Self {
            config,
            #[cfg(feature = "postgres-tls")]
            tls: options.tls.clone(),
        })
    }

    /// A connection, and the future that drives it.
    pub(super) async fn connect(&self) -> Result<(Client, LocalBoxFuture<'static, ()>), Fault> {
        #[cfg(feature = "postgres-tls")]
        if let Some(tls) = &self.tls {
            return by(&self.config, tls.connector()).await;
        }
        by(&self.config, NoTls).await
    }
}

async fn by<T>(config: &Config, tls: T) -> Result<(Client, LocalBoxFuture<'static, ()>), Fault>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: 'static,
{
    let (client, connection) = config.connect(tls).await?;
    let driver = Box::pin(async move {
        if let Err(error) = connection.await {
            let error = Error::from(Fault::from(error));
            tracing::debug!(%error, "a connection of the store has ended");
        }
    });
    Ok((client, driver))
}
