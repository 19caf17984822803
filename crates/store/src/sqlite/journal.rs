//! Journals within a transaction.

use raf_core::{JournalEntry, JournalKey, RunClaim, RunRecord, WriteOutcome};
use rusqlite::params;

use super::fault::Fault;
use super::records::holds;
use super::transaction::Transaction;
use crate::options::milliseconds;
use crate::record_row::{column, count};

/// What one append brings.
pub(super) struct Append<'a> {
    pub(super) key: &'a JournalKey,
    pub(super) claim: &'a RunClaim,
    pub(super) base: u64,
    pub(super) entries: &'a [String],
    pub(super) record: Option<&'a RunRecord>,
}

impl Transaction<'_> {
    /// Appends to a journal and writes the root run's record.
    pub(super) fn append(&self, append: &Append<'_>) -> Result<WriteOutcome, Fault> {
        let run = self.run(&append.key.root)?;
        let new = append.record.filter(|record| record.revision == 0);
        let run = match (run, new) {
            (None, Some(_)) if append.base > 0 => return Ok(WriteOutcome::Conflict),
            (None, Some(record)) => {
                let created = self.create(record, Some(append.claim))?;
                if created != WriteOutcome::Conflict {
                    self.insert(append)?;
                }
                return Ok(created);
            }
            (None, None) => return Ok(WriteOutcome::Conflict),
            (Some(run), _) => run,
        };
        if !holds(append.claim, &append.key.root, &run) {
            return Ok(WriteOutcome::ClaimLost);
        }
        let length = self.length(append.key)?;
        let end = append.base + append.entries.len() as u64;
        let revision = append.record.map(|record| column(record.revision));
        let revision = revision.transpose()?;
        if length != append.base || revision.is_some_and(|revision| revision != run.revision) {
            let written = match append.record {
                Some(_) => count(run.revision),
                None => end,
            };
            let repeated = length == end && self.is_repeated(append)?;
            return Ok(if repeated {
                WriteOutcome::Written(written)
            } else {
                WriteOutcome::Conflict
            });
        }
        self.insert(append)?;
        self.keep_alive(append, run.lease_until, run.expires_at)?;
        let written = match append.record {
            Some(record) => {
                self.refuse_later_format(&run, record)?;
                self.write_record(record)?
            }
            None => end,
        };
        Ok(WriteOutcome::Written(written))
    }

    /// How many entries a journal has.
    fn length(&self, key: &JournalKey) -> Result<u64, Fault> {
        let last = self.one(
            "SELECT MAX(place) FROM raf_journal WHERE root_id = ?1 AND run_id = ?2",
            [key.root.as_str(), key.run.as_str()],
            |row| row.get::<_, Option<i64>>(0),
        )?;
        Ok(last.flatten().map_or(0, |last| count(last + 1)))
    }

    fn insert(&self, append: &Append<'_>) -> Result<(), Fault> {
        for (place, entry) in (column(append.base)?..).zip(append.entries) {
            self.execute(
                "INSERT INTO raf_journal (root_id, run_id, place, entry) VALUES (?1, ?2, ?3, ?4)",
                params![
                    append.key.root.as_str(),
                    append.key.run.as_str(),
                    place,
                    entry
                ],
            )?;
        }
        Ok(())
    }

    /// A write is a sign of life. It is written down only when it changes much: a step then costs its
    /// own rows and nothing else.
    fn keep_alive(
        &self,
        append: &Append<'_>,
        lease_until: i64,
        expires_at: i64,
    ) -> Result<(), Fault> {
        let id = append.key.root.as_str();
        let lease_end = self.lease_end();
        if lease_end - lease_until > milliseconds(self.options.lease) / 4 {
            self.execute(
                "UPDATE raf_runs SET lease_until = ?2 WHERE run_id = ?1",
                (id, lease_end),
            )?;
        }
        let expiry = self.run_expiry();
        if expiry - expires_at > milliseconds(self.options.lifetime) / 100 {
            self.execute(
                "UPDATE raf_runs SET expires_at = ?2 WHERE run_id = ?1",
                (id, expiry),
            )?;
            self.set_due(id)?;
        }
        Ok(())
    }

    /// Whether the last append is made again as it was.
    fn is_repeated(&self, append: &Append<'_>) -> Result<bool, Fault> {
        if let Some(record) = append.record {
            let mut written = record.clone();
            written.revision += 1;
            if self.load(&append.key.root)?.as_ref() != Some(&written) {
                return Ok(false);
            }
        }
        Ok(self.texts(append.key, append.base)? == append.entries)
    }

    fn texts(&self, key: &JournalKey, from: u64) -> Result<Vec<String>, Fault> {
        self.all(
            "SELECT entry FROM raf_journal WHERE root_id = ?1 AND run_id = ?2 AND place >= ?3
             ORDER BY place",
            params![key.root.as_str(), key.run.as_str(), column(from)?],
            |row| row.get(0),
        )
    }

    /// A journal, from an entry on.
    pub(super) fn journal(&self, key: &JournalKey, from: u64) -> Result<Vec<JournalEntry>, Fault> {
        let texts = self.texts(key, from.min(i64::MAX.unsigned_abs()))?;
        let entries = texts.iter().map(|text| JournalEntry::from_json(text));
        Ok(entries.collect::<raf_core::Result<_>>()?)
    }
}
