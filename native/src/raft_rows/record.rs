//! One record of a raft journal and the raft entry in it, parsed from exactly its bytes.

const FRAME: u8 = 1;
const FRAME_LENGTH: usize = 1;
const HEADER_LENGTH: usize = 8;
const JOURNAL_SCHEMA: u16 = 7;
const RAFT_SCHEMA: u16 = 8;

/// The kind of a raft entry, with what only that kind has.
#[derive(Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    Application {
        lowest_asqn: u64,
        highest_asqn: u64,
        data: &'a [u8],
    },
    Configuration {
        members: Vec<Member<'a>>,
    },
    Initial,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Member<'a> {
    pub kind: u8,
    pub updated: i64,
    pub id: &'a [u8],
}

#[derive(Debug, PartialEq, Eq)]
pub struct Record<'a> {
    pub index: u64,
    pub asqn: i64,
    pub term: u64,
    pub entry: Entry<'a>,
}

/// Parse a record. `Ok(None)`: its data fails its checksum, and is not read.
pub fn parse(bytes: &[u8]) -> Result<Option<Record<'_>>, String> {
    let mut reader = Reader::new(bytes);
    match reader.u8("frame")? {
        FRAME => {}
        other => return Err(format!("the frame is {other}, expected {FRAME}")),
    }
    let metadata = reader.message("RecordMetadata", JOURNAL_SCHEMA, 1, 12)?;
    let checksum = i64_at(metadata, 0);
    let length = i32_at(metadata, 8);
    let data = reader.rest();
    if usize::try_from(length) != Ok(data.len()) {
        return Err(format!(
            "the length of the data is {length}, but {} bytes follow",
            data.len()
        ));
    }
    if checksum != i64::from(crc32c::crc32c(data)) {
        return Ok(None);
    }
    let mut reader = Reader::new(data);
    let block = reader.message("RecordData", JOURNAL_SCHEMA, 2, 16)?;
    let (index, asqn) = (u64_at(block, 0), i64_at(block, 8));
    let blob = reader.var_data("the raft entry")?;
    if !reader.rest().is_empty() {
        return Err(format!(
            "{} bytes follow the raft entry",
            reader.rest().len()
        ));
    }
    let (term, entry) = raft_entry(blob)?;
    Ok(Some(Record {
        index,
        asqn,
        term,
        entry,
    }))
}

fn raft_entry(blob: &[u8]) -> Result<(u64, Entry<'_>), String> {
    let mut reader = Reader::new(blob);
    let block = reader.message("RaftLogEntry", RAFT_SCHEMA, 1, 9)?;
    let term = u64_at(block, 0);
    let entry = match block.get(8) {
        Some(0) => {
            let block = reader.message("ApplicationEntry", RAFT_SCHEMA, 2, 16)?;
            Entry::Application {
                lowest_asqn: u64_at(block, 0),
                highest_asqn: u64_at(block, 8),
                data: reader.var_data("the application data")?,
            }
        }
        Some(1) => {
            reader.message("ConfigurationEntry", RAFT_SCHEMA, 4, 8)?;
            Entry::Configuration {
                members: members(&mut reader)?,
            }
        }
        Some(2) => Entry::Initial,
        kind => return Err(format!("the entry type is {kind:?}, expected 0 to 2")),
    };
    Ok((term, entry))
}

fn members<'a>(reader: &mut Reader<'a>) -> Result<Vec<Member<'a>>, String> {
    let dimensions = reader.take(3, "the dimensions of members")?;
    let (length, count) = (u16_at(dimensions, 0), dimensions.get(2).copied());
    if length < 9 {
        return Err(format!("a member has {length} bytes, expected 9 at least"));
    }
    (0..count.unwrap_or_default())
        .map(|_| {
            let block = reader.take(usize::from(length), "a member")?;
            Ok(Member {
                kind: block.first().copied().unwrap_or_default(),
                updated: i64_at(block, 1),
                id: reader.var_data("a member id")?,
            })
        })
        .collect()
}

/// Takes bytes from the front.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn take(&mut self, length: usize, what: &str) -> Result<&'a [u8], String> {
        let Some((taken, rest)) = self.rest.split_at_checked(length) else {
            return Err(format!(
                "{what} needs {length} bytes, but {} are left",
                self.rest.len()
            ));
        };
        self.rest = rest;
        Ok(taken)
    }

    fn u8(&mut self, what: &str) -> Result<u8, String> {
        Ok(self
            .take(FRAME_LENGTH, what)?
            .first()
            .copied()
            .unwrap_or_default())
    }

    /// Take a message's header and block; return the block, which has `least` bytes at least.
    fn message(
        &mut self,
        name: &str,
        schema: u16,
        template: u16,
        least: u16,
    ) -> Result<&'a [u8], String> {
        let header = self.take(HEADER_LENGTH, name)?;
        let (length, found) = (u16_at(header, 0), (u16_at(header, 2), u16_at(header, 4)));
        if found != (template, schema) || length < least {
            return Err(format!(
                "a message of template {}, schema {} and {length} bytes: expected {name} \
                 (template {template}, schema {schema}, {least} bytes at least)",
                found.0, found.1
            ));
        }
        self.take(usize::from(length), name)
    }

    fn var_data(&mut self, what: &str) -> Result<&'a [u8], String> {
        let length = u32::from_le_bytes(array_at(self.take(4, what)?, 0));
        self.take(length as usize, what)
    }
}

/// The bytes at an offset, zeros where there are none: callers have checked the length.
fn array_at<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    bytes
        .get(offset..offset + N)
        .and_then(|part| part.try_into().ok())
        .unwrap_or([0; N])
}

fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, offset))
}

fn i32_at(bytes: &[u8], offset: usize) -> i32 {
    i32::from_le_bytes(array_at(bytes, offset))
}

fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, offset))
}

fn i64_at(bytes: &[u8], offset: usize) -> i64 {
    i64::from_le_bytes(array_at(bytes, offset))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
mod tests {
    use super::*;

    /// A record that Zeebe 1.0.0 has written: an initial entry, term 1, index 1.
    const INITIAL: [u8; 66] = [
        1, 12, 0, 1, 0, 7, 0, 1, 0, 0xf3, 0x67, 0x0f, 0x20, 0, 0, 0, 0, 0x2d, 0, 0, 0, 16, 0, 2, 0,
        7, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 17, 0, 0, 0, 9,
        0, 1, 0, 8, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2,
    ];

    #[test]
    fn a_record_of_zeebe_is_parsed() {
        let record = parse(&INITIAL).unwrap().unwrap();
        assert_eq!((record.index, record.asqn, record.term), (1, -1, 1));
        assert_eq!(record.entry, Entry::Initial);
    }

    #[test]
    fn a_record_that_was_cut_or_changed_is_never_taken_for_a_good_one() {
        for length in 0..INITIAL.len() {
            assert!(parse(&INITIAL[..length]).is_err(), "{length}");
        }
        for bit in 0..INITIAL.len() * 8 {
            let mut changed = INITIAL;
            changed[bit / 8] ^= 1 << (bit % 8);
            // Versions, and bytes after the known ones of the metadata's block, are not checked.
            let accepted = matches!(parse(&changed), Ok(Some(_)));
            assert_eq!(accepted, (7..9).contains(&(bit / 8)), "{bit}");
        }
    }
}
