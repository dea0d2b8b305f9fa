//! Lists all segment files of a directory with their storage and times, in one pass.
//!
//! A directory may hold tens of thousands of them.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::errors::{Error, Result};
use crate::geometry::parse_segment_name;

/// What `st_blocks` counts, whatever the file system.
const BLOCK_LENGTH: i64 = 512;
const NANOS: i64 = 1_000_000_000;

/// Recording id, base position, bytes of storage, time of the last write in ns since 1970.
pub type Listed = (i64, i64, i64, i64);

pub fn list(directory: &Path) -> Result<(Vec<Listed>, Vec<String>)> {
    let failed = |error: io::Error| Error::io(directory, &error);
    let mut segments = Vec::new();
    let mut others = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let Some((recording_id, base)) = parse_segment_name(name.as_encoded_bytes()) else {
            // Not the name of a segment file.
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
