//! Actions of entities (`codecs/entity/`): the rules by which they change journals, the append that
//! a replicator meets most often, taken apart in one call, payloads in JSON, journals computed from
//! all their actions, and the hash that segments of heads are computed with.

pub mod fold;
pub mod journals;
pub mod json;

use std::ops::RangeInclusive;

use pyo3::prelude::*;

use json::{SPACE, is_json};

const LENGTH_LENGTH: usize = 4;
const BEGIN: &[u8] = br#"{"events":[{"seqNr":"#;
const TAGS: &[u8] = br#","tags":["#;
const PAYLOAD: &[u8] = br#","payloadType":"json","payload":"#;
const END: &[u8] = br#"}],"metadata":{}}"#;

/// Capital letters of Unicode versions after 13, that of Java 17, which leaves them as they are.
const NEW_LETTERS: [RangeInclusive<char>; 7] = [
    '\u{1c89}'..='\u{1c89}',
    '\u{2c2f}'..='\u{2c2f}',
    '\u{a7c0}'..='\u{a7c0}',
    '\u{a7cb}'..='\u{a7dc}',
    '\u{10570}'..='\u{10595}',
    '\u{10d50}'..='\u{10d65}',
    '\u{16ea0}'..='\u{16eb8}',
];

/// Origin, version, metadata, tags and payload; `None` and empty metadata: there is none.
type SingleAppend<'a> = (
    Option<&'a str>,
    Option<&'a str>,
    &'a [u8],
    Option<&'a str>,
    &'a str,
);

/// Remove a field of variable length from the beginning of `rest`.
fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, others) = rest.split_first_chunk::<LENGTH_LENGTH>()?;
    let (field, others) = others.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *rest = others;
    Some(field)
}

fn text(field: &[u8]) -> Option<&str> {
    std::str::from_utf8(field).ok()
}

fn not_empty(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// Whether it is a JSON array of texts.
fn is_texts(tags: &str) -> bool {
    tags == "[]" || serde_json::from_str::<Vec<String>>(tags).is_ok()
}

/// The tags, a JSON array, and the payload, JSON, of the only event of an append in JSON, if it is
/// written as aerotape writes it.
fn single_event(payload: &[u8], seq_nr: u64) -> Option<(&str, &str)> {
    let inner = text(payload.strip_prefix(BEGIN)?.strip_suffix(END)?)?;
    let digits = inner.bytes().take_while(u8::is_ascii_digit).count();
    let (number, inner) = inner.split_at_checked(digits)?;
    if number.parse() != Ok(seq_nr) || !inner.as_bytes().starts_with(TAGS) {
        return None;
    }
    let tags = inner.get(TAGS.len() - 1..)?;
    let end = tags.find([']', '{', '}'])? + 1;
    let (tags, inner) = tags.split_at_checked(end)?;
    let payload = text(inner.as_bytes().strip_prefix(PAYLOAD)?)?.trim_matches(SPACE);
    (is_texts(tags) && is_json(payload)).then_some((tags, payload))
}

/// See `aerotape/_native/`.
#[pyfunction]
pub fn single_append(message: &[u8], begin: usize, seq_nr: u64) -> Option<SingleAppend<'_>> {
    let mut rest = message.get(begin..)?;
    let _mark_id = take(&mut rest)?;
    let origin = not_empty(text(take(&mut rest)?)?);
    let version = not_empty(text(take(&mut rest)?)?);
    let metadata = take(&mut rest)?;
    let (tags, payload) = single_event(take(&mut rest)?, seq_nr)?;
    let tags = Some(tags).filter(|tags| *tags != "[]");
    Some((origin, version, metadata, tags, payload))
}

/// See `aerotape/_native/`.
#[pyfunction]
pub fn string_hash(text: &str) -> i32 {
    hash(text.chars())
}

/// See `aerotape/_native/`.
#[pyfunction]
pub fn lower_case_hash(text: &str) -> i32 {
    hash(text.chars().flat_map(|letter| {
        let is_new = NEW_LETTERS.iter().any(|letters| letters.contains(&letter));
        let lower = (!is_new).then(|| letter.to_lowercase());
        lower.into_iter().flatten().chain(is_new.then_some(letter))
    }))
}

/// Java's `String.hashCode`: of the UTF-16 of a text.
fn hash(text: impl Iterator<Item = char>) -> i32 {
    text.fold(0, |hash: i32, letter| {
        letter
            .encode_utf16(&mut [0; 2])
            .iter()
            .fold(hash, |hash, unit| {
                hash.wrapping_mul(31).wrapping_add(i32::from(*unit))
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_event_in_json_is_taken_apart() {
        let one =
            br#"{"events":[{"seqNr":7,"tags":["a"],"payloadType":"json","payload":1}],"metadata":{}}"#;
        assert_eq!(single_event(one, 7), Some((r#"["a"]"#, "1")));
        assert_eq!(single_event(one, 8), None);
        let invalid =
            br#"{"events":[{"seqNr":7,"tags":["a"],"payloadType":"json","payload":x}],"metadata":{}}"#;
        assert_eq!(single_event(invalid, 7), None);
        assert_eq!(single_event(&one[..one.len() - 1], 7), None);
        let text = br#"{"events":[{"seqNr":7,"tags":[],"payloadType":"text","payload":"1"}],"metadata":{}}"#;
        assert_eq!(single_event(text, 7), None);
    }
}
