//! Events that native threads report to the conductor.

use crate::aeron::{Image, ImageHandle};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

pub enum Event {
    Message {
        subscription_registration_id: i64,
        image_correlation_id: i64,
        session_id: i32,
        payload: Vec<u8>,
        position: i64,
    },
    ImageAvailable(ImageHandle),
    ImageUnavailable {
        subscription_registration_id: i64,
        image_correlation_id: i64,
    },
    ClientClosed,
    ClientError {
        code: i32,
        message: String,
    },
    RecordingStopped {
        recording_id: i64,
        position: i64,
        error_code: i32,
        message: Option<String>,
    },
    /// A requested sync is done: the recording is durable up to this position.
    RecordingSynced {
        recording_id: i64,
        position: i64,
    },
    TimeIndexFailed {
        recording_id: i64,
        message: String,
    },
    ReplayReady {
        replay_session_id: i64,
        /// Whether the response to the client has been sent.
        is_answered: bool,
    },
    ReplayDone {
        replay_session_id: i64,
        position: i64,
        error_code: i32,
        message: Option<String>,
    },
    /// The thread of a worker has panicked: it records and replays no more.
    WorkerFailed {
        name: String,
        why: String,
    },
}

impl Event {
    /// The event as the tuple that `aerotape/_native/` describes.
    pub fn into_tuple(self, py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
        match self {
            Self::Message {
                subscription_registration_id: subscription_id,
                image_correlation_id: image_id,
                session_id,
                payload,
                position,
            } => {
                let payload = PyBytes::new(py, &payload);
                let message = "message";
                (
                    message,
                    subscription_id,
                    image_id,
                    session_id,
                    payload,
                    position,
                )
                    .into_pyobject(py)
            }
            Self::ImageAvailable(image) => ("image_available", Image::new(image)).into_pyobject(py),
            Self::ImageUnavailable {
                subscription_registration_id: subscription_id,
                image_correlation_id: image_id,
            } => ("image_unavailable", subscription_id, image_id).into_pyobject(py),
            Self::ClientClosed => ("client_closed",).into_pyobject(py),
            Self::ClientError { code, message } => {
                ("client_error", code, message).into_pyobject(py)
            }
            Self::RecordingStopped {
                recording_id: id,
                position,
                error_code,
                message,
            } => ("recording_stopped", id, position, error_code, message).into_pyobject(py),
            Self::RecordingSynced {
                recording_id: id,
                position,
            } => ("recording_synced", id, position).into_pyobject(py),
            Self::TimeIndexFailed {
                recording_id,
                message,
            } => ("time_index_failed", recording_id, message).into_pyobject(py),
            Self::ReplayReady {
                replay_session_id,
                is_answered: true,
            } => ("replay_answered", replay_session_id).into_pyobject(py),
            Self::ReplayReady {
                replay_session_id, ..
            } => ("replay_ready", replay_session_id).into_pyobject(py),
            Self::ReplayDone {
                replay_session_id: id,
                position,
                error_code,
                message,
            } => ("replay_done", id, position, error_code, message).into_pyobject(py),
            Self::WorkerFailed { name, why } => ("worker_failed", name, why).into_pyobject(py),
        }
    }
}
