//! A few connections, shared: statements of several runs are in flight on one.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use futures::channel::mpsc;
use futures::future::LocalBoxFuture;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

use super::connect::Way;
use super::fault::Fault;

/// How connections are made.
#[derive(Clone, Debug)]
pub(super) struct PoolSettings {
    pub(super) way: Way,
    pub(super) schema: String,
    pub(super) max_connections: usize,
}

/// The connections of one store.
pub(super) struct Pool {
    settings: PoolSettings,
    connections: RefCell<Vec<Rc<Connection>>>,
    /// Being made.
    opening: Cell<usize>,
    drivers: mpsc::UnboundedSender<LocalBoxFuture<'static, ()>>,
}

/// One connection, with the statements that were prepared on it.
pub(super) struct Connection {
    client: Client,
    statements: RefCell<HashMap<&'static str, Statement>>,
}

impl Pool {
    pub(super) fn new(
        settings: PoolSettings,
        drivers: mpsc::UnboundedSender<LocalBoxFuture<'static, ()>>,
    ) -> Self {
        Self {
            settings,
            connections: RefCell::default(),
            opening: Cell::new(0),
            drivers,
        }
    }

    /// Whether a connection was ever made and is there still.
    pub(super) fn was_used(&self) -> bool {
        !self.connections.borrow().is_empty()
    }

    /// A connection that is there.
    pub(super) fn connection_now(&self) -> Result<Rc<Connection>, Fault> {
        self.least_used().ok_or(Fault::NotConnected)
    }

    /// The connection with the least to do; a new one while all have something to do and there may be
    /// more.
    pub(super) async fn connection(&self) -> Result<Rc<Connection>, Fault> {
        let present = self.least_used();
        let count = self.connections.borrow().len() + self.opening.get();
        match present {
            Some(connection)
                if Rc::strong_count(&connection) <= 2 || count >= self.settings.max_connections =>
            {
                Ok(connection)
            }
            _ => {
                self.opening.set(self.opening.get() + 1);
                let connected = self.connect().await;
                self.opening.set(self.opening.get() - 1);
                let connection = Rc::new(connected?);
                self.connections.borrow_mut().push(Rc::clone(&connection));
                Ok(connection)
            }
        }
    }

    /// Takes none of the present connections again: one of them was lost. What is in flight on the others
    /// goes on.
    pub(super) fn start_afresh(&self) {
        self.connections.borrow_mut().clear();
    }

    fn least_used(&self) -> Option<Rc<Connection>> {
        let mut connections = self.connections.borrow_mut();
        connections.retain(|connection| !connection.client.is_closed());
        let least = connections
            .iter()
            .min_by_key(|connection| Rc::strong_count(connection));
        least.map(Rc::clone)
    }

    async fn connect(&self) -> Result<Connection, Fault> {
        let (client, driver) = self.settings.way.connect().await?;
        // The receiver lives as long as the thread that polls this.
        let _ = self.drivers.unbounded_send(driver);
        let schema = &self.settings.schema;
        client
            .batch_execute(&format!(
                // A plan that was made while the tables were empty is kept: it must not be to read all
                // of them. One that has no other way is taken for so dear then that it would be compiled
                // first, which takes longer than any statement here.
                "SET search_path TO \"{schema}\"; SET enable_seqscan TO off;
                 SET enable_bitmapscan TO off; SET jit TO off"
            ))
            .await?;
        Ok(Connection {
            client,
            statements: RefCell::default(),
        })
    }
}

impl Connection {
    /// The rows of a statement, which is prepared once.
    pub(super) async fn rows(
        &self,
        sql: &'static str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Fault> {
        let prepared = self.statements.borrow().get(sql).cloned();
        let statement = if let Some(statement) = prepared {
            statement
        } else {
            let statement = self.client.prepare(sql).await?;
            let mut statements = self.statements.borrow_mut();
            statements.insert(sql, statement.clone());
            statement
        };
        Ok(self.client.query(&statement, params).await?)
    }

    /// The first row of a statement, if there is one.
    pub(super) async fn row(
        &self,
        sql: &'static str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Row>, Fault> {
        Ok(self.rows(sql, params).await?.into_iter().next())
    }

    /// The first column of the one row that a statement always gives.
    pub(super) async fn value<T: for<'a> tokio_postgres::types::FromSql<'a>>(
        &self,
        sql: &'static str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<T, Fault> {
        let row = self.row(sql, params).await?.ok_or(Fault::NoRow)?;
        Ok(row.try_get(0)?)
    }

    /// Statements without parameters.
    pub(super) async fn batch(&self, sql: &str) -> Result<(), Fault> {
        Ok(self.client.batch_execute(sql).await?)
    }
}
