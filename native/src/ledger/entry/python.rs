//! Encoding and decoding one entry, for `aerotape.codecs.entry`.

use super::{Digest, DigestType, Header, Prefix, decode, decode_header};
use crate::aeron::Lent;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

#[pyfunction]
pub fn encode_entry<'py>(
    py: Python<'py>,
    header: (u64, u64, i64, i64, i64),
    payload: &Bound<'py, PyAny>,
    digest_type: &str,
    password: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let digest = Digest::new(DigestType::parse(digest_type)?, password);
    let payload = Lent::new(payload)?;
    let payload = payload.as_slice();
    let (scope_id, ledger_id, entry_id, last_add_confirmed, length) = header;
    let header = Header {
        scope_id,
        ledger_id,
        entry_id,
        last_add_confirmed,
        length,
    };
    let mut prefix = Prefix::new();
    header.write_prefix(&digest, payload, &mut prefix);
    Ok(PyBytes::new(py, &[prefix.as_slice(), payload].concat()))
}

/// Ledger id, entry id, last add confirmed, length, payload, digest type, scope id.
type Fields<'py> = (u64, i64, i64, i64, Bound<'py, PyBytes>, &'static str, u64);

#[pyfunction]
#[pyo3(signature = (data, digest_type, password, scope_id=None, ledger_id=None, entry_id=None))]
pub fn decode_entry<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    digest_type: Option<&str>,
    password: &[u8],
    scope_id: Option<u64>,
    ledger_id: Option<u64>,
    entry_id: Option<i64>,
) -> PyResult<Fields<'py>> {
    let kind = digest_type.map(DigestType::parse).transpose()?;
    let data = Lent::new(data)?;
    let entry = decode(data.as_slice(), kind, password)?;
    entry.header.check_ids(scope_id, ledger_id, entry_id)?;
    let header = entry.header;
    Ok((
        header.ledger_id,
        header.entry_id,
        header.last_add_confirmed,
        header.length,
        PyBytes::new(py, entry.payload),
        entry.kind.name(),
        header.scope_id,
    ))
}

/// Ledger id, entry id, last add confirmed, length, digest type, scope id, offset of the digest.
type HeaderFields = (u64, i64, i64, i64, Option<&'static str>, u64, usize);

#[pyfunction]
pub fn decode_entry_header(data: &Bound<'_, PyAny>) -> PyResult<HeaderFields> {
    let data = Lent::new(data)?;
    let (header, kind, digest_offset) = decode_header(data.as_slice())?;
    Ok((
        header.ledger_id,
        header.entry_id,
        header.last_add_confirmed,
        header.length,
        kind.map(DigestType::name),
        header.scope_id,
        digest_offset,
    ))
}
