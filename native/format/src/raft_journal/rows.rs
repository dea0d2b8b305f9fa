//! Payloads that each hold a record, decoded into columns.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, BinaryBuilder, BooleanBuilder, Int64Builder, ListBuilder,
    RecordBatch, RecordBatchOptions, StringBuilder, StructBuilder,
};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use arrow::error::ArrowError;

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

struct Columns {
    term: Int64Builder,
    index: Int64Builder,
    asqn: Int64Builder,
    kind: StringBuilder,
    lowest_asqn: Int64Builder,
    highest_asqn: Int64Builder,
    checksum_ok: BooleanBuilder,
    members: ListBuilder<StructBuilder>,
    data: BinaryBuilder,
}

impl Columns {
    fn new(rows: usize) -> Self {
        let longs = || Int64Builder::with_capacity(rows);
        Self {
            term: longs(),
            index: longs(),
            asqn: longs(),
            kind: StringBuilder::with_capacity(rows, rows * 11),
            lowest_asqn: longs(),
            highest_asqn: longs(),
            checksum_ok: BooleanBuilder::with_capacity(rows),
            members: ListBuilder::new(StructBuilder::from_fields(member_fields(), 0)),
            data: BinaryBuilder::new(),
        }
    }

    /// Append a row of nulls, but for the checksum's outcome.
    fn append_none(&mut self, checksum_ok: Option<bool>) {
        self.append_all(None);
        self.checksum_ok.append_option(checksum_ok);
    }

    fn append(&mut self, row: &Row<'_>) {
        self.append_all(Some(row));
        self.checksum_ok.append_value(true);
    }

    fn append_all(&mut self, row: Option<&Row<'_>>) {
        self.term.append_option(row.and_then(|row| row.term));
        self.index.append_option(row.map(|row| row.index));
        self.asqn.append_option(row.map(|row| row.asqn));
        self.kind.append_option(row.and_then(|row| row.kind));
        let asqns = row.and_then(|row| row.asqns);
        self.lowest_asqn
            .append_option(asqns.map(|(lowest, _)| lowest));
        self.highest_asqn
            .append_option(asqns.map(|(_, highest)| highest));
        let members = row.and_then(|row| row.members.as_ref());
        for member in members.into_iter().flatten() {
            append_member(self.members.values(), member);
        }
        self.members.append(members.is_some());
        self.data.append_option(row.and_then(|row| row.data));
    }

    fn finish(mut self, rows: usize) -> Result<RecordBatch, ArrowError> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.term.finish()),
            Arc::new(self.index.finish()),
            Arc::new(self.asqn.finish()),
            Arc::new(self.kind.finish()),
            Arc::new(self.lowest_asqn.finish()),
            Arc::new(self.highest_asqn.finish()),
            Arc::new(self.checksum_ok.finish()),
            Arc::new(self.members.finish()),
            Arc::new(self.data.finish()),
        ];
        let rows = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(schema(), columns, &rows)
    }
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
    let mut columns = Columns::new(payloads.len());
    let mut kept = Kept::default();
    let mut problems = Vec::new();
    for (number, payload) in payloads.iter().enumerate() {
        match payload.map(parse) {
            None => columns.append_none(None),
            Some(Ok(Some(row))) => columns.append(&row),
            Some(Ok(None)) => columns.append_none(Some(false)),
            Some(Err(problem)) => {
                problems.push((number, problem));
                match malformed {
                    Malformed::Null => columns.append_none(None),
                    Malformed::Drop => {
                        kept.leave_out();
                        continue;
                    }
                    Malformed::Fail => break,
                }
            }
        }
        kept.keep(number);
    }
    Ok(Decoded {
        batch: columns.finish(kept.rows)?,
        kept,
        problems,
    })
}
