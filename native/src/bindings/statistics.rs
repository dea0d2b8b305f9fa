//! `RecordingPass`: the statistics of a recording as Python sees them.

use std::sync::Mutex;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::detached;
use aerotape_format::scan::recording::RecordingRange;
use aerotape_format::scan::statistics::{Bin, Counts, Gap, Pass};

/// Positions from and to, messages, and bytes of payload, padding and gaps; then lengths of
/// messages: shortest, median, 99th percentile, longest.
type BinRow = (i64, i64, u64, u64, u64, u64, u64, u64, u64, u64);

#[pyclass(module = "aerotape._native", frozen, get_all)]
pub struct RecordingCounts {
    messages: u64,
    payload_bytes: u64,
    fragments: u64,
    fragmented_messages: u64,
    skipped_fragments: u64,
    unfinished_fragments: u64,
    padding_frames: u64,
    padding_bytes: u64,
    filler_frames: u64,
    filler_bytes: u64,
    shortest_bytes: u64,
    longest_bytes: u64,
    lengths: Vec<(u64, u64, u64, u64)>,
    gap_count: u64,
    gap_bytes: u64,
    gaps: Vec<(i64, i64, String, String)>,
    bins: Vec<BinRow>,
}

#[pyclass(module = "aerotape._native", frozen)]
pub struct RecordingPass {
    edges: Vec<i64>,
    pass: Mutex<Pass>,
}

impl RecordingPass {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        run: impl FnOnce(&mut Pass) -> T + Send,
    ) -> PyResult<T> {
        detached(py, &self.pass, "pass", run)
    }
}

#[pymethods]
impl RecordingPass {
    #[new]
    fn new(range: RecordingRange, edges: Vec<i64>) -> PyResult<Self> {
        let (recording, range) = range.check()?;
        let (from, to) = (range.from, range.to);
        if from < recording.start_position || from > to || to > range.limit {
            return Err(PyValueError::new_err(format!(
                "positions {from} to {to} are not a range of the recording"
            )));
        }
        let fits = match edges.as_slice() {
            [] => true,
            [first, .., last] => {
                *first == from && *last == to && edges.is_sorted_by(|one, next| one < next)
            }
            [_] => false,
        };
        if !fits {
            return Err(PyValueError::new_err(format!(
                "edges must ascend from {from} to {to}"
            )));
        }
        Ok(Self {
            pass: Mutex::new(Pass::new(recording, range, edges.clone())),
            edges,
        })
    }

    fn advance(&self, py: Python<'_>, length: i64) -> PyResult<bool> {
        self.with(py, |pass| pass.advance(length))
    }

    #[getter]
    fn position(&self, py: Python<'_>) -> PyResult<i64> {
        self.with(py, |pass| pass.position())
    }

    fn counts(&self, py: Python<'_>) -> PyResult<RecordingCounts> {
        self.with(py, |pass| {
            let counts = pass.counts();
            RecordingCounts {
                messages: counts.lengths.messages,
                payload_bytes: counts.lengths.bytes,
                fragments: counts.fragments,
                fragmented_messages: counts.fragmented_messages,
                skipped_fragments: pass.skipped_fragments(),
                unfinished_fragments: pass.unfinished_fragments(),
                padding_frames: counts.padding_frames,
                padding_bytes: counts.padding_bytes,
                filler_frames: counts.filler_frames,
                filler_bytes: counts.filler_bytes,
                shortest_bytes: counts.lengths.shortest,
                longest_bytes: counts.lengths.longest,
                lengths: counts.lengths.rows(),
                gap_count: counts.gap_count,
                gap_bytes: counts.gap_bytes,
                gaps: counts.gaps.iter().map(gap_row).collect(),
                bins: bin_rows(counts, &self.edges),
            }
        })
    }
}

fn gap_row(gap: &Gap) -> (i64, i64, String, String) {
    let kind = gap.kind.name().to_owned();
    (gap.from, gap.to, kind, gap.detail.clone())
}

#[expect(clippy::indexing_slicing, reason = "windows of two")]
fn bin_rows(counts: &Counts, edges: &[i64]) -> Vec<BinRow> {
    let row = |(bin, edges): (&Bin, &[i64])| {
        (
            edges[0],
            edges[1],
            bin.messages,
            bin.payload_bytes,
            bin.padding_bytes,
            bin.gap_bytes,
            bin.shortest,
            bin.median,
            bin.percentile_99,
            bin.longest,
        )
    };
    counts.bins.iter().zip(edges.windows(2)).map(row).collect()
}
