//! The layout of raft entries: a RaftLogEntry, then a message of its type.

use super::record::{MESSAGE_HEADER, Message, VAR_DATA_LENGTH, u16_at, u32_at, u64_at};

const SCHEMA_ID: u16 = 8;
const LOG_ENTRY: Message = Message {
    schema_id: SCHEMA_ID,
    template_id: 1,
    block_length: 9,
};
const APPLICATION_ENTRY: Message = Message {
    schema_id: SCHEMA_ID,
    template_id: 2,
    block_length: 16,
};
const CONFIGURATION_ENTRY: Message = Message {
    schema_id: SCHEMA_ID,
    template_id: 4,
    block_length: 8,
};
pub const APPLICATION: u8 = 0;
pub const CONFIGURATION: u8 = 1;
const INITIAL: u8 = 2;
/// SBE's null values, of types and of numbers.
const NO_TYPE: u8 = u8::MAX;
const NO_NUMBER: u64 = u64::MAX;
const GROUP_DIMENSIONS: usize = 3;
const MEMBER_BLOCK: usize = 9;
const MAX_MEMBER_TYPE: u8 = 3;
/// The schema version that added the old members.
const OLD_MEMBERS_SINCE: u16 = 2;

/// An entry without its payload.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    pub term: u64,
    pub kind: u8,
    /// Set for an application entry, else `NO_NUMBER`.
    pub lowest_asqn: u64,
    pub highest_asqn: u64,
    /// The data of an application entry.
    pub data: Option<&'a [u8]>,
    /// Offset of the message after the RaftLogEntry.
    body: usize,
    /// End offset of an initial or application entry.
    end: usize,
}

impl Entry<'_> {
    /// Stands for bytes that are not an entry.
    pub const NONE: Entry<'static> = Entry {
        term: NO_NUMBER,
        kind: NO_TYPE,
        lowest_asqn: NO_NUMBER,
        highest_asqn: NO_NUMBER,
        data: None,
        body: 0,
        end: 0,
    };
}

/// Parse an entry; of a configuration only its head.
#[inline(always)]
pub fn parse(blob: &[u8]) -> Result<Entry<'_>, String> {
    let (block_length, _) = LOG_ENTRY.check(blob, 0)?;
    let body = MESSAGE_HEADER + block_length;
    let (Some(term), Some(&kind)) = (u64_at(blob, MESSAGE_HEADER), blob.get(MESSAGE_HEADER + 8))
    else {
        return Err(format!("{} bytes are too short", blob.len()));
    };
    let mut entry = Entry {
        term,
        kind,
        body,
        end: body,
        ..Entry::NONE
    };
    if body > blob.len() {
        return Err(format!("{} bytes are too short", blob.len()));
    }
    match kind {
        INITIAL => {}
        CONFIGURATION => {
            CONFIGURATION_ENTRY.check(blob, body)?;
        }
        APPLICATION => {
            let (block_length, _) = APPLICATION_ENTRY.check(blob, body)?;
            let fields = body + MESSAGE_HEADER;
            let begin = fields + block_length + VAR_DATA_LENGTH;
            let (Some(lowest), Some(highest), Some(length)) = (
                u64_at(blob, fields),
                u64_at(blob, fields + 8),
                u32_at(blob, begin - VAR_DATA_LENGTH),
            ) else {
                return Err(format!("{} bytes are too short", blob.len()));
            };
            entry.lowest_asqn = lowest;
            entry.highest_asqn = highest;
            entry.end = begin.saturating_add(length as usize);
            entry.data = blob.get(begin..entry.end);
            if entry.data.is_none() {
                return Err(format!(
                    "{length} bytes of application data exceed its {} bytes",
                    blob.len()
                ));
            }
        }
        other => return Err(format!("the type is {other}, expected 0 to 2")),
    }
    Ok(entry)
}

/// Check an entry to its end, and return where that is.
#[inline(always)]
pub fn end(blob: &[u8], entry: &Entry<'_>) -> Result<usize, String> {
    if entry.kind != CONFIGURATION {
        if entry.data.is_some() && entry.highest_asqn < entry.lowest_asqn {
            return Err(format!(
                "the highest asqn {} is below the lowest {}",
                entry.highest_asqn, entry.lowest_asqn
            ));
        }
        return Ok(entry.end);
    }
    let (block_length, version) = CONFIGURATION_ENTRY.check(blob, entry.body)?;
    let mut end = members(
        blob,
        entry.body + MESSAGE_HEADER + block_length,
        &mut |_| {},
    )?;
    if version >= OLD_MEMBERS_SINCE {
        end = members(blob, end, &mut |_| {})?;
    }
    Ok(end)
}

/// A member of a configuration.
#[derive(Debug, PartialEq, Eq)]
pub struct Member<'a> {
    pub kind: u8,
    /// Milliseconds since 1970.
    pub updated: i64,
    pub id: &'a str,
}

/// The members of a configuration entry, without the old ones.
pub fn members_of<'a>(blob: &'a [u8], entry: &Entry<'_>) -> Result<Vec<Member<'a>>, String> {
    let (block_length, _) = CONFIGURATION_ENTRY.check(blob, entry.body)?;
    let mut found = Vec::new();
    members(
        blob,
        entry.body + MESSAGE_HEADER + block_length,
        &mut |member| found.push(member),
    )?;
    Ok(found)
}

/// Check a group of members, and return where it ends.
fn members<'a>(
    blob: &'a [u8],
    begin: usize,
    add: &mut dyn FnMut(Member<'a>),
) -> Result<usize, String> {
    let cut = || "its members exceed its end".to_owned();
    let block_length = usize::from(u16_at(blob, begin).ok_or_else(cut)?);
    let count = *blob.get(begin + 2).ok_or_else(cut)?;
    if block_length < MEMBER_BLOCK {
        return Err(format!(
            "a member has {block_length} bytes, expected at least {MEMBER_BLOCK}"
        ));
    }
    let mut at = begin + GROUP_DIMENSIONS;
    for _ in 0..count {
        let kind = *blob.get(at).ok_or_else(cut)?;
        let updated = u64_at(blob, at + 1).ok_or_else(cut)? as i64;
        if kind > MAX_MEMBER_TYPE {
            return Err(format!(
                "the type of a member is {kind}, expected 0 to {MAX_MEMBER_TYPE}"
            ));
        }
        at += block_length;
        let length = u32_at(blob, at).ok_or_else(cut)? as usize;
        at += VAR_DATA_LENGTH;
        let id = blob.get(at..at.saturating_add(length)).ok_or_else(cut)?;
        let Ok(id) = std::str::from_utf8(id) else {
            return Err("the id of a member is not UTF-8".to_owned());
        };
        add(Member { kind, updated, id });
        at += length;
    }
    Ok(at)
}
