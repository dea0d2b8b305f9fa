//! The interpreter lock while an Aeron object is dropped.
//!
//! One rule: no thread waits with the interpreter lock held. A method that may wait takes a
//! `Python` and calls `detach`. A drop has none: `released` is for the drops that may wait, those of
//! the media driver (it joins the driver's threads), of the client (it joins its conductor) and of a
//! subscription, added or being added (it waits for a block that is being recorded). The drop of a
//! `SessionWorker` does not wait: it stops its thread without a wait for its end.

use pyo3::ffi::PyGILState_GetThisThreadState;
use pyo3::prelude::*;

/// Run `body` with the interpreter released if a thread of Python calls this. Native threads, which
/// never hold the lock, just run it.
pub(super) fn released(body: impl FnOnce() + Send) {
    // SAFETY: reads a thread-local variable of the interpreter, which exists in a loaded module.
    let is_native = unsafe { PyGILState_GetThisThreadState() }.is_null();
    let mut body = Some(body);
    let mut run = || {
        if let Some(body) = body.take() {
            body();
        }
    };
    if is_native || Python::try_attach(|py| py.detach(&mut run)).is_none() {
        // The second case is an interpreter that ends: no other thread can run.
        run();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread::spawn;
    use std::time::Duration;

    const LIMIT: Duration = Duration::from_secs(30);

    #[test]
    fn another_thread_gets_the_interpreter_meanwhile() {
        Python::initialize();
        let (done, attached) = channel();
        let (report, reported) = channel();
        Python::attach(|_| {
            spawn(move || Python::attach(|_| done.send(())));
            released(move || {
                report
                    .send(attached.recv_timeout(LIMIT))
                    .expect("a receiver")
            });
        });
        let waited = reported.recv().expect("run");
        waited.expect("the other thread had the lock");
    }

    #[test]
    fn a_native_thread_does_not_wait_for_the_interpreter() {
        Python::initialize();
        let (done, finished) = channel();
        Python::attach(|_| {
            spawn(move || released(|| done.send(()).expect("a receiver")));
            finished.recv_timeout(LIMIT).expect("without the lock");
        });
    }
}
