//! The journals that all actions of a topic result in, from an empty store.

use std::collections::BTreeMap;
use std::ops::Range;
use std::str::from_utf8;
use std::sync::Arc;

use crate::arrow_capsules::ArrowRecordBatch;
use arrow_array::builder::{Int64Builder, StringBuilder, UInt32Builder};
use arrow_array::{Array, ArrayRef, BinaryArray, Int32Array, Int64Array, RecordBatch};
use arrow_schema::ArrowError;
use md5::{Digest, Md5};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::fold::{ActionHeader, Effect, Fold};
use super::json::is_json;
use super::{lower_case_hash, single_event};

const JSON: i32 = 2;

/// Row of the append, index of its head, and the last event that is left out.
type Insertion = (usize, usize, i64);
/// Row of the snapshot and index of its head.
type Saved = (usize, usize);
type Finished = (RecordBatch, RecordBatch, Vec<Insertion>, Vec<Saved>);

struct Actions<'a> {
    ids: &'a BinaryArray,
    partitions: &'a Int32Array,
    positions: &'a Int64Array,
    kinds: &'a Int32Array,
    firsts: &'a Int64Array,
    lasts: &'a Int64Array,
    metadata: &'a BinaryArray,
    forms: &'a Int32Array,
    payloads: &'a BinaryArray,
}

fn column<'a, T: Array + 'static>(batch: &'a RecordBatch, name: &str) -> PyResult<&'a T> {
    batch
        .column_by_name(name)
        .and_then(|column| column.as_any().downcast_ref())
        .ok_or_else(|| PyTypeError::new_err(format!("column {name} is missing or of another type")))
}

impl<'a> Actions<'a> {
    fn of(batch: &'a RecordBatch) -> PyResult<Self> {
        Ok(Self {
            ids: column(batch, "entityId")?,
            partitions: column(batch, "partition")?,
            positions: column(batch, "position")?,
            kinds: column(batch, "kind")?,
            firsts: column(batch, "fromSeqNr")?,
            lasts: column(batch, "toSeqNr")?,
            metadata: column(batch, "metadata")?,
            forms: column(batch, "payloadType")?,
            payloads: column(batch, "sbe_payload")?,
        })
    }

    /// The rows from `begin` on that are of the same entity.
    fn of_one(&self, begin: usize) -> Range<usize> {
        let id = self.ids.value(begin);
        let others = (begin..self.ids.len()).find(|row| self.ids.value(*row) != id);
        begin..others.unwrap_or(self.ids.len())
    }

    fn header(&self, row: usize) -> ActionHeader {
        ActionHeader {
            kind: self.kinds.value(row),
            from_seq_nr: self.firsts.value(row),
            to_seq_nr: self.lasts.value(row),
        }
    }

    /// Tags and payload of an append of one event in JSON without metadata of it.
    fn single(&self, row: usize) -> Option<(&'a str, &'a str)> {
        let seq_nr = self.lasts.value(row);
        let metadata = self.metadata.value(row);
        let is_single = self.firsts.value(row) == seq_nr && self.forms.value(row) == JSON;
        if !is_single || !(metadata.is_empty() || from_utf8(metadata).is_ok_and(is_json)) {
            return None;
        }
        single_event(self.payloads.value(row), u64::try_from(seq_nr).ok()?)
    }
}

/// A journal, and the actions that made it, by their rows.
#[derive(Default)]
struct Journal {
    fold: Fold,
    /// Of its changes the first and the last.
    begin: usize,
    last: usize,
    /// Appends, and the last event preceding those that each adds.
    appends: Vec<(usize, i64)>,
    /// Of each number the last snapshot.
    snapshots: BTreeMap<i64, usize>,
}

impl Journal {
    /// Apply the actions of one entity, in log order.
    fn of(actions: &Actions<'_>, rows: Range<usize>) -> Result<Self, String> {
        let mut journal = Self::default();
        for row in rows {
            journal.apply(row, &actions.header(row), actions.positions.value(row))?;
        }
        Ok(journal)
    }

    fn apply(&mut self, row: usize, action: &ActionHeader, position: i64) -> Result<(), String> {
        let effect = self.fold.apply(action, position)?;
        if self.fold.exists && self.fold.offset == position {
            self.last = row;
            if self.fold.begun_at == Some(position) {
                self.begin = row;
            }
        }
        match effect {
            Effect::Added => self.appends.push((row, self.fold.after)),
            Effect::Snapshot => {
                self.snapshots.insert(action.to_seq_nr, row);
            }
            Effect::Purged => *self = Self::default(),
            Effect::None | Effect::Refused | Effect::Deleted => (),
        }
        Ok(())
    }
}

/// The id of an incarnation: `record_id` of `entity/transitions.py`.
fn record_id(partition: i32, position: i64, id: &str) -> String {
    let digest = Md5::digest(format!("{partition}/{position}/{id}"));
    let number = u128::from_be_bytes(digest.into());
    let part = |shift: u32| (number >> shift) & 0xffff;
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        number >> 96,
        part(80),
        part(64),
        part(48),
        number & 0xffff_ffff_ffff
    )
}

