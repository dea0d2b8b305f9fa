//! Verifies frames read from a segment file and rewrites them for a replay's publication.

use crate::checksum::Checksum;
use crate::frame::{FrameHeader, HEADER_LENGTH, SESSION_ID_OFFSET, STREAM_ID_OFFSET};
use crate::geometry::{FrameFault, StreamGeometry};

/// What the frames of one replay are checked against and changed to.
#[derive(Clone, Copy, Debug)]
pub struct FrameRewrite {
    /// Verify each data frame against the checksum in its session id.
    pub checksum: Option<Checksum>,
    pub session_id: i32,
    pub stream_id: i32,
}

/// What follows the whole data frames at the start of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Follows {
    /// The end of the bytes, or of the replay.
    Nothing,
    /// A frame of which not all bytes are there.
    PartOfFrame,
    /// A padding frame of this length, header included.
    Padding(usize),
    /// Bytes that are not a frame of the recording: what, in the reference's words where it has
    /// some, and the values.
    Damage(&'static str, String),
}

/// The whole data frames at the start of a buffer: their length in bytes, and what follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    pub length: usize,
    pub follows: Follows,
}

/// Verify and rewrite the data frames of `bytes` that begin before `remaining`.
///
/// The first frame of `bytes` is at `position`, and `bytes` end within its term. Frames of another
/// place are damage: segment files may have been confused.
pub fn prepare(
    bytes: &mut [u8],
    position: i64,
    remaining: i64,
    geometry: &StreamGeometry,
    rewrite: FrameRewrite,
) -> Batch {
    let mut length = 0;
    let follows = loop {
        if length as i64 >= remaining || length >= bytes.len() {
            break Follows::Nothing;
        }
        let Some(rest) = bytes.get_mut(length..) else {
            break Follows::Nothing;
        };
        let Some(header) = FrameHeader::read(rest) else {
            break Follows::PartOfFrame;
        };
        // Where the recording ends is the caller's concern: a frame may not be complete yet.
        if let Err(fault) = geometry.check(&header, position + length as i64, i64::MAX) {
            let (what, why) = describe(fault);
            break Follows::Damage(what, why);
        }
        if header.is_padding() {
            break Follows::Padding(header.frame_length as usize);
        }
        let aligned_length = header.aligned_length();
        let Some(frame) = rest.get_mut(..aligned_length) else {
            break Follows::PartOfFrame;
        };
        if let Err(why) = rewrite_frame(frame, header.session_id, rewrite) {
            break Follows::Damage("CRC checksum mismatch", why);
        }
        length += aligned_length;
    };
    Batch { length, follows }
}

/// What is in place of a frame, in the reference's words where it has some, and the values.
fn describe(fault: FrameFault) -> (&'static str, String) {
    match fault {
        FrameFault::NoFrame { length } | FrameFault::TooShort { length } => (
            "unexpected end of recording",
            format!("frame length {length}"),
        ),
        FrameFault::UnknownType { frame_type } => {
            ("unknown frame type", format!("frame type {frame_type}"))
        }
        FrameFault::Misplaced {
            field,
            actual,
            expected,
        } => (
            "frame of another place",
            format!("{field} {actual}, expected {expected}"),
        ),
        fault => ("invalid frame", fault.to_string()),
    }
}

fn rewrite_frame(frame: &mut [u8], recorded: i32, rewrite: FrameRewrite) -> Result<(), String> {
    let Some((header, payload)) = frame.split_first_chunk_mut::<HEADER_LENGTH>() else {
        return Err("frame is shorter than its header".to_owned());
    };
    if let Some(checksum) = rewrite.checksum {
        let computed = checksum.compute(payload);
        if computed != recorded {
            return Err(format!(
                "recorded checksum={recorded}, computed checksum={computed}"
            ));
        }
    }
    header[SESSION_ID_OFFSET..SESSION_ID_OFFSET + 4]
        .copy_from_slice(&rewrite.session_id.to_le_bytes());
    header[STREAM_ID_OFFSET..STREAM_ID_OFFSET + 4]
        .copy_from_slice(&rewrite.stream_id.to_le_bytes());
    Ok(())
}
