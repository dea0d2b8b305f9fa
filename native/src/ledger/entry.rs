//! Ledger entries: a header with ids and running length, a digest of it and the payload, the payload.
//!
//! Numbers are big-endian. Version 1 is BookKeeper's entry:
//!
//! | bytes   | field                                                             |
//! |---------|-------------------------------------------------------------------|
//! | 0 – 7   | ledger id, not negative                                           |
//! | 8 – 15  | entry id                                                          |
//! | 16 – 23 | last add confirmed, -1 for none                                   |
//! | 24 – 31 | length: payload bytes of the ledger up to and including this entry|
//! | 32 …    | digest of header and payload, then the payload                    |
//!
//! Version 2 puts 16 bytes in front: a byte 0xA0 + digest type, seven bytes of zero, the scope id.
//! Ledger ids of version 1 are not negative, so the first byte distinguishes them. Digests: CRC32
//! (an 8-byte number), CRC32C (4 bytes), HMAC-SHA1 (20 bytes) with key SHA1("mac" + password), and
//! DUMMY, which has no bytes.

use crate::checksum::Checksum;
use crate::errors::{Error, Result};
use hmac::{Hmac, Mac};
use sha1::{Digest as _, Sha1};

const HEADER_LENGTH_1: usize = 32;
const HEADER_LENGTH_2: usize = 48;
const MAX_DIGEST_LENGTH: usize = 20;
const MAX_PREFIX_LENGTH: usize = HEADER_LENGTH_2 + MAX_DIGEST_LENGTH;

const IS_VERSIONED: u8 = 0x80;
const VERSION_2: u8 = 0xA0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DigestType {
    Crc32 = 1,
    Hmac = 2,
    Crc32c = 3,
    Dummy = 4,
}

impl DigestType {
    const ALL: [Self; 4] = [Self::Crc32, Self::Hmac, Self::Crc32c, Self::Dummy];
    /// Those that an entry of version 1 can be recognised by: DUMMY fits any.
    const DETECTED: [Self; 3] = [Self::Crc32c, Self::Crc32, Self::Hmac];

    pub fn name(self) -> &'static str {
        match self {
            Self::Crc32 => "CRC32",
            Self::Hmac => "HMAC",
            Self::Crc32c => "CRC32C",
            Self::Dummy => "DUMMY",
        }
    }

    pub fn parse(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| {
            format_error(format!(
                "unknown digest type {name:?}: expected \"CRC32\", \"CRC32C\", \"HMAC\" or \"DUMMY\""
            ))
        })
    }

    fn length(self) -> usize {
        match self {
            Self::Crc32 => 8,
            Self::Hmac => MAX_DIGEST_LENGTH,
            Self::Crc32c => 4,
            Self::Dummy => 0,
        }
    }
}

fn entry_error(class: &'static str, message: String) -> Error {
    Error::Entry { class, message }
}

fn format_error(message: String) -> Error {
    entry_error("EntryFormatError", message)
}

/// A digest with its key.
#[derive(Clone)]
pub enum Digest {
    Crc(Checksum),
    Hmac(Box<Hmac<Sha1>>),
    Dummy,
}

impl Digest {
    pub fn new(kind: DigestType, password: &[u8]) -> Self {
        match kind {
            DigestType::Crc32 => Self::Crc(Checksum::Crc32),
            DigestType::Crc32c => Self::Crc(Checksum::Crc32c),
            DigestType::Dummy => Self::Dummy,
            DigestType::Hmac => {
                let key = Sha1::new()
                    .chain_update(b"mac")
                    .chain_update(password)
                    .finalize();
                // The key has 20 bytes; only one longer than a block is hashed first.
                let mut block = hmac::digest::Key::<Hmac<Sha1>>::default();
                block.iter_mut().zip(key).for_each(|(to, from)| *to = from);
                Self::Hmac(Box::new(Hmac::new(&block)))
            }
        }
    }

    pub fn kind(&self) -> DigestType {
        match self {
            Self::Crc(Checksum::Crc32) => DigestType::Crc32,
            Self::Crc(Checksum::Crc32c) => DigestType::Crc32c,
            Self::Hmac(_) => DigestType::Hmac,
            Self::Dummy => DigestType::Dummy,
        }
    }

    /// Append the digest of a header and `payload` to that header.
    #[inline]
    fn append(&self, header: &mut Prefix, payload: &[u8]) {
        match self {
            Self::Crc(kind) => {
                let sum = kind.compute_two(header.as_slice(), payload) as u32;
                match kind {
                    Checksum::Crc32 => header.push(&u64::from(sum).to_be_bytes()),
                    Checksum::Crc32c => header.push(&sum.to_be_bytes()),
                }
            }
            Self::Hmac(keyed) => {
                let mut mac = keyed.as_ref().clone();
                mac.update(header.as_slice());
                mac.update(payload);
                header.push(&mac.finalize().into_bytes());
            }
            Self::Dummy => {}
        }
    }
}

