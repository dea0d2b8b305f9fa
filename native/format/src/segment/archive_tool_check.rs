//! The verdict of Aeron's ArchiveTool on a segment file, where it differs from ours.
//!
//! It finds the end of the frames by their lengths alone, and then looks whether term offset, term
//! id and stream id of each are those of its place, up to the first that is not. A check that
//! marks recordings as that tool does goes by this.

use std::fs::File;
use std::io;
use std::path::Path;

use super::reader::Reader;
use super::walk::WalkRange;
use crate::checksum::Checksum;
use crate::frame::{FrameHeader, HEADER_LENGTH, align};

const PAGE_LENGTH: u64 = 4096;

/// The result of the check; `aerotape/_native/` describes the fields.
#[cfg_attr(
    feature = "python",
    pyo3::pyclass(frozen, get_all, module = "aerotape._native")
)]
#[derive(Debug)]
pub struct ReferenceCheck {
    pub end_offset: u64,
    pub doubtful_offset: i64,
    pub invalid_offset: i64,
    pub invalid: String,
}

/// Check a file from the start of the range to its limit.
pub fn run(path: &Path, range: &WalkRange) -> io::Result<ReferenceCheck> {
    let file = super::open_regular(path)?;
    let limit = range.limit.min(file.metadata()?.len());
    let (end_offset, last) = end_by_lengths(&file, limit, range.start_offset)?;
    let doubtful = match last {
        Some((offset, aligned)) => is_doubtful(&file, limit, offset, aligned, range.checksum)?,
        None => false,
    };
    let fault = first_fault(&file, limit, range)?;
    Ok(ReferenceCheck {
        end_offset,
        doubtful_offset: match last {
            Some((offset, _)) if doubtful => offset as i64,
            _ => -1,
        },
        invalid_offset: fault.as_ref().map_or(-1, |fault| fault.0 as i64),
        invalid: fault.map(|fault| fault.1).unwrap_or_default(),
    })
}

/// Return the offset after the frames, and offset and aligned length of the last one.
fn end_by_lengths(file: &File, limit: u64, start: u64) -> io::Result<(u64, Option<(u64, u64)>)> {
    let mut reader = Reader::new(file, limit);
    let (mut offset, mut last) = (start, None);
    while offset < limit {
        let length = reader
            .at(offset, 4)?
            .try_into()
            .map_or(0, i32::from_le_bytes);
        if length <= 0 {
            break;
        }
        let aligned = align(length as usize) as u64;
        last = Some((offset, aligned));
        offset += aligned;
    }
    Ok((offset, last))
}

fn is_doubtful(
    file: &File,
    limit: u64,
    offset: u64,
    aligned: u64,
    checksum: Option<Checksum>,
) -> io::Result<bool> {
    let end = offset + aligned;
    if offset / PAGE_LENGTH == (end - 1) / PAGE_LENGTH {
        return Ok(false);
    }
    if aligned < HEADER_LENGTH as u64 || end > limit {
        return Ok(true);
    }
    let mut reader = Reader::new(file, limit);
    let stored = FrameHeader::read(reader.at(offset, HEADER_LENGTH)?);
    if stored.is_some_and(|header| header.is_padding()) {
        // Of a padding frame only the header is written. ArchiveTool takes the rest for lost pages.
        return Ok(false);
    }
    if let Some(checksum) = checksum {
        let computed = reader.checksum(checksum, offset, aligned as usize)?;
        if computed.is_some() && computed == stored.map(|header| header.session_id) {
            return Ok(false);
        }
    }
    let mut page = (offset / PAGE_LENGTH + 1) * PAGE_LENGTH;
    while page < end {
        let length = PAGE_LENGTH.min(end - page);
        if reader
            .at(page, length as usize)?
            .iter()
            .all(|&byte| byte == 0)
        {
            return Ok(true);
        }
        page += PAGE_LENGTH;
    }
    Ok(false)
}

/// Find the first frame that is not what its place asks for: its offset, and what it is.
fn first_fault(file: &File, limit: u64, range: &WalkRange) -> io::Result<Option<(u64, String)>> {
    let mut reader = Reader::new(file, limit);
    let mut offset = range.start_offset;
    loop {
        let Some(header) = FrameHeader::read(reader.at(offset, HEADER_LENGTH)?) else {
            return Ok(Some((offset, "the file ends".to_owned())));
        };
        if header.frame_length == 0 {
            return Ok(None);
        }
        let place = range.geometry.check_place(&header, range.position(offset));
        if place.is_err() {
            return Ok(Some((offset, "a frame of another place".to_owned())));
        }
        let aligned = header.aligned_length();
        if aligned < HEADER_LENGTH || offset + aligned as u64 > limit {
            let length = header.frame_length;
            return Ok(Some((offset, format!("a frame of {length} bytes"))));
        }
        if let Some(checksum) = range.checksum
            && !header.is_padding()
            && reader.checksum(checksum, offset, aligned)? != Some(header.session_id)
        {
            return Ok(Some((offset, "its checksum fails".to_owned())));
        }
        offset += aligned as u64;
        if offset >= limit {
            return Ok(None);
        }
    }
}
