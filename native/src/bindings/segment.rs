//! Segment files walked, checked, listed and rewritten for Python, with the interpreter released.

use std::io;
use std::path::{Path, PathBuf};

use aerotape_format::checksum::Checksum;
use aerotape_format::errors::{Error, InvalidArgument};
use aerotape_format::segment::SegmentTask;
use aerotape_format::segment::archive_tool_check::{self, ReferenceCheck};
use aerotape_format::segment::check::{self, Piece, SegmentCheck, Unsettled};
use aerotape_format::segment::listing::{self, Listed};
use aerotape_format::segment::rewrite::{self, RewriteTask, RewrittenSegment};
use aerotape_format::segment::walk::{self, SegmentWalk, WalkRange};
use pyo3::prelude::*;

use super::parallel;

/// Read the frames of one file with the interpreter released.
fn read_one<T: Send>(
    py: Python<'_>,
    task: &SegmentTask,
    checksum: &str,
    read: fn(&Path, &WalkRange) -> io::Result<T>,
) -> PyResult<T> {
    task.check()?;
    let range = task.range(Checksum::parse(checksum)?);
    py.detach(|| read(&task.path, &range).map_err(|error| Error::io(&task.path, &error)))
        .map_err(PyErr::from)
}

#[pyfunction]
#[pyo3(signature = (task, *, checksum = "none"))]
pub fn walk_segment(py: Python<'_>, task: SegmentTask, checksum: &str) -> PyResult<SegmentWalk> {
    read_one(py, &task, checksum, walk::walk)
}

/// Look at a segment file as ArchiveTool does.
#[pyfunction]
#[pyo3(signature = (task, *, checksum = "none"))]
pub fn reference_check(
    py: Python<'_>,
    task: SegmentTask,
    checksum: &str,
) -> PyResult<ReferenceCheck> {
    read_one(py, &task, checksum, archive_tool_check::run)
}

/// Check segment files; results in the order of the tasks.
#[pyfunction]
#[pyo3(signature = (tasks, *, checksum = "none", progress = None))]
pub fn check_segments(
    py: Python<'_>,
    tasks: Vec<SegmentTask>,
    checksum: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<SegmentCheck>> {
    let checksum = Checksum::parse(checksum)?;
    for task in &tasks {
        task.check()?;
    }
    let pieces: Vec<Piece> = tasks
        .iter()
        .enumerate()
        .flat_map(|(index, task)| check::cut(index, task))
        .collect();
    let found = parallel::run(py, pieces.len(), progress.as_ref(), |index, progress| {
        let piece = pieces.get(index)?;
        let task = tasks.get(piece.task)?;
        Some(check::check_piece(task, piece, checksum, progress))
    })?;
    let mut checks: Vec<Unsettled> = tasks.iter().map(|_| Unsettled::default()).collect();
    for (piece, found) in pieces.iter().zip(found.into_iter().flatten()) {
        if let Some(check) = checks.get_mut(piece.task) {
            check.add(found);
        }
    }
    for index in 1..tasks.len() {
        let Some([before, after]) = tasks.get(index - 1..=index) else {
            continue;
        };
        if let Some([one, next]) = checks.get_mut(index - 1..=index)
            && before.is_followed_by(after)
        {
            one.followed_by(next);
        }
    }
    Ok(checks.into_iter().map(Unsettled::settle).collect())
}

#[pyfunction]
pub fn list_segments(py: Python<'_>, directory: PathBuf) -> PyResult<(Vec<Listed>, Vec<String>)> {
    py.detach(|| listing::list(&directory)).map_err(PyErr::from)
}

/// Put checksums into the data frames of segment files; with `dry_run` only count.
#[pyfunction]
#[pyo3(signature = (tasks, *, checksum, dry_run, progress = None))]
pub fn rewrite_checksums(
    py: Python<'_>,
    tasks: Vec<RewriteTask>,
    checksum: &str,
    dry_run: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<RewrittenSegment>> {
    let checksum = Checksum::parse(checksum)?.ok_or_else(|| {
        InvalidArgument("checksum none cannot be written: expected crc-32 or crc-32c".into())
    })?;
    let done = parallel::run(py, tasks.len(), progress.as_ref(), |index, progress| {
        let task = tasks.get(index)?;
        Some(rewrite::rewrite(task, checksum, dry_run, progress))
    })?;
    Ok(done.into_iter().flatten().collect())
}

/// Compute the checksum of `data` as a signed 32-bit integer, as it stands in a frame.
#[pyfunction]
pub fn checksum(name: &str, data: &[u8]) -> PyResult<i32> {
    Ok(Checksum::parse(name)?.map_or(0, |kind| kind.compute(data)))
}
