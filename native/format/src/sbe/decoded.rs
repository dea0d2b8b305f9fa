//! Payloads decoded into rows, and the handling of malformed ones.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;

/// How payloads that do not match their schema are handled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// Decoding ends before the first one.
    Fail,
    Drop,
    /// They are rows of nulls.
    Null,
}

/// Which payloads have become rows of the batch.
#[derive(Default)]
pub struct Kept {
    pub rows: usize,
    /// Their indices; `None` as long as all have.
    pub chosen: Option<Vec<u32>>,
}

impl Kept {
    #[inline]
    pub fn keep(&mut self, payload: usize) {
        if let Some(chosen) = &mut self.chosen {
            chosen.push(payload as u32);
        }
        self.rows += 1;
    }

    pub fn leave_out(&mut self) {
        let rows = self.rows as u32;
        self.chosen.get_or_insert_with(|| (0..rows).collect());
    }
}

pub struct Decoded {
    pub batch: RecordBatch,
    pub kept: Kept,
    /// Indices of malformed payloads, and what is wrong with each.
    pub problems: Vec<(usize, String)>,
    /// By column, how many of its texts had bytes that became their numbers.
    pub escaped: BTreeMap<String, u64>,
}
