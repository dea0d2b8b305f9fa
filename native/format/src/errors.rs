//! Failures, and the one place where they become Python exceptions (`aerotape.errors`).

/// A failure on its way to Python, named after the class in `aerotape.errors` it becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The Aeron client or driver refused: its error code and message.
    Aeron { code: i32, message: String },
    /// Something did not happen in time.
    Timeout(String),
    /// The segment file or its bytes are not what they should be.
    Segment {
        path: String,
        offset: i64,
        position: i64,
        message: String,
    },
    /// A file could not be read or written.
    Io { path: String, message: String },
    /// The object was closed.
    Closed(String),
    /// Bytes are not the expected entry of a ledger, or cannot be one; the class says why.
    Entry {
        class: &'static str,
        message: String,
    },
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn io(path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::Io {
            path: path.display().to_string(),
            message: error.to_string(),
        }
    }

    pub fn message(&self) -> String {
        match self {
            Self::Aeron { message, .. }
            | Self::Timeout(message)
            | Self::Closed(message)
            | Self::Entry { message, .. } => message.clone(),
            Self::Segment {
                path,
                offset,
                position,
                message,
            } => {
                format!("{message} (file {path}, offset {offset}, position {position})")
            }
            Self::Io { path, message } => format!("{path}: {message}"),
        }
    }
}

/// An argument that is refused: why, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidArgument(pub String);

#[cfg(feature = "python")]
mod python {
    use super::{Error, InvalidArgument};
    use pyo3::exceptions::PyValueError;
    use pyo3::prelude::*;

    impl From<InvalidArgument> for PyErr {
        fn from(error: InvalidArgument) -> Self {
            PyValueError::new_err(error.0)
        }
    }

    impl From<Error> for PyErr {
        fn from(error: Error) -> Self {
            Python::attach(|py| match raise(py, &error) {
                Ok(error) | Err(error) => error,
            })
        }
    }

    fn raise(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
        let errors = py.import("aerotape.errors")?;
        let instance = match error {
            Error::Aeron { code, message } => {
                errors.getattr("AeronError")?.call1((message, *code))?
            }
            Error::Timeout(message) => errors.getattr("AeronTimeoutError")?.call1((message,))?,
            Error::Closed(message) => errors.getattr("ClosedError")?.call1((message,))?,
            Error::Entry { class, message } => errors.getattr(*class)?.call1((message,))?,
            Error::Io { path, .. } => errors
                .getattr("StorageError")?
                .call1((error.message(), path))?,
            Error::Segment {
                path,
                offset,
                position,
                ..
            } => errors.getattr("SegmentError")?.call1((
                error.message(),
                path,
                *offset,
                *position,
            ))?,
        };
        Ok(PyErr::from_value(instance))
    }
}