#[derive(Default)]
struct Tables {
    begins: UInt32Builder,
    lasts: UInt32Builder,
    expiries: UInt32Builder,
    seq_nrs: Int64Builder,
    delete_tos: Int64Builder,
    segments: Int64Builder,
    record_ids: StringBuilder,
    heads: usize,
    event_rows: UInt32Builder,
    event_heads: UInt32Builder,
    event_seq_nrs: Int64Builder,
    tags: StringBuilder,
    payloads: StringBuilder,
    others: Vec<Insertion>,
    saved: Vec<Saved>,
}

impl Tables {
    fn add(
        &mut self,
        actions: &Actions<'_>,
        journal: &Journal,
        segments: i64,
        max_snapshots: usize,
    ) -> Result<(), String> {
        let bytes = actions.ids.value(journal.begin);
        let id =
            from_utf8(bytes).map_err(|error| format!("the id {bytes:?} is invalid: {error}"))?;
        let mut expiry = None;
        for (number, &(row, after)) in journal.appends.iter().enumerate() {
            let is_last = number + 1 == journal.appends.len();
            let after = after.max(journal.fold.deleted);
            let is_stored = actions.lasts.value(row) > after;
            if !is_stored && !is_last {
                continue;
            }
            let single = actions.single(row);
            if single.is_none() && is_last {
                expiry = Some(row as u32);
            }
            match single {
                _ if !is_stored => (),
                Some((tags, payload)) => {
                    self.add_event(row, actions.lasts.value(row), tags, payload)
                }
                None => self.others.push((row, self.heads, after)),
            }
        }
        let newest = journal.snapshots.values().rev().take(max_snapshots);
        self.saved.extend(newest.map(|&row| (row, self.heads)));
        self.begins.append_value(journal.begin as u32);
        self.lasts.append_value(journal.last as u32);
        self.expiries.append_option(expiry);
        self.seq_nrs.append_value(journal.fold.seq_nr);
        let deleted = Some(journal.fold.deleted).filter(|deleted| *deleted != 0);
        self.delete_tos.append_option(deleted);
        let hash = i64::from(lower_case_hash(id));
        self.segments.append_value(hash.abs() % segments);
        let partition = actions.partitions.value(journal.begin);
        let position = actions.positions.value(journal.begin);
        self.record_ids
            .append_value(record_id(partition, position, id));
        self.heads += 1;
        Ok(())
    }

    fn add_event(&mut self, row: usize, seq_nr: i64, tags: &str, payload: &str) {
        self.event_rows.append_value(row as u32);
        self.event_heads.append_value(self.heads as u32);
        self.event_seq_nrs.append_value(seq_nr);
        self.tags
            .append_option(Some(tags).filter(|tags| *tags != "[]"));
        self.payloads.append_value(payload);
    }

    fn finish(mut self) -> Result<Finished, ArrowError> {
        let heads: [(&str, ArrayRef); 7] = [
            ("begin", Arc::new(self.begins.finish())),
            ("last", Arc::new(self.lasts.finish())),
            ("expiry", Arc::new(self.expiries.finish())),
            ("seq_nr", Arc::new(self.seq_nrs.finish())),
            ("delete_to", Arc::new(self.delete_tos.finish())),
            ("segment", Arc::new(self.segments.finish())),
            ("record_id", Arc::new(self.record_ids.finish())),
        ];
        let events: [(&str, ArrayRef); 5] = [
            ("row", Arc::new(self.event_rows.finish())),
            ("head", Arc::new(self.event_heads.finish())),
            ("seq_nr", Arc::new(self.event_seq_nrs.finish())),
            ("tags", Arc::new(self.tags.finish())),
            ("payload", Arc::new(self.payloads.finish())),
        ];
        Ok((
            RecordBatch::try_from_iter(heads)?,
            RecordBatch::try_from_iter(events)?,
            self.others,
            self.saved,
        ))
    }
}

/// See `aerotape/_native/`.
#[pyfunction]
pub fn entity_journals(
    py: Python<'_>,
    batch: ArrowRecordBatch,
    segments: u32,
    max_snapshots: usize,
) -> PyResult<(
    ArrowRecordBatch,
    ArrowRecordBatch,
    Vec<Insertion>,
    Vec<Saved>,
)> {
    if segments == 0 {
        return Err(PyValueError::new_err(
            "the number of segments is 0: expected at least 1",
        ));
    }
    let batch = batch.0;
    let actions = Actions::of(&batch)?;
    let (heads, events, others, saved) = py
        .detach(|| {
            let mut tables = Tables::default();
            let mut row = 0;
            while row < batch.num_rows() {
                let rows = actions.of_one(row);
                row = rows.end;
                let journal = Journal::of(&actions, rows)?;
                if journal.fold.exists {
                    tables.add(&actions, &journal, i64::from(segments), max_snapshots)?;
                }
            }
            tables.finish().map_err(|error| error.to_string())
        })
        .map_err(PyValueError::new_err)?;
    let (heads, events) = (ArrowRecordBatch(heads), ArrowRecordBatch(events));
    Ok((heads, events, others, saved))
}