/// What an entry has before its payload, or a part of it.
pub struct Prefix {
    bytes: [u8; MAX_PREFIX_LENGTH],
    length: usize,
}

impl Prefix {
    pub fn new() -> Self {
        Self {
            bytes: [0; MAX_PREFIX_LENGTH],
            length: 0,
        }
    }

    #[inline]
    fn push(&mut self, more: &[u8]) {
        let end = self.length + more.len();
        if let Some(place) = self.bytes.get_mut(self.length..end) {
            place.copy_from_slice(more);
            self.length = end;
        }
    }

    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub scope_id: u64,
    pub ledger_id: u64,
    pub entry_id: i64,
    pub last_add_confirmed: i64,
    /// Payload bytes of the ledger up to and including this entry.
    pub length: i64,
}

impl Header {
    /// Set `prefix` to header and digest of the entry with `payload`; version 2 only in a scope
    /// other than 0.
    #[inline]
    pub fn write_prefix(&self, digest: &Digest, payload: &[u8], prefix: &mut Prefix) {
        prefix.length = 0;
        if self.scope_id != 0 {
            prefix.push(&[VERSION_2 | digest.kind() as u8, 0, 0, 0, 0, 0, 0, 0]);
            prefix.push(&self.scope_id.to_be_bytes());
        }
        prefix.push(&self.ledger_id.to_be_bytes());
        for number in [self.entry_id, self.last_add_confirmed, self.length] {
            prefix.push(&number.to_be_bytes());
        }
        digest.append(prefix, payload);
    }

    /// Compare the ids with those that were asked for.
    pub fn check_ids(
        &self,
        scope_id: Option<u64>,
        ledger_id: Option<u64>,
        entry_id: Option<i64>,
    ) -> Result<()> {
        let is_same = scope_id.is_none_or(|expected| expected == self.scope_id)
            && ledger_id.is_none_or(|expected| expected == self.ledger_id)
            && entry_id.is_none_or(|expected| expected == self.entry_id);
        if is_same {
            return Ok(());
        }
        let expected = Self {
            scope_id: scope_id.unwrap_or(self.scope_id),
            ledger_id: ledger_id.unwrap_or(self.ledger_id),
            entry_id: entry_id.unwrap_or(self.entry_id),
            ..*self
        };
        Err(entry_error(
            "EntryMismatchError",
            format!(
                "found {}, expected {}",
                described(self),
                described(&expected)
            ),
        ))
    }
}

/// Bytes that an entry of that scope has before its payload.
pub fn prefix_length(scope_id: u64, kind: DigestType) -> usize {
    let header = match scope_id {
        0 => HEADER_LENGTH_1,
        _ => HEADER_LENGTH_2,
    };
    header + kind.length()
}

#[derive(Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    pub header: Header,
    pub kind: DigestType,
    pub payload: &'a [u8],
}

/// Decode an entry and check its digest.
///
/// `kind` is the ledger's digest type; without it, an entry of version 2 names its own, and one of
/// version 1 has the first type whose digest is right.
pub fn decode<'a>(data: &'a [u8], kind: Option<DigestType>, password: &[u8]) -> Result<Entry<'a>> {
    match data.first() {
        Some(flags) if flags & IS_VERSIONED != 0 => decode_2(data, *flags, kind, password),
        _ => match kind {
            Some(kind) => decode_1(data, kind, password),
            None => detect_1(data, password),
        },
    }
}

fn detect_1<'a>(data: &'a [u8], password: &[u8]) -> Result<Entry<'a>> {
    let shortest = HEADER_LENGTH_1 + DigestType::Crc32c.length();
    if data.len() < shortest {
        return Err(too_short(data, shortest, "header and digest CRC32C"));
    }
    for kind in DigestType::DETECTED {
        if let Ok(entry) = decode_1(data, kind, password) {
            return Ok(entry);
        }
    }
    let header = read_header(data, 0, 0)?;
    Err(entry_error(
        "EntryDigestError",
        format!(
            "{} has none of the digests CRC32C, CRC32 and HMAC: expected an entry whose bytes did \
             not change; give the password of HMAC, and the digest type of one with DUMMY",
            described(&header)
        ),
    ))
}

fn decode_1<'a>(data: &'a [u8], kind: DigestType, password: &[u8]) -> Result<Entry<'a>> {
    check_length(data, HEADER_LENGTH_1, kind)?;
    let header = read_header(data, 0, 0)?;
    checked(data, HEADER_LENGTH_1, header, kind, password)
}

