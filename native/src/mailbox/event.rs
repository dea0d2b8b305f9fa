//! Events that native threads report to the conductor, each of its own Python class.

use crate::aeron::{Image, ImageHandle};
use pyo3::conversion::IntoPyObjectExt;
use pyo3::prelude::*;

/// What a mailbox holds; `into_object` has the Python class of each.
pub enum Event {
    Message(ControlMessage),
    ImageAvailable(ImageHandle),
    ImageUnavailable(ImageUnavailable),
    ClientClosed(ClientClosed),
    ClientError(ClientError),
    RecordingStopped(RecordingStopped),
    RecordingSynced(RecordingSynced),
    TimeIndexFailed(TimeIndexFailed),
    ReplayReady(ReplayReady),
    ReplayDone(ReplayDone),
    WorkerFailed(WorkerFailed),
}

/// A whole message of a control subscription.
#[pyclass(frozen, get_all, module = "aerotape._native")]
pub struct ControlMessage {
    pub subscription_registration_id: i64,
    pub image_correlation_id: i64,
    pub session_id: i32,
    pub payload: Vec<u8>,
}

/// A subscription has a new image.
#[pyclass(frozen, get_all, module = "aerotape._native")]
pub struct ImageAvailable {
    image: Py<Image>,
}

/// An image of a subscription has ended.
#[pyclass(frozen, get_all, module = "aerotape._native")]
pub struct ImageUnavailable {
    pub subscription_registration_id: i64,
    pub image_correlation_id: i64,
}

/// The media driver is gone, or the client was timed out.
#[pyclass(frozen, module = "aerotape._native")]
pub struct ClientClosed {}

/// An error that the C client reports in its own thread.
#[pyclass(frozen, get_all, module = "aerotape._native")]
pub struct ClientError {
    pub code: i32,
    pub message: String,
}

/// A recording has ended; with a message it has failed.
#[pyclass(frozen, get_all, module = "aerotape._native")]
pub struct RecordingStopped {
    pub recording_id: i64,
    pub position: i64,
    pub error_code: i32,
    pub message: Option<String>,
}

/// A requested sync is done: the recording is durable up to this position.
#[pyclass(frozen, get_all, module = "aerotape._native")]
pub struct RecordingSynced {
    pub recording_id: i64,
    pub position: i64,
}

/// The time index of a recording cannot be written; the recording continues.
#[pyclass(frozen, get_all, module = "aerotape._native")]
pub struct TimeIndexFailed {
    pub recording_id: i64,
    pub message: String,
}

/// The checks of a replay have passed; its publication may not be connected yet.
#[pyclass(frozen, get_all, module = "aerotape._native")]
pub struct ReplayReady {
    pub replay_session_id: i64,
    /// Whether the replayer has sent the response to the client.
    pub is_answered: bool,
}

/// A replay has ended; with a message it has failed.
#[pyclass(frozen, get_all, module = "aerotape._native")]
pub struct ReplayDone {
    pub replay_session_id: i64,
    pub position: i64,
    pub error_code: i32,
    pub message: Option<String>,
}

/// The thread of a worker has panicked: it no longer records and replays.
#[pyclass(frozen, get_all, module = "aerotape._native")]
pub struct WorkerFailed {
    pub name: String,
    pub reason: String,
}

#[pymethods]
impl WorkerFailed {
    #[new]
    fn new(name: String, reason: String) -> Self {
        Self { name, reason }
    }
}

impl Event {
    pub fn into_object(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self {
            Self::Message(event) => event.into_py_any(py),
            Self::ImageAvailable(image) => {
                let image = Image::new(image).into_pyobject(py)?.unbind();
                ImageAvailable { image }.into_py_any(py)
            }
            Self::ImageUnavailable(event) => event.into_py_any(py),
            Self::ClientClosed(event) => event.into_py_any(py),
            Self::ClientError(event) => event.into_py_any(py),
            Self::RecordingStopped(event) => event.into_py_any(py),
            Self::RecordingSynced(event) => event.into_py_any(py),
            Self::TimeIndexFailed(event) => event.into_py_any(py),
            Self::ReplayReady(event) => event.into_py_any(py),
            Self::ReplayDone(event) => event.into_py_any(py),
            Self::WorkerFailed(event) => event.into_py_any(py),
        }
    }
}
