//! Payloads that each hold a record, decoded into columns.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder, StringBuilder, StructBuilder};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Int64Array, RecordBatch, StringArray,
};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef};

use super::entry::{self, APPLICATION, CONFIGURATION, Member};
use super::record::{self, Problem};
use crate::sbe::decoded::{Decoded, Kept, Malformed};

const MEMBER_TYPES: [&str; 4] = ["INACTIVE", "PASSIVE", "PROMOTABLE", "ACTIVE"];

fn member_fields() -> Fields {
    Fields::from(vec![
        Field::new("member_id", DataType::Utf8, true),
        Field::new("type", DataType::Utf8, true),
        Field::new("updated", DataType::Int64, true),
    ])
}

pub fn schema() -> SchemaRef {
    let long = |name: &str| Field::new(name, DataType::Int64, true);
    let member = Field::new("item", DataType::Struct(member_fields()), true);
    Arc::new(Schema::new(vec![
        long("term"),
        long("index"),
        long("asqn"),
        Field::new("type", DataType::Utf8, true),
        long("lowest_asqn"),
        long("highest_asqn"),
        Field::new("checksum_ok", DataType::Boolean, true),
        Field::new("members", DataType::List(Arc::new(member)), true),
        Field::new("data", DataType::Binary, true),
    ]))
}

/// A record with its numbers as the columns have them. The fields of a raft entry are `None` if the
/// record's data is not a raft entry.
struct Row<'a> {
    index: i64,
    asqn: i64,
    term: Option<i64>,
    kind: Option<&'static str>,
    asqns: Option<(i64, i64)>,
    members: Option<Vec<Member<'a>>>,
    data: Option<&'a [u8]>,
}

/// Parse a record. `None`: its checksum is wrong, so its data is not read.
fn parse(bytes: &[u8]) -> Result<Option<Row<'_>>, String> {
    match record::parse(bytes) {
        Ok(record) => Row::of(&record).map(Some),
        Err(damage) if damage.problem == Problem::InvalidChecksum => Ok(None),
        Err(damage) => Err(damage.why),
    }
}

impl<'a> Row<'a> {
    fn of(record: &record::Record<'a>) -> Result<Self, String> {
        let mut row = Self {
            index: signed("index", record.index)?,
            asqn: record.asqn,
            term: None,
            kind: None,
            asqns: None,
            members: None,
            data: None,
        };
        let Ok(found) = entry::parse(record.blob) else {
            return Ok(row);
        };
        row.term = Some(signed("term", found.term)?);
        row.kind = Some(match found.kind {
            APPLICATION => {
                row.data = found.data;
                row.asqns = Some((
                    signed("lowest asqn", found.lowest_asqn)?,
                    signed("highest asqn", found.highest_asqn)?,
                ));
                "APPLICATION"
            }
            CONFIGURATION => {
                // Zeebe cuts entries with member ids that are not ASCII.
                row.members = entry::members_of(record.blob, &found).ok();
                "CONFIGURATION"
            }
            _ => "INITIAL",
        });
        Ok(row)
    }
}

fn signed(name: &str, value: u64) -> Result<i64, String> {
    i64::try_from(value).map_err(|_| format!("{name} {value} is more than {}", i64::MAX))
}

/// Whether the checksum is right, if there is a payload, and what is sound of it.
type Checked<'a> = (Option<bool>, Option<Row<'a>>);

fn columns(rows: &[Checked<'_>]) -> Result<RecordBatch, ArrowError> {
    let long = |get: fn(&Row<'_>) -> Option<i64>| -> ArrayRef {
        let numbers = rows.iter().map(|(_, row)| row.as_ref().and_then(get));
        Arc::new(numbers.collect::<Int64Array>())
    };
    let kinds = rows.iter().map(|(_, row)| row.as_ref()?.kind);
    let checks = rows.iter().map(|(checksum_ok, _)| *checksum_ok);
    let data = rows.iter().map(|(_, row)| row.as_ref()?.data);
    let mut members = ListBuilder::new(StructBuilder::from_fields(member_fields(), 0));
    for (_, row) in rows {
        let of_row = row.as_ref().and_then(|row| row.members.as_ref());
        for member in of_row.into_iter().flatten() {
            append_member(members.values(), member);
        }
        members.append(of_row.is_some());
    }
    let columns: Vec<ArrayRef> = vec![
        long(|row| row.term),
        long(|row| Some(row.index)),
        long(|row| Some(row.asqn)),
        Arc::new(kinds.collect::<StringArray>()),
        long(|row| row.asqns.map(|(lowest, _)| lowest)),
        long(|row| row.asqns.map(|(_, highest)| highest)),
        Arc::new(checks.collect::<BooleanArray>()),
        Arc::new(members.finish()),
        Arc::new(data.collect::<BinaryArray>()),
    ];
    RecordBatch::try_new(schema(), columns)
}

fn append_member(fields: &mut StructBuilder, member: &Member<'_>) {
    let known = MEMBER_TYPES.get(usize::from(member.kind));
    let kind = known.map_or_else(|| member.kind.to_string(), ToString::to_string);
    if let Some(text) = fields.field_builder::<StringBuilder>(0) {
        text.append_value(member.id);
    }
    if let Some(text) = fields.field_builder::<StringBuilder>(1) {
        text.append_value(kind);
    }
    if let Some(number) = fields.field_builder::<Int64Builder>(2) {
        number.append_value(member.updated);
    }
    fields.append(true);
}

pub fn decode(payloads: &BinaryArray, malformed: Malformed) -> Result<Decoded, ArrowError> {
    let mut rows = Vec::with_capacity(payloads.len());
    let mut kept = Kept::default();
    let mut problems = Vec::new();
    for (number, payload) in payloads.iter().enumerate() {
        rows.push(match payload.map(parse) {
            None => (None, None),
            Some(Ok(row)) => (Some(row.is_some()), row),
            Some(Err(problem)) => {
                problems.push((number, problem));
                match malformed {
                    Malformed::Null => (None, None),
                    Malformed::Drop => {
                        kept.leave_out();
                        continue;
                    }
                    Malformed::Fail => break,
                }
            }
        });
        kept.keep(number);
    }
    Ok(Decoded {
        batch: columns(&rows)?,
        kept,
        problems,
        escaped: BTreeMap::new(),
    })
}
