//! Writes the blocks of one recording to its segment files.
//!
//! It owns files and frames; `recording.rs` polls the blocks and `sync_pool.rs` makes them durable.
//! A failed write poisons the writer: nothing is written after it, and `written_position` is the
//! end of the last whole frame.

use super::failure::Failure;
use super::segment_file::{Existing, open_for_writing};
use super::sync_pool::{RecordingSync, Syncable};
use crate::checksum::Checksum;
use crate::frame::{FrameHeader, HEADER_LENGTH, SESSION_ID_OFFSET, TYPE_OFFSET, TYPE_PAD};
use crate::geometry::{StreamGeometry, segment_base_position, segment_path};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes copied and summed at a time: small enough to stay in a core's cache until written.
pub const SCRATCH_LENGTH: usize = 256 * 1024;

/// `aeron.archive.file.sync.level`: what has happened to a frame before it counts as recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SyncLevel {
    /// 0: handed to the operating system. Survives a crash of this process, not of the machine.
    Normal,
    /// 1: the file's data is on the storage device. Survives power loss.
    Data,
    /// 2: the data and all of the file's metadata (times too) are on the device.
    DataAndMetadata,
}

impl SyncLevel {
    pub fn parse(level: i32) -> Option<Self> {
        match level {
            0 => Some(Self::Normal),
            1 => Some(Self::Data),
            2 => Some(Self::DataAndMetadata),
            _ => None,
        }
    }
}

/// What all recordings of a worker share.
pub struct Storage {
    pub archive_dir: PathBuf,
    /// The archive directory, open: a sync must not need a descriptor, of which the process may
    /// have none left.
    pub directory: Arc<File>,
    pub sync_level: SyncLevel,
    pub checksum: Option<Checksum>,
}

/// The recording that is written and where in the stream writing begins (positions in bytes).
#[derive(Clone, Copy, Debug)]
pub struct Placement {
    pub recording_id: i64,
    /// First position of the recording.
    pub start_position: i64,
    /// Where the first block will stand: the start position, or a higher position in an extended one.
    pub join_position: i64,
    pub segment_length: i64,
    pub geometry: StreamGeometry,
}

pub struct SegmentWriter {
    storage: Arc<Storage>,
    placement: Placement,
    base_position: i64,
    path: PathBuf,
    /// `None` once poisoned.
    file: Option<Arc<File>>,
    written_position: i64,
    /// Gets each file; `None` when none are synced.
    sync: Option<Arc<RecordingSync>>,
}

impl SegmentWriter {
    /// Open the segment file in which the join position lies, creating it if it is a new one.
    pub fn open(
        storage: Arc<Storage>,
        placement: Placement,
        sync: Option<Arc<RecordingSync>>,
    ) -> Result<Self, Failure> {
        let Placement {
            start_position,
            join_position,
            segment_length,
            ..
        } = placement;
        let term_length = placement.geometry.term_length;
        let base_position =
            segment_base_position(start_position, join_position, term_length, segment_length);
        let path = segment_path(&storage.archive_dir, placement.recording_id, base_position);
        let existing = if join_position > start_position && join_position > base_position {
            Existing::Required
        } else {
            Existing::Blank
        };
        let mut writer = Self {
            storage,
            placement,
            base_position,
            path,
            file: None,
            written_position: join_position,
            sync,
        };
        writer.open_segment(existing)?;
        Ok(writer)
    }

    /// Position up to which whole frames are written.
    pub fn written_position(&self) -> i64 {
        self.written_position
    }

    /// Write a block as an image hands it over: whole data frames, or a single padding frame.
    ///
    /// `scratch` is where frames get their checksums, `SCRATCH_LENGTH` bytes. Returns how many
    /// bytes went to the file: of a padding frame no more than its header.
    pub fn write_block(&mut self, block: &[u8], scratch: &mut [u8]) -> Result<usize, Failure> {
        self.check_place(block)?;
        let is_padding = block
            .get(TYPE_OFFSET..TYPE_OFFSET + 2)
            .is_some_and(|frame_type| frame_type == TYPE_PAD.to_le_bytes());
        let mut length = block.len();
        match self.storage.checksum {
            // The body of a padding frame means nothing: only its header is written.
            _ if is_padding => {
                length = HEADER_LENGTH.min(length);
                self.write(block.get(..length).unwrap_or(block), block.len())?;
            }
            None => self.write(block, length)?,
            Some(checksum) => self.write_summed(block, checksum, scratch)?,
        }
        if self.written_position >= self.base_position + self.placement.segment_length {
            self.roll_over()?;
        }
        Ok(length)
    }

