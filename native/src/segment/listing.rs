//! All segment files of a directory with what they take, in one pass.
//!
//! A directory may hold tens of thousands of them. The names are those that Python gives
//! (`catalog/segment_files.py`).

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;

use crate::errors::{Error, Result};

/// What `st_blocks` counts, whatever the file system.
const BLOCK_LENGTH: i64 = 512;
const NANOS: i64 = 1_000_000_000;

/// Recording id, base position, bytes of storage, time of the last write in ns since 1970.
type Listed = (i64, i64, i64, i64);

#[pyfunction]
pub fn list_segments(py: Python<'_>, directory: PathBuf) -> PyResult<(Vec<Listed>, Vec<String>)> {
    py.detach(|| list(&directory)).map_err(PyErr::from)
}

fn list(directory: &Path) -> Result<(Vec<Listed>, Vec<String>)> {
    let failed = |error: io::Error| Error::io(directory, &error);
    let mut segments = Vec::new();
    let mut others = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let Some((recording_id, base)) = parse(&name) else {
            // Such a name is none of ours.
            if let Ok(name) = name.into_string() {
                others.push(name);
            }
            continue;
        };
        let path = directory.join(&name);
        match fs::metadata(&path) {
            Ok(status) => segments.push((
                recording_id,
                base,
                i64::try_from(status.blocks())
                    .unwrap_or(i64::MAX)
                    .saturating_mul(BLOCK_LENGTH),
                status
                    .mtime()
                    .saturating_mul(NANOS)
                    .saturating_add(status.mtime_nsec()),
            )),
            // Deleted meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io(&path, &error)),
        }
    }
    segments.sort_unstable();
    Ok((segments, others))
}

/// The two numbers in the name of a segment file.
fn parse(name: &OsStr) -> Option<(i64, i64)> {
    let (recording_id, rest) = number(name.as_bytes())?;
    let (base, suffix) = number(rest.strip_prefix(b"-")?)?;
    (suffix == b".rec").then_some((recording_id, base))
}

/// A number at the beginning, as it is written without signs or leading zeros, and what follows.
fn number(text: &[u8]) -> Option<(i64, &[u8])> {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(length);
    if digits.len() > 1 && digits[0] == b'0' {
        return None;
    }
    let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some((number, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_that_two_numbers_are_given_is_taken_apart() {
        assert_eq!(parse(OsStr::new("0-0.rec")), Some((0, 0)));
        assert_eq!(
            parse(OsStr::new("12-9223372036854775807.rec")),
            Some((12, i64::MAX))
        );
        for name in [
            "0-00.rec",
            "00-0.rec",
            "-0.rec",
            "0-.rec",
            "0--1.rec",
            "+1-0.rec",
            "0-0.rec.del",
            "0-0",
            "0-9223372036854775808.rec",
            " 0-0.rec",
        ] {
            assert_eq!(parse(OsStr::new(name)), None, "{name}");
        }
    }
}
