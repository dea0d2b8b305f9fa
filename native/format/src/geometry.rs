//! The geometry of a recorded stream: the term and the segment file of a position, and what the
//! header of a frame at a position must contain.
//!
//! Term ids count up from the stream's initial term id and wrap as 32-bit integers. A segment file
//! holds a whole number of terms; the first one begins at the start of the term that holds the
//! recording's start position. All lengths and positions are bytes; the lengths of terms and
//! segments are powers of two.

use crate::frame::{FrameHeader, HEADER_LENGTH, TYPE_DATA, TYPE_PAD};
use std::fmt;
use std::path::{Path, PathBuf};

/// The fields of a recording descriptor that determine the headers of its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamGeometry {
    pub initial_term_id: i32,
    pub term_length: i64,
    pub stream_id: i32,
    /// Longest data frame, header included: the MTU. A padding frame may fill a term.
    pub max_frame_length: i32,
}

/// Why a header is not that of a frame of the stream at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameFault {
    /// The frame length is zero or negative: no frame was completed here.
    NoFrame {
        length: i32,
    },
    TooShort {
        length: i32,
    },
    UnknownType {
        frame_type: u16,
    },
    /// A header field that belongs to another position or stream.
    Misplaced {
        field: &'static str,
        actual: i32,
        expected: i32,
    },
    BeyondMtu {
        length: i32,
        max: i32,
    },
    BeyondTerm {
        length: i32,
    },
    BeyondLimit {
        length: i32,
        limit: i64,
    },
}

impl StreamGeometry {
    /// Position of the first byte of the term that holds `position`.
    #[inline]
    pub fn term_base(&self, position: i64) -> i64 {
        position & !(self.term_length - 1)
    }

    #[inline]
    pub fn term_offset(&self, position: i64) -> i32 {
        (position & (self.term_length - 1)) as i32
    }

    #[inline]
    pub fn term_id(&self, position: i64) -> i32 {
        let terms = position >> self.term_length.trailing_zeros();
        self.initial_term_id.wrapping_add(terms as i32)
    }

    /// Check the fields that depend on the position and the stream.
    #[inline]
    pub fn check_place(&self, header: &FrameHeader, position: i64) -> Result<(), FrameFault> {
        let expect = |field, actual, expected| {
            if actual == expected {
                return Ok(());
            }
            Err(FrameFault::Misplaced {
                field,
                actual,
                expected,
            })
        };
        expect(
            "term offset",
            header.term_offset,
            self.term_offset(position),
        )?;
        expect("term id", header.term_id, self.term_id(position))?;
        expect("stream id", header.stream_id, self.stream_id)
    }

    /// Check the header of a frame that begins at `position` and must end at or before `limit`.
    #[inline]
    pub fn check(&self, header: &FrameHeader, position: i64, limit: i64) -> Result<(), FrameFault> {
        let length = header.frame_length;
        if length <= 0 {
            return Err(FrameFault::NoFrame { length });
        }
        if length < HEADER_LENGTH as i32 {
            return Err(FrameFault::TooShort { length });
        }
        self.check_place(header, position)?;
        if !matches!(header.frame_type, TYPE_DATA | TYPE_PAD) {
            return Err(FrameFault::UnknownType {
                frame_type: header.frame_type,
            });
        }
        let aligned = header.aligned_length() as i64;
        if i64::from(header.term_offset) + aligned > self.term_length {
            return Err(FrameFault::BeyondTerm { length });
        }
        if length > self.max_frame_length && !header.is_padding() {
            return Err(FrameFault::BeyondMtu {
                length,
                max: self.max_frame_length,
            });
        }
        if aligned > limit.wrapping_sub(position) {
            return Err(FrameFault::BeyondLimit { length, limit });
        }
        Ok(())
    }
}

impl fmt::Display for FrameFault {
    #[cold]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFrame { length: 0 } => {
                write!(
                    formatter,
                    "no frame here: frame length 0, unexpected end of the recording"
                )
            }
            Self::NoFrame { length } => {
                write!(formatter, "no frame here: frame length {length}")
            }
            Self::TooShort { length } => {
                write!(formatter, "frame length {length} is less than a header")
            }
            Self::UnknownType { frame_type } => write!(
                formatter,
                "frame type {frame_type} is neither data (1) nor padding (0)"
            ),
            Self::Misplaced {
                field,
                actual,
                expected,
            } => write!(
                formatter,
                "not a frame of this place: {field} {actual}, expected {expected}"
            ),
            Self::BeyondMtu { length, max } => write!(
                formatter,
                "data frame length {length} is more than the MTU of {max}"
            ),
            Self::BeyondTerm { length } => write!(
                formatter,
                "frame length {length} goes beyond the end of the term"
            ),
            Self::BeyondLimit { length, limit } => write!(
                formatter,
                "frame length {length} goes beyond the end at position {limit}"
            ),
        }
    }
}

/// Position of the first byte of the segment file that holds `position`.
#[inline]
pub const fn segment_base_position(
    start_position: i64,
    position: i64,
    term_length: i64,
    segment_length: i64,
) -> i64 {
    let first_term_base = start_position - (start_position & (term_length - 1));
    let into_recording = position - first_term_base;
    first_term_base + (into_recording - (into_recording & (segment_length - 1)))
}

/// Path of a segment file: `<recordingId>-<segmentBasePosition>.rec` in the archive directory.
pub fn segment_path(archive_dir: &Path, recording_id: i64, base_position: i64) -> PathBuf {
    archive_dir.join(format!("{recording_id}-{base_position}.rec"))
}

/// Recording id and base position in the name of a segment file, as `segment_path` writes them.
pub fn parse_segment_name(name: &[u8]) -> Option<(i64, i64)> {
    let (recording_id, rest) = number(name)?;
    let (base, suffix) = number(rest.strip_prefix(b"-")?)?;
    (suffix == b".rec").then_some((recording_id, base))
}

/// A leading number without sign or leading zeros, and the rest of the text.
fn number(text: &[u8]) -> Option<(i64, &[u8])> {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(length);
    if digits.len() > 1 && digits.starts_with(b"0") {
        return None;
    }
    let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some((number, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEOMETRY: StreamGeometry = StreamGeometry {
        initial_term_id: i32::MAX,
        term_length: 65_536,
        stream_id: 10,
        max_frame_length: 1408,
    };

    #[test]
    fn term_ids_wrap() {
        assert_eq!(GEOMETRY.term_id(65_535), i32::MAX);
        assert_eq!(GEOMETRY.term_id(65_536), i32::MIN);
        assert_eq!(GEOMETRY.term_offset(65_536 + 96), 96);
        assert_eq!(GEOMETRY.term_base(65_536 + 96), 65_536);
    }

    #[test]
    fn segments_start_at_the_first_terms_base() {
        let base = |position| segment_base_position(98_304, position, 65_536, 262_144);
        assert_eq!(base(98_304), 65_536);
        assert_eq!(base(327_680), 327_680);
        assert_eq!(base(327_679), 65_536);
    }
}
