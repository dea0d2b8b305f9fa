//! The frame: the unit of Aeron's log buffers, and therefore of segment files.
//!
//! A term is a run of frames, each starting on a 32-byte boundary with a 32-byte header
//! (Aeron protocol: data header). All fields are little endian. A frame length of zero means
//! "nothing was written here yet"; a negative one "being written".

/// Length of the data frame header in bytes.
pub const HEADER_LENGTH: usize = 32;
/// Frames start at multiples of this many bytes.
pub const FRAME_ALIGNMENT: usize = 32;

/// Longest message of a publication, whatever its term length (Aeron's frame descriptor).
pub const MAX_MESSAGE_LENGTH: usize = 16 * 1024 * 1024;

pub const TYPE_PAD: u16 = 0x00;
pub const TYPE_DATA: u16 = 0x01;

pub const FLAG_BEGIN: u8 = 0x80;
pub const FLAG_END: u8 = 0x40;
/// Both flags: a message that fits in one frame.
pub const FLAGS_UNFRAGMENTED: u8 = FLAG_BEGIN | FLAG_END;

pub const FLAGS_OFFSET: usize = 5;
pub const TYPE_OFFSET: usize = 6;
pub const TERM_OFFSET_OFFSET: usize = 8;
pub const SESSION_ID_OFFSET: usize = 12;
pub const STREAM_ID_OFFSET: usize = 16;
pub const TERM_ID_OFFSET: usize = 20;
pub const RESERVED_VALUE_OFFSET: usize = 24;

/// A header decoded from bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    pub frame_length: i32,
    pub version: u8,
    pub flags: u8,
    pub frame_type: u16,
    pub term_offset: i32,
    pub session_id: i32,
    pub stream_id: i32,
    pub term_id: i32,
    pub reserved_value: i64,
}

impl FrameHeader {
    /// Decode the header at the start of `bytes`; `None` when fewer than 32 bytes are left.
    #[inline]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let header: &[u8; HEADER_LENGTH] = bytes.get(..HEADER_LENGTH)?.try_into().ok()?;
        let int = |at: usize| {
            let bytes = header.get(at..)?.first_chunk()?;
            Some(i32::from_le_bytes(*bytes))
        };
        Some(Self {
            frame_length: int(0)?,
            version: header[4],
            flags: header[FLAGS_OFFSET],
            frame_type: u16::from_le_bytes([header[TYPE_OFFSET], header[TYPE_OFFSET + 1]]),
            term_offset: int(TERM_OFFSET_OFFSET)?,
            session_id: int(SESSION_ID_OFFSET)?,
            stream_id: int(STREAM_ID_OFFSET)?,
            term_id: int(TERM_ID_OFFSET)?,
            reserved_value: i64::from_le_bytes(*header.last_chunk()?),
        })
    }

    /// Length of the frame with the padding that aligns the next one, in bytes.
    #[inline]
    pub fn aligned_length(&self) -> usize {
        align(self.frame_length.max(0) as usize)
    }

    #[inline]
    pub fn is_padding(&self) -> bool {
        self.frame_type == TYPE_PAD
    }
}

/// Round `length` up to the next frame boundary.
#[inline]
pub const fn align(length: usize) -> usize {
    (length + FRAME_ALIGNMENT - 1) & !(FRAME_ALIGNMENT - 1)
}
