//! The layout of a record: a frame, the metadata and the data, the latter two SBE messages.
//!
//! What parses a record is inlined always: results that are returned through memory would take
//! longer than the checksum.

use std::io;

use crate::checksum::Checksum;
use crate::segment::reader::Reader;

const END_FRAME: u8 = 0;
const RECORD_FRAME: u8 = 1;
const SCHEMA_ID: u16 = 7;
const METADATA: Message = Message {
    schema_id: SCHEMA_ID,
    template_id: 1,
    block_length: 12,
};
const DATA: Message = Message {
    schema_id: SCHEMA_ID,
    template_id: 2,
    block_length: 16,
};
pub const MESSAGE_HEADER: usize = 8;
pub const VAR_DATA_LENGTH: usize = 4;
/// Up to the end of the metadata's fields that are known.
const HEAD_LENGTH: usize = 1 + MESSAGE_HEADER + METADATA.block_length;
const MIN_DATA_LENGTH: usize = MESSAGE_HEADER + DATA.block_length + VAR_DATA_LENGTH;

/// A message of a schema: its ids and the least length of its block.
pub struct Message {
    pub schema_id: u16,
    pub template_id: u16,
    pub block_length: usize,
}

/// The kind of a defect: the name of a class in `aerotape.errors` without "Error", or of a finding
/// that is not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    UnknownVersion,
    Corrupt,
    InvalidChecksum,
    InvalidIndex,
    InvalidAsqn,
    InvalidEntry,
    TrailingBytes,
    PositionGap,
    Unreadable,
}

impl Problem {
    pub fn name(self) -> &'static str {
        match self {
            Self::UnknownVersion => "UnknownVersion",
            Self::Corrupt => "CorruptJournal",
            Self::InvalidChecksum => "InvalidChecksum",
            Self::InvalidIndex => "InvalidIndex",
            Self::InvalidAsqn => "InvalidAsqn",
            Self::InvalidEntry => "InvalidEntry",
            Self::TrailingBytes => "TrailingBytes",
            Self::PositionGap => "PositionGap",
            Self::Unreadable => "Unreadable",
        }
    }
}

/// Damage of a record.
#[derive(Debug, PartialEq, Eq)]
pub struct Damage {
    pub problem: Problem,
    pub why: String,
    /// Bytes of the record, when its metadata is sound.
    pub length: Option<u64>,
}

/// A sound record; `blob` is what the journal's user stored.
#[derive(Debug, PartialEq, Eq)]
pub struct Record<'a> {
    pub index: u64,
    pub asqn: i64,
    pub checksum: i64,
    pub blob: &'a [u8],
    /// All of it, from its frame on.
    pub bytes: &'a [u8],
}

pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let found = bytes.get(at..at.checked_add(2)?)?;
    found.try_into().ok().map(u16::from_le_bytes)
}

pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let found = bytes.get(at..at.checked_add(4)?)?;
    found.try_into().ok().map(u32::from_le_bytes)
}

pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let found = bytes.get(at..at.checked_add(8)?)?;
    found.try_into().ok().map(u64::from_le_bytes)
}

impl Message {
    /// Check a message's header; return the length of its block and its schema version.
    #[inline(always)]
    pub fn check(&self, bytes: &[u8], at: usize) -> Result<(usize, u16), String> {
        let Some(header) = u64_at(bytes, at) else {
            return Err("a message header exceeds the end of the bytes".to_owned());
        };
        let field = |number: u32| (header >> (16 * number)) as u16;
        let (block_length, template_id, schema_id) = (usize::from(field(0)), field(1), field(2));
        if (schema_id, template_id) != (self.schema_id, self.template_id)
            || block_length < self.block_length
        {
            return Err(format!(
                "a message of schema {schema_id}, template {template_id} and a block of \
                 {block_length} bytes, expected {}, {} and at least {}",
                self.schema_id, self.template_id, self.block_length
            ));
        }
        Ok((block_length, field(3)))
    }
}

/// The begin and end of a record's data, relative to its frame, and its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head {
    begin: usize,
    end: usize,
    checksum: i64,
}

fn corrupt(why: String) -> Damage {
    Damage {
        problem: Problem::Corrupt,
        why,
        length: None,
    }
}

