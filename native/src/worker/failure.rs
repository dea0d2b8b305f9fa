//! Why a session ended early, as it is reported to a control client.

use nix::sys::resource::{Resource, getrlimit};
use std::any::Any;
use std::fmt;
use std::io;
use std::path::Path;

/// Error codes of the archive protocol that the worker reports (`relevantId` of a ControlResponse).
pub mod code {
    pub const GENERIC: i32 = 0;
    pub const STORAGE_SPACE: i32 = 11;
    pub const INVALID_POSITION: i32 = 16;
}

/// A failure with its error code in the archive protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub code: i32,
    pub message: String,
}

impl Failure {
    pub fn generic(message: impl Into<String>) -> Self {
        Self {
            code: code::GENERIC,
            message: message.into(),
        }
    }

    /// A panic, which is a mistake of this program.
    pub fn panicked(panic: &(dyn Any + Send)) -> Self {
        Self::generic(format!(
            "internal error in the worker: {}: please report it with the archive's output",
            panic_text(panic)
        ))
    }

    pub fn invalid_position(message: impl Into<String>) -> Self {
        Self {
            code: code::INVALID_POSITION,
            message: message.into(),
        }
    }

    /// An operation on a file failed. Running out of space (or quota) has a separate code, for
    /// the remedy is the operator's.
    pub fn storage(action: &str, path: &Path, error: &io::Error) -> Self {
        let (code, advice) = match error.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT) => (
                code::STORAGE_SPACE,
                ": free space in the archive directory, then record again".to_owned(),
            ),
            Some(libc::EMFILE) => (code::GENERIC, too_many_files()),
            _ => (code::GENERIC, String::new()),
        };
        Self {
            code,
            message: format!("cannot {action} {}: {error}{advice}", path.display()),
        }
    }
}

fn too_many_files() -> String {
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| soft);
    format!(
        ": the archive's process may have {limit}; raise its limit (`ulimit -n`, systemd's \
         LimitNOFILE), then record again"
    )
}

/// What a panic says; where it was is on the standard error stream.
pub fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without a text")
}

impl From<crate::errors::Error> for Failure {
    fn from(error: crate::errors::Error) -> Self {
        Self::generic(error.message())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_has_the_text_of_the_panic() {
        let number = 7;
        let panics: [(&dyn Fn(), &str); 3] = [
            (&|| panic!("fixed"), "fixed"),
            (&|| panic!("number {number}"), "number 7"),
            (&|| std::panic::panic_any(5), "a panic without a text"),
        ];
        for (panics, text) in panics {
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics));
            assert_eq!(panic_text(&*caught.unwrap_err()), text);
        }
    }
}
