//! Files of an archive directory opened for writing, never through a symbolic link: the same as
//! `catalog/no_follow.py`, for the writers here.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

const FILE_MODE: u32 = 0o640;

/// Open a file, which is not a symbolic link. A pipe of that name is not waited for.
pub fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options
        .mode(FILE_MODE)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
        .map_err(|error| {
            if error.raw_os_error() == Some(libc::ELOOP) && path.is_symlink() {
                let name = path.file_name().unwrap_or_default().display();
                return io::Error::other(format!(
                    "{name} is a symbolic link, not a regular file, and nothing is written \
                     through it: remove it, or put what it leads to in its place"
                ));
            }
            error
        })
}
