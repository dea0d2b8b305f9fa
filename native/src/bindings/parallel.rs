//! Work on many pieces of files by several threads, while Python waits and shows how far it is.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use aerotape_format::segment::progress::Progress;
use pyo3::prelude::*;

const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// Do `work` for each number below `count`, on as many threads as there are processors.
///
/// The interpreter is free meanwhile; several times a second it is asked whether there was a
/// signal, and `report` receives the number of bytes done. If either raises, what has not been
/// begun is left, and the exception is raised here.
pub fn run<R, F>(
    py: Python<'_>,
    count: usize,
    report: Option<&Py<PyAny>>,
    work: F,
) -> PyResult<Vec<R>>
where
    R: Send,
    F: Fn(usize, &Progress) -> R + Send + Sync,
{
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let progress = Progress::default();
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<R>>> = (0..count).map(|_| Mutex::new(None)).collect();
    py.detach(|| {
        std::thread::scope(|scope| {
            let (alive, ended) = mpsc::channel::<()>();
            for _ in 0..threads.min(count) {
                let alive = alive.clone();
                let (work, next, progress, results) = (&work, &next, &progress, &results);
                scope.spawn(move || {
                    while !progress.is_cancelled() {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(slot) = results.get(index) else {
                            break;
                        };
                        let result = work(index, progress);
                        if let Ok(mut place) = slot.lock() {
                            *place = Some(result);
                        }
                    }
                    drop(alive);
                });
            }
            drop(alive);
            loop {
                match ended.recv_timeout(REPORT_INTERVAL) {
                    Err(RecvTimeoutError::Disconnected) => return Ok(()),
                    Ok(()) | Err(RecvTimeoutError::Timeout) => {}
                }
                let reported: PyResult<()> = Python::attach(|py| {
                    py.check_signals()?;
                    if let Some(report) = report {
                        report.call1(py, (progress.bytes(),))?;
                    }
                    Ok(())
                });
                if reported.is_err() {
                    progress.cancel();
                    return reported;
                }
            }
        })
    })?;
    Ok(results
        .into_iter()
        .filter_map(|slot| slot.into_inner().ok().flatten())
        .collect())
}
