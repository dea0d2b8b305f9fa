//! JSON that is checked and taken apart, and never rewritten: numbers, names, escapes and whitespace
//! stay as they were given.

use std::borrow::Cow;
use std::collections::HashMap;
use std::str::from_utf8;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use serde::de::{Deserialize, Deserializer, IgnoredAny};
use serde_json::error::Category;
use serde_json::value::RawValue;

/// JSON's whitespace.
pub const SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

/// Sequence number, payload, type of the payload, tags.
type Event<'a> = (i64, Option<Cow<'a, [u8]>>, &'static str, Vec<String>);

/// The JSON form of the payload of an append.
#[derive(serde::Deserialize)]
struct Append<'a> {
    #[serde(borrow)]
    events: Vec<Item<'a>>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Item<'a> {
    seq_nr: i64,
    #[serde(default)]
    tags: Vec<String>,
    payload_type: Option<String>,
    #[serde(borrow, default, deserialize_with = "given")]
    payload: Option<&'a RawValue>,
}

/// A value that may be missing, which null is not.
fn given<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl<'a> Item<'a> {
    fn event(self) -> PyResult<Event<'a>> {
        let (payload, kind) = match (self.payload, self.payload_type.as_deref()) {
            (None, _) | (_, Some("none")) => (None, "none"),
            (Some(value), None | Some("json")) => {
                (Some(Cow::Borrowed(value.get().as_bytes())), "json")
            }
            (Some(value), Some("text")) => {
                let text: String = serde_json::from_str(value.get()).map_err(invalid)?;
                (Some(Cow::Owned(text.into_bytes())), "text")
            }
            (_, Some(other)) => {
                return Err(PyValueError::new_err(format!(
                    "event {}: unknown payload type {other:?}",
                    self.seq_nr
                )));
            }
        };
        Ok((self.seq_nr, payload, kind, self.tags))
    }
}

fn invalid(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Whether a text is one JSON value, nested to any depth.
pub fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// The depth of arrays and objects of valid JSON.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut is_string, mut is_escaped) = (false, false);
    for byte in json.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'"' => is_string = !is_string,
            b'\\' => is_escaped = true,
            _ if is_string => (),
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => (),
        }
    }
    deepest
}

/// See `aerotape/_native/`.
#[pyfunction]
#[pyo3(signature = (text, max_depth = None))]
pub fn check_json(text: &[u8], max_depth: Option<usize>) -> PyResult<()> {
    let text = from_utf8(text).map_err(invalid)?;
    serde_json::from_str::<IgnoredAny>(text).map_err(invalid)?;
    match max_depth {
        Some(most) if depth(text) > most => Err(PyValueError::new_err(format!(
            "it is nested deeper than {most} levels"
        ))),
        _ => Ok(()),
    }
}

/// See `aerotape/_native/`.
#[pyfunction]
pub fn json_members(text: &str) -> PyResult<HashMap<String, &str>> {
    let members: HashMap<String, &RawValue> =
        serde_json::from_str(text).map_err(|error| match error.classify() {
            Category::Data => PyTypeError::new_err("expected a JSON object"),
            _ => invalid(error),
        })?;
    let members = members.into_iter();
    Ok(members.map(|(name, value)| (name, value.get())).collect())
}

/// See `aerotape/_native/`.
#[pyfunction]
pub fn json_events(payload: &[u8]) -> PyResult<(Vec<Event<'_>>, Option<&str>)> {
    let append: Append<'_> = serde_json::from_slice(payload).map_err(invalid)?;
    let events: PyResult<_> = append.events.into_iter().map(Item::event).collect();
    Ok((events?, append.metadata.map(RawValue::get)))
}
