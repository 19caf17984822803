//! How a connection is made: plain; whoever needs TLS keeps a local proxy or a socket between.

use futures::future::LocalBoxFuture;
use tokio_postgres::{Client, Config, NoTls};

use super::fault::Fault;

/// A connection, and the future that drives it.
pub(super) async fn connect(
    config: &Config,
) -> Result<(Client, LocalBoxFuture<'static, ()>), Fault> {
    let (client, connection) = config.connect(NoTls).await?;
    let driver = Box::pin(async move {
        if let Err(error) = connection.await {
            let error = raf_core::Error::from(Fault::from(error));
            tracing::debug!(%error, "a connection of the store has ended");
        }
    });
    Ok((client, driver))
}