    /// A block that does not follow the last one means that the image is polled by another caller
    /// too: written here it would be at the wrong place.
    fn check_place(&mut self, block: &[u8]) -> Result<(), Failure> {
        let header = FrameHeader::read(block)
            .ok_or_else(|| Failure::generic("block is shorter than a frame header"))?;
        let Placement {
            recording_id,
            segment_length,
            geometry,
            ..
        } = self.placement;
        let position = self.written_position;
        let end = position + block.len() as i64;
        let why = match geometry.check_place(&header, position) {
            Ok(()) if end <= self.base_position + segment_length => return Ok(()),
            Ok(()) => "it ends in the next segment".to_owned(),
            Err(fault) => fault.to_string(),
        };
        self.file = None;
        Err(Failure::generic(format!(
            "the image's block of {} bytes does not follow position {position} of recording \
             {recording_id}: {why}; does another caller poll the image?",
            block.len(),
        )))
    }

    /// Write frames with their checksums in place of the session ids, a cacheful at a time.
    fn write_summed(
        &mut self,
        block: &[u8],
        checksum: Checksum,
        scratch: &mut [u8],
    ) -> Result<(), Failure> {
        let mut rest = block;
        while !rest.is_empty() {
            let length = whole_frames(rest, scratch.len());
            let (Some(frames), Some(summed)) = (rest.get(..length), scratch.get_mut(..length))
            else {
                break;
            };
            if length == 0 {
                self.file = None;
                return Err(Failure::generic(format!(
                    "malformed frame in the image at position {}",
                    self.written_position
                )));
            }
            summed.copy_from_slice(frames);
            put_checksums(summed, checksum);
            self.write(summed, length)?;
            rest = rest.get(length..).unwrap_or_default();
        }
        Ok(())
    }

    /// Write `bytes` at the written position and move it on by `length`.
    fn write(&mut self, bytes: &[u8], length: usize) -> Result<(), Failure> {
        let file = self.file.as_ref().ok_or_else(poisoned)?;
        let offset = (self.written_position - self.base_position) as u64;
        match write_fully(file, bytes, offset) {
            Ok(()) => {
                self.written_position += length as i64;
                Ok(())
            }
            Err((written, error)) => {
                // A padding frame's header is the whole of what is written of it.
                let whole = if bytes.len() == length {
                    whole_frames(bytes, written)
                } else {
                    0
                };
                blank(file, offset + whole as u64, written - whole);
                self.written_position += whole as i64;
                let failure = Failure::storage("write segment file", &self.path, &error);
                // The frames before the torn one were written: they count if they can be synced,
                // which the end of the recording waits for.
                self.file = None;
                Err(failure)
            }
        }
    }

    fn roll_over(&mut self) -> Result<(), Failure> {
        self.file = None;
        self.base_position += self.placement.segment_length;
        self.path = segment_path(
            &self.storage.archive_dir,
            self.placement.recording_id,
            self.base_position,
        );
        self.open_segment(Existing::Refused)
    }

    fn open_segment(&mut self, existing: Existing) -> Result<(), Failure> {
        let segment_length = self.placement.segment_length as u64;
        let file = open_for_writing(&self.path, segment_length, existing)?;
        let file = Arc::new(file);
        if let Some(sync) = &self.sync {
            let synced: Arc<dyn Syncable> = Arc::clone(&file) as _;
            sync.add_segment(
                synced,
                self.path.clone(),
                self.written_position,
                self.base_position + self.placement.segment_length,
            );
        }
        self.file = Some(file);
        Ok(())
    }
}

fn poisoned() -> Failure {
    Failure::generic("the recording has failed before and is not written to any more")
}

/// Length of the whole frames at the start of `bytes` that end within `limit`.
fn whole_frames(bytes: &[u8], limit: usize) -> usize {
    let limit = limit.min(bytes.len());
    let mut end = 0;
    while let Some(header) = bytes.get(end..).and_then(FrameHeader::read) {
        let next = end + header.aligned_length();
        if header.frame_length < HEADER_LENGTH as i32 || next > limit {
            break;
        }
        end = next;
    }
    end
}

/// Overwrite each frame's session id with the checksum of what follows its header.
fn put_checksums(frames: &mut [u8], checksum: Checksum) {
    let mut rest = frames;
    while let Some(header) = FrameHeader::read(rest) {
        let (frame, following) = rest.split_at_mut(header.aligned_length().min(rest.len()));
        let Some((header, payload)) = frame.split_first_chunk_mut::<HEADER_LENGTH>() else {
            return;
        };
        header[SESSION_ID_OFFSET..SESSION_ID_OFFSET + 4]
            .copy_from_slice(&checksum.compute(payload).to_le_bytes());
        rest = following;
    }
}

/// Write all of `bytes`, or return how many were written before the error.
fn write_fully(file: &File, bytes: &[u8], offset: u64) -> Result<(), (usize, io::Error)> {
    let mut written = 0;
    while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
        match file.write_at(rest, offset + written as u64) {
            Ok(0) => return Err((written, io::ErrorKind::WriteZero.into())),
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err((written, error)),
        }
    }
    Ok(())
}

/// Clear the torn frame that a failed write left, so that a walk over the frames ends before it.
/// Best effort: the stop position excludes the frame anyway.
fn blank(file: &File, offset: u64, length: usize) {
    if length > 0 {
        let _ = file.write_all_at(&vec![0; length], offset);
    }
}

#[cfg(test)]
mod tests;