/// Parse frame and metadata. `None` at the end of the records; `left` is the bytes up to the end
/// of the segment.
#[inline(always)]
fn head(bytes: &[u8], left: u64) -> Result<Option<Head>, Damage> {
    match bytes.first() {
        None | Some(&END_FRAME) => return Ok(None),
        Some(&RECORD_FRAME) => {}
        Some(version) => {
            return Err(Damage {
                problem: Problem::UnknownVersion,
                why: format!("the version is {version}, expected {RECORD_FRAME}"),
                length: None,
            });
        }
    }
    let (block_length, _) = METADATA.check(bytes, 1).map_err(corrupt)?;
    let (Some(checksum), Some(length)) = (
        u64_at(bytes, 1 + MESSAGE_HEADER),
        u32_at(bytes, 1 + MESSAGE_HEADER + 8),
    ) else {
        return Err(corrupt(
            "the metadata exceeds the end of the segment".to_owned(),
        ));
    };
    let begin = 1 + MESSAGE_HEADER + block_length;
    let length = length as i32;
    let available = left.saturating_sub(begin as u64);
    match usize::try_from(length) {
        Ok(data) if data >= MIN_DATA_LENGTH && data as u64 <= available => Ok(Some(Head {
            begin,
            end: begin + data,
            checksum: checksum as i64,
        })),
        Ok(data) if data >= MIN_DATA_LENGTH => Err(corrupt(format!(
            "the length of its data is {length}, but {available} bytes are left in the segment"
        ))),
        _ => Err(corrupt(format!(
            "the length of its data is {length}, expected at least {MIN_DATA_LENGTH}"
        ))),
    }
}

/// Parse the data message; return index, asqn and blob.
#[inline(always)]
fn data(bytes: &[u8]) -> Result<(u64, i64, &[u8]), String> {
    let (block_length, _) = DATA.check(bytes, 0)?;
    let blob = MESSAGE_HEADER + block_length + VAR_DATA_LENGTH;
    let (Some(index), Some(asqn), Some(length)) = (
        u64_at(bytes, MESSAGE_HEADER),
        u64_at(bytes, MESSAGE_HEADER + 8),
        u32_at(bytes, blob - VAR_DATA_LENGTH),
    ) else {
        return Err(format!("{} bytes of data are too short", bytes.len()));
    };
    match bytes.get(blob..) {
        Some(found) if found.len() as u64 == u64::from(length) => Ok((index, asqn as i64, found)),
        _ => Err(format!(
            "{} bytes of data do not hold a blob of {length} bytes exactly",
            bytes.len()
        )),
    }
}

#[inline(always)]
fn whole(bytes: &[u8], head: Head) -> Result<Record<'_>, Damage> {
    let with_length = |problem, why| Damage {
        problem,
        why,
        length: Some(head.end as u64),
    };
    let (Some(message), Some(all)) = (bytes.get(head.begin..head.end), bytes.get(..head.end))
    else {
        return Err(corrupt("the record exceeds the end of the file".to_owned()));
    };
    let sum = i64::from(Checksum::Crc32c.compute(message) as u32);
    if sum != head.checksum {
        let why = format!(
            "the checksum is {}, but that of its data {sum}",
            head.checksum
        );
        return Err(with_length(Problem::InvalidChecksum, why));
    }
    let (index, asqn, blob) = data(message).map_err(|why| with_length(Problem::Corrupt, why))?;
    Ok(Record {
        index,
        asqn,
        checksum: head.checksum,
        blob,
        bytes: all,
    })
}

/// Parse a record that is all of these bytes.
pub fn parse(bytes: &[u8]) -> Result<Record<'_>, Damage> {
    let head = head(bytes, bytes.len() as u64)?
        .ok_or_else(|| corrupt("there is no record: its frame is 0".to_owned()))?;
    if head.end < bytes.len() {
        return Err(corrupt(format!(
            "{} bytes follow the record",
            bytes.len() - head.end
        )));
    }
    whole(bytes, head)
}

/// Read the record at an offset; `None` where the records end. `limit` is the segment's end.
#[inline(always)]
pub fn read<'a>(
    reader: &'a mut Reader<'_>,
    offset: u64,
    limit: u64,
) -> io::Result<Result<Option<Record<'a>>, Damage>> {
    let left = limit.saturating_sub(offset);
    let first = reader.at(offset, HEAD_LENGTH)?;
    let head = match head(first, left) {
        Ok(Some(head)) => head,
        Ok(None) => return Ok(Ok(None)),
        Err(damage) => return Ok(Err(damage)),
    };
    let bytes = reader.at(offset, head.end)?;
    Ok(whole(bytes, head).map(Some))
}
