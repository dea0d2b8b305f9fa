//! Makes frames as read from a segment file ready to be offered to a replay's publication.

use crate::checksum::Checksum;
use crate::frame::{
    FrameHeader, HEADER_LENGTH, SESSION_ID_OFFSET, STREAM_ID_OFFSET, TYPE_DATA, TYPE_PAD,
};

/// What the frames of one replay are checked against and changed to.
#[derive(Clone, Copy, Debug)]
pub struct FrameRewrite {
    /// Verify each data frame against the checksum in its session id.
    pub checksum: Option<Checksum>,
    pub session_id: i32,
    pub stream_id: i32,
}

/// What the headers of the frames of a batch must say, which ends within a term.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Of the first frame.
    pub term_offset: i64,
    pub term_id: i32,
    /// Stream id of the recorded frames.
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
    /// Something that is no frame of the recording: what, in the reference's words where it has
    /// some, and the values.
    Damage(&'static str, String),
}

/// The whole data frames at the start of a buffer: their length in bytes, and what is behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    pub length: usize,
    pub follows: Follows,
}

/// Verify and rewrite the data frames of `bytes` that begin before `remaining`.
///
/// The first frame of `bytes` stands at `place`, and `bytes` end within that term. Frames of another
/// place are damage: segment files may have been confused.
pub fn prepare(bytes: &mut [u8], remaining: i64, place: Place, rewrite: FrameRewrite) -> Batch {
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
        if header.frame_length < HEADER_LENGTH as i32 {
            break Follows::Damage(
                "unexpected end of recording",
                format!("frame length {}", header.frame_length),
            );
        }
        if let Err(why) = place.check(&header, length) {
            break Follows::Damage("frame of another place", why);
        }
        match header.frame_type {
            TYPE_PAD => break Follows::Padding(header.frame_length as usize),
            TYPE_DATA => {}
            other => {
                break Follows::Damage("unknown frame type", format!("frame type {other}"));
            }
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

impl Place {
    /// Say what is wrong with the header `length` bytes behind the first one.
    #[inline]
    fn check(&self, header: &FrameHeader, length: usize) -> Result<(), String> {
        for (name, actual, expected) in [
            (
                "term offset",
                i64::from(header.term_offset),
                self.term_offset + length as i64,
            ),
            ("term id", header.term_id.into(), self.term_id.into()),
            ("stream id", header.stream_id.into(), self.stream_id.into()),
        ] {
            if actual != expected {
                return Err(format!(
                    "frame header has {name} {actual}, expected {expected}"
                ));
            }
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::test_frames::{data_frame, padding_frame};

    /// Of the frames that `test_frames` makes in term 5.
    fn at(term_offset: i64) -> Place {
        Place {
            term_offset,
            term_id: 5,
            stream_id: 1001,
        }
    }

    fn rewrite(checksum: Option<Checksum>) -> FrameRewrite {
        FrameRewrite {
            checksum,
            session_id: -9,
            stream_id: 77,
        }
    }

    #[test]
    fn whole_frames_get_the_publications_ids_and_keep_everything_else() {
        let mut bytes = [data_frame(64, 5, b"abc"), data_frame(128, 5, &[7; 100])].concat();
        let before = bytes.clone();
        let batch = prepare(&mut bytes, i64::MAX, at(64), rewrite(None));
        assert_eq!(
            batch,
            Batch {
                length: before.len(),
                follows: Follows::Nothing
            }
        );
        let header = FrameHeader::read(&bytes[64..]).expect("header");
        assert_eq!((header.session_id, header.stream_id), (-9, 77));
        bytes[12..20].copy_from_slice(&before[12..20]);
        bytes[76..84].copy_from_slice(&before[76..84]);
        assert_eq!(bytes, before);
    }

    #[test]
    fn a_frame_that_begins_before_the_end_of_the_replay_is_whole() {
        let mut bytes = [data_frame(0, 5, &[1; 32]), data_frame(64, 5, &[2; 32])].concat();
        assert_eq!(
            prepare(&mut bytes.clone(), 64, at(0), rewrite(None)).length,
            64
        );
        assert_eq!(prepare(&mut bytes, 65, at(0), rewrite(None)).length, 128);
    }

    #[test]
    fn padding_and_partial_frames_end_a_batch() {
        let mut padded = [data_frame(0, 5, b"x"), padding_frame(64, 5, 4_000)].concat();
        assert_eq!(
            prepare(&mut padded, i64::MAX, at(0), rewrite(None)),
            Batch {
                length: 64,
                follows: Follows::Padding(4_000)
            }
        );
        let mut cut = [data_frame(0, 5, b"x"), data_frame(64, 5, &[1; 200])].concat();
        assert_eq!(
            prepare(&mut cut.clone()[..100], i64::MAX, at(0), rewrite(None)),
            Batch {
                length: 64,
                follows: Follows::PartOfFrame
            }
        );
        assert_eq!(
            prepare(&mut cut[..80], i64::MAX, at(0), rewrite(None)).length,
            64
        );
    }

    #[test]
    fn a_wrong_checksum_stops_the_batch_before_that_frame() {
        let checksum = Checksum::Crc32c;
        let mut bytes = [data_frame(0, 5, &[1; 32]), data_frame(64, 5, &[2; 32])].concat();
        for start in [0, 64] {
            let sum = checksum.compute(&bytes[start + 32..start + 64]);
            bytes[start + 12..start + 16].copy_from_slice(&sum.to_le_bytes());
        }
        let good = prepare(&mut bytes.clone(), i64::MAX, at(0), rewrite(Some(checksum)));
        assert_eq!(
            good,
            Batch {
                length: 128,
                follows: Follows::Nothing
            }
        );
        bytes[100] ^= 1;
        let batch = prepare(&mut bytes, i64::MAX, at(0), rewrite(Some(checksum)));
        assert_eq!(batch.length, 64);
        assert!(matches!(batch.follows, Follows::Damage(what, _) if what.contains("checksum")));
    }

    #[test]
    fn what_is_no_frame_is_told_apart_from_the_end() {
        let damage = |bytes: &mut [u8]| match prepare(bytes, i64::MAX, at(0), rewrite(None)).follows
        {
            Follows::Damage(what, why) => format!("{what}: {why}"),
            other => panic!("{other:?}"),
        };
        assert!(damage(&mut [0; 64]).contains("unexpected end"));
        let mut short = data_frame(0, 5, b"x");
        short[0] = 31;
        assert!(damage(&mut short).contains("frame length 31"));
        assert!(damage(&mut data_frame(32, 5, b"x")).contains("term offset 32, expected 0"));
        assert!(damage(&mut data_frame(0, 6, b"x")).contains("term id 6, expected 5"));
        let mut strange = data_frame(0, 5, b"x");
        strange[16] ^= 1;
        assert!(damage(&mut strange).contains("stream id 1000, expected 1001"));
        let mut other = data_frame(0, 5, b"x");
        other[6] = 5;
        assert!(damage(&mut other).contains("frame type 5"));
    }
}
