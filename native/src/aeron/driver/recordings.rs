//! Recordings in a media driver's directory, which a driver deletes when it starts.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;

const CATALOG_FILE_NAME: &str = "archive.catalog";
const SEGMENT_SUFFIX: &str = ".rec";
/// The length of the catalog's header, after which that of the first entry follows.
const CATALOG_HEADER_LENGTH: usize = 32;

/// Return the first directory with recordings of an archive in `directory`, or that a link there
/// leads to. What cannot be read has none: it cannot be deleted either.
pub fn find(directory: &Path) -> Option<PathBuf> {
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if is_recorded(&path) {
                return Some(folder);
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(path),
                // The link is deleted, and with it the way to what it leads to.
                Ok(kind) if kind.is_symlink() && is_archive(&path) => return Some(path),
                _ => {}
            }
        }
    }
    None
}

fn is_archive(directory: &Path) -> bool {
    let entries = fs::read_dir(directory);
    entries.is_ok_and(|found| found.flatten().any(|entry| is_recorded(&entry.path())))
}

/// Whether a file is a segment file, or a catalog with an entry.
fn is_recorded(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(SEGMENT_SUFFIX) || (name == CATALOG_FILE_NAME && has_entry(path))
}

fn has_entry(catalog: &Path) -> bool {
    if !catalog.is_file() {
        return false;
    }
    let mut bytes = [0u8; CATALOG_HEADER_LENGTH + 4];
    match fs::File::open(catalog).and_then(|mut file| file.read_exact(&mut bytes)) {
        Ok(()) => bytes
            .get(CATALOG_HEADER_LENGTH..)
            .is_some_and(|length| length.iter().any(|&byte| byte != 0)),
        Err(error) => error.kind() != std::io::ErrorKind::UnexpectedEof,
    }
}

/// Return the directory of recordings that a media driver in `directory` would delete.
#[pyfunction]
pub fn recordings_in(py: Python<'_>, directory: PathBuf) -> Option<PathBuf> {
    py.detach(|| find(&directory))
}