fn decode_2<'a>(
    data: &'a [u8],
    flags: u8,
    expected: Option<DigestType>,
    password: &[u8],
) -> Result<Entry<'a>> {
    let (header, kind) = header_2(data, flags)?;
    if let Some(expected) = expected.filter(|expected| *expected != kind) {
        return Err(entry_error(
            "EntryDigestError",
            format!(
                "{} has digest type {}, expected {}",
                described(&header),
                kind.name(),
                expected.name()
            ),
        ));
    }
    let entry = checked(data, HEADER_LENGTH_2, header, kind, password)?;
    if header.scope_id == 0 && header.ledger_id > i64::MAX as u64 {
        return Err(format_error(format!(
            "unsupported ledger id {} of an entry in scope 0: the largest is 2^63-1",
            header.ledger_id
        )));
    }
    Ok(entry)
}

/// The header of an entry of version 2, which has its whole digest, and its digest type.
fn header_2(data: &[u8], flags: u8) -> Result<(Header, DigestType)> {
    if flags & 0xF0 != VERSION_2 {
        return Err(format_error(format!(
            "unsupported entry version: first byte {flags:#04x}, expected 0x00 to 0x7f or {:#04x}",
            VERSION_2
        )));
    }
    let named = DigestType::ALL
        .into_iter()
        .find(|kind| *kind as u8 == flags & 0x0F);
    let kind = named.ok_or_else(|| {
        format_error(format!(
            "unsupported digest type {} of an entry: first byte {flags:#04x}, expected types 1 to 4",
            flags & 0x0F
        ))
    })?;
    check_length(data, HEADER_LENGTH_2, kind)?;
    let reserved = data.get(1..8).unwrap_or_default();
    if reserved.iter().any(|byte| *byte != 0) {
        return Err(format_error(format!(
            "unsupported metadata flags of an entry: bytes 1 to 7 are {reserved:02x?}, expected zeros"
        )));
    }
    Ok((read_header(data, number_at(data, 8)?, 16)?, kind))
}

/// The header of an entry, the digest type if it names one, and where its digest begins. The
/// digest is not checked.
pub fn decode_header(data: &[u8]) -> Result<(Header, Option<DigestType>, usize)> {
    match data.first() {
        Some(flags) if flags & IS_VERSIONED != 0 => {
            let (header, kind) = header_2(data, *flags)?;
            Ok((header, Some(kind), HEADER_LENGTH_2))
        }
        _ => {
            check_length(data, HEADER_LENGTH_1, DigestType::Dummy)?;
            Ok((read_header(data, 0, 0)?, None, HEADER_LENGTH_1))
        }
    }
}

fn checked<'a>(
    data: &'a [u8],
    header_length: usize,
    header: Header,
    kind: DigestType,
    password: &[u8],
) -> Result<Entry<'a>> {
    let (head, rest) = data.split_at_checked(header_length).unwrap_or_default();
    let (found, payload) = rest.split_at_checked(kind.length()).unwrap_or_default();
    let mut expected = Prefix::new();
    expected.push(head);
    Digest::new(kind, password).append(&mut expected, payload);
    let expected = expected.as_slice().get(header_length..).unwrap_or_default();
    if found == expected {
        return Ok(Entry {
            header,
            kind,
            payload,
        });
    }
    let hint = match kind {
        DigestType::Hmac => "; is the password right?",
        _ => "",
    };
    Err(entry_error(
        "EntryDigestError",
        format!(
            "{} has digest {} {}, expected {}{hint}",
            described(&header),
            kind.name(),
            hex(found),
            hex(expected)
        ),
    ))
}

fn check_length(data: &[u8], header_length: usize, kind: DigestType) -> Result<()> {
    let shortest = header_length + kind.length();
    if data.len() < shortest {
        let what = format!("header and digest {}", kind.name());
        return Err(too_short(data, shortest, &what));
    }
    Ok(())
}

fn too_short(data: &[u8], shortest: usize, what: &str) -> Error {
    entry_error(
        "EntryTooShortError",
        format!(
            "entry of {} bytes is too short: {what} have {shortest}",
            data.len()
        ),
    )
}

fn read_header(data: &[u8], scope_id: u64, at: usize) -> Result<Header> {
    Ok(Header {
        scope_id,
        ledger_id: number_at(data, at)?,
        entry_id: number_at(data, at + 8)? as i64,
        last_add_confirmed: number_at(data, at + 16)? as i64,
        length: number_at(data, at + 24)? as i64,
    })
}

fn number_at(data: &[u8], at: usize) -> Result<u64> {
    let bytes = data.get(at..).and_then(|rest| rest.first_chunk::<8>());
    let bytes = bytes.ok_or_else(|| too_short(data, at + 8, "its fields"))?;
    Ok(u64::from_be_bytes(*bytes))
}

fn described(header: &Header) -> String {
    format!(
        "entry {} of ledger {:016x}{:016x}",
        header.entry_id, header.scope_id, header.ledger_id
    )
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub mod python;
