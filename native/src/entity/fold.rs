//! The rules by which actions change a journal.
//!
//! Readers fold the end of the log over the head in the store, the replicator folds each batch, and
//! Spark's tables (`journals.rs`) fold all actions without a head: each by these rules, so all have
//! the same journal after each record.
//!
//! | action | no journal | a journal |
//! | --- | --- | --- |
//! | append of k to n | begins one; events 1 to k - 1 are deleted | adds those after its last |
//! | conditional append of k to n | as append if k is 1 | as append if its last is k - 1 |
//! | delete up to d | begins one that ends at d, all deleted | deletes its events up to d |
//! | purge | nothing | deletes it |
//! | conditional purge | nothing | deletes it if its last change is at the position given |
//! | snapshot of n | nothing | is stored if n is at most its last |
//! | mark | nothing | nothing |
//!
//! *Its last* is its last sequence number, or the last deleted one if that is higher. A conditional
//! append for which the table has nothing is refused. A change is an append, a refused one too, or a
//! delete; a head has the position of the last one, and actions up to there are ignored, so that a
//! part of the log can be folded again. `tests/entity/test_semantics.py` compares replicator, reader
//! and Spark's tables with this table and by random histories.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

// `ActionKind` of the schema.
const APPEND: i32 = 1;
const MARK: i32 = 2;
const DELETE: i32 = 3;
const PURGE: i32 = 4;
const CONDITIONAL_APPEND: i32 = 5;
const CONDITIONAL_PURGE: i32 = 6;
const SNAPSHOT: i32 = 7;

/// Kind and range of an action; `codecs/entity/actions.py` describes them.
#[derive(FromPyObject)]
pub struct ActionHeader {
    pub kind: i32,
    pub from_seq_nr: i64,
    pub to_seq_nr: i64,
}

/// A journal's head in a store.
#[derive(FromPyObject)]
pub struct Head {
    offset: i64,
    seq_nr: i64,
    delete_to: Option<i64>,
}

/// See `aerotape/_native/`.
#[pyclass(
    frozen,
    module = "aerotape._native",
    rename_all = "SCREAMING_SNAKE_CASE"
)]
#[derive(Clone, Copy)]
pub enum Effect {
    None,
    Added,
    Refused,
    Deleted,
    Purged,
    Snapshot,
}

/// See `aerotape/_native/`.
#[pyclass(eq, get_all, module = "aerotape._native")]
#[derive(Clone, Default, PartialEq)]
pub struct Fold {
    pub exists: bool,
    pub begun_at: Option<i64>,
    pub offset: i64,
    pub seq_nr: i64,
    pub deleted: i64,
    pub after: i64,
}

impl Fold {
    /// Apply an action whose record is at a position.
    pub fn apply(&mut self, action: &ActionHeader, offset: i64) -> Result<Effect, String> {
        let &ActionHeader {
            kind,
            from_seq_nr: first,
            to_seq_nr: last,
        } = action;
        // A purge at the head's position is repeated.
        if self.exists && (offset < self.offset || offset == self.offset && kind != PURGE) {
            return Ok(Effect::None);
        }
        Ok(match (kind, self.exists) {
            (APPEND, _) => self.append(first, last, offset),
            (CONDITIONAL_APPEND, _) if self.last() == before(first) => {
                self.append(first, last, offset)
            }
            (CONDITIONAL_APPEND, _) => {
                self.offset = offset;
                Effect::Refused
            }
            (DELETE, _) => self.delete(last, offset),
            (PURGE, true) => self.purge(),
            (CONDITIONAL_PURGE, true) if self.offset == last => self.purge(),
            (SNAPSHOT, true) if last <= self.last() => Effect::Snapshot,
            (PURGE | CONDITIONAL_PURGE | SNAPSHOT | MARK, _) => Effect::None,
            _ => return Err(format!("{kind} is not a kind of action")),
        })
    }

    fn append(&mut self, first: i64, last: i64, offset: i64) -> Effect {
        if !self.exists {
            self.begin(offset, 0, before(first));
        }
        self.after = self.last();
        self.offset = offset;
        self.seq_nr = self.seq_nr.max(last);
        Effect::Added
    }

    fn delete(&mut self, up_to: i64, offset: i64) -> Effect {
        if !self.exists {
            self.begin(offset, up_to, up_to);
        }
        self.offset = offset;
        self.deleted = self.deleted.max(up_to.min(self.seq_nr));
        Effect::Deleted
    }

    fn purge(&mut self) -> Effect {
        self.exists = false;
        Effect::Purged
    }

    fn begin(&mut self, offset: i64, seq_nr: i64, deleted: i64) {
        self.exists = true;
        self.begun_at = Some(offset);
        self.seq_nr = seq_nr;
        self.deleted = deleted;
    }
}

#[pymethods]
impl Fold {
    #[new]
    #[pyo3(signature = (head = None))]
    fn new(head: Option<Head>) -> Self {
        head.map_or_else(Self::default, |head| Self {
            exists: true,
            offset: head.offset,
            seq_nr: head.seq_nr,
            deleted: head.delete_to.unwrap_or(0),
            ..Self::default()
        })
    }

    #[getter]
    pub fn last(&self) -> i64 {
        if self.exists {
            self.seq_nr.max(self.deleted)
        } else {
            0
        }
    }

    #[pyo3(name = "apply")]
    fn apply_header(&mut self, action: ActionHeader, offset: i64) -> PyResult<Effect> {
        self.apply(&action, offset).map_err(PyValueError::new_err)
    }

    fn copy(&self) -> Self {
        self.clone()
    }
}

/// The sequence number in front of one, which need not be valid.
fn before(seq_nr: i64) -> i64 {
    seq_nr.saturating_sub(1)
}
