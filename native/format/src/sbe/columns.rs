//! Builds Arrow arrays and their types from the places of values, one column after the other.

use std::cell::RefCell;
use std::iter::repeat_n;
use std::sync::Arc;

use arrow_array::{ArrayRef, ListArray, StructArray, UInt32Array, new_null_array};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields};
use arrow_select::take::take;

use super::plan::{Body, Column, Kind, Message};
use super::values::{self, Escaped, Outer, Source, Unfit};
use super::walk::{Blocks, Entries, Found};

/// Name of a list's elements, as Spark and pyarrow have it.
const ELEMENT: &str = "element";

/// The columns of a body: its fields, groups and variable data, in the order of the wire.
pub fn body_fields(body: &Body) -> Fields {
    let mut fields: Vec<Field> = body.columns.iter().map(column_field).collect();
    for group in body.groups.iter().filter(|group| group.wanted) {
        let entry = body_fields(&group.body);
        // A group whose entries have no columns is omitted: Parquet has no structs without fields.
        if !entry.is_empty() {
            let element = Field::new(ELEMENT, DataType::Struct(entry), false);
            fields.push(Field::new(
                &group.name,
                DataType::List(Arc::new(element)),
                true,
            ));
        }
    }
    for data in body.var_data.iter().filter(|data| data.wanted) {
        fields.push(Field::new(
            &data.name,
            values::text_type(data.characters),
            true,
        ));
    }
    fields.into()
}

fn column_field(column: &Column) -> Field {
    let data_type = match column.kind {
        Kind::Number => values::number_type(column.primitive),
        Kind::Decimal => DataType::Decimal128(column.precision, column.scale),
        Kind::Timestamp => values::timestamp_type(column),
        Kind::Date => DataType::Date32,
        Kind::Numbers => DataType::List(numbers_element(column)),
        Kind::Text(characters) => values::text_type(characters),
        Kind::Enum => DataType::Utf8,
        Kind::Set => DataType::Struct(set_fields(column)),
        Kind::Struct => DataType::Struct(struct_fields(column)),
    };
    Field::new(&column.name, data_type, true)
}

fn numbers_element(column: &Column) -> FieldRef {
    Arc::new(column_field(&element(column)).with_name(ELEMENT))
}

/// A column of the elements of an array of numbers.
fn element(column: &Column) -> Column {
    Column {
        kind: if column.precision > 0 {
            Kind::Decimal
        } else {
            Kind::Number
        },
        offset: 0,
        length: 1,
        ..column.clone()
    }
}

fn set_fields(column: &Column) -> Fields {
    column
        .names
        .iter()
        .map(|(_, name)| Field::new(name, DataType::Boolean, true))
        .collect()
}

fn struct_fields(column: &Column) -> Fields {
    column.children.iter().map(column_field).collect()
}

/// The columns of one message for all rows of the batch, null in rows of other messages. Values
/// that do not fit their columns are added to `unfit` by their rows, texts with bytes that became
/// their numbers are counted in `escaped`.
pub fn message_columns(
    message: &Message,
    found: &Found,
    data: &[u8],
    rows: usize,
    unfit: &mut Vec<Unfit>,
    escaped: &Escaped,
) -> Result<Vec<ArrayRef>, ArrowError> {
    if found.rows.is_empty() {
        return Ok(body_fields(&message.body)
            .iter()
            .map(|field| new_null_array(field.data_type(), rows))
            .collect());
    }
    let (columns, of_blocks) = body_columns(&message.body, &found.blocks, data, escaped, None)?;
    for (block, text) in of_blocks {
        unfit.extend(found.rows.get(block).map(|row| (*row as usize, text)));
    }
    if found.rows.len() == rows {
        return Ok(columns);
    }
    let places = spread(&found.rows, rows);
    columns
        .iter()
        .map(|column| take(column, &places, None))
        .collect()
}

/// For each row of the batch the index among those of the message, or null.
fn spread(found: &[u32], rows: usize) -> UInt32Array {
    let mut places = vec![None; rows];
    for (index, row) in found.iter().enumerate() {
        if let Some(place) = places.get_mut(*row as usize) {
            *place = u32::try_from(index).ok();
        }
    }
    places.into()
}

/// Which rows of the batch are of the message; `None` if all are.
pub fn presence(found: &Found, rows: usize) -> Option<NullBuffer> {
    (found.rows.len() < rows).then(|| {
        let mut present = vec![false; rows];
        for row in &found.rows {
            if let Some(slot) = present.get_mut(*row as usize) {
                *slot = true;
            }
        }
        NullBuffer::from(present)
    })
}

/// The columns of blocks, and the values that do not fit them, by block.
fn body_columns(
    body: &Body,
    blocks: &Blocks,
    data: &[u8],
    escaped: &Escaped,
    outer: Option<&Outer>,
) -> Result<(Vec<ArrayRef>, Vec<Unfit>), ArrowError> {
    let unfit = RefCell::default();
    let source = Source {
        data,
        starts: &blocks.starts,
        versions: &blocks.versions,
        oldest: blocks.oldest,
        unfit: &unfit,
        escaped,
        outer,
    };
    let mut columns = Vec::new();
    for column in &body.columns {
        columns.push(column_array(column, &source)?);
    }
    for (group, entries) in body.groups.iter().zip(&blocks.groups) {
        if group.wanted
            && let Some(list) = group_column(&group.body, entries, &source)?
        {
            columns.push(list);
        }
    }
    for (variable, places) in body.var_data.iter().zip(&blocks.var_data) {
        if variable.wanted {
            columns.push(values::variable(&source, places, variable)?);
        }
    }
    Ok((columns, unfit.into_inner()))
}

fn group_column(
    body: &Body,
    entries: &Entries,
    source: &Source,
) -> Result<Option<ArrayRef>, ArrowError> {
    let fields = body_fields(body);
    if fields.is_empty() {
        return Ok(None);
    }
    let element = Field::new(ELEMENT, DataType::Struct(fields.clone()), false);
    let outer = body.needs_outer().then(|| Outer {
        source,
        blocks: blocks_of(&entries.offsets),
    });
    let (columns, of_entries) = body_columns(
        body,
        &entries.blocks,
        source.data,
        source.escaped,
        outer.as_ref(),
    )?;
    for (entry, text) in of_entries {
        let until = |end: &i32| *end as usize <= entry;
        let block = entries.offsets.partition_point(until).saturating_sub(1);
        source.unfit.borrow_mut().push((block, text));
    }
    let structs = StructArray::try_new(fields, columns, None)?;
    let known = NullBuffer::from(entries.known.as_slice());
    Ok(Some(Arc::new(ListArray::try_new(
        Arc::new(element),
        OffsetBuffer::new(ScalarBuffer::from(entries.offsets.clone())),
        Arc::new(structs),
        (known.null_count() > 0).then_some(known),
    )?)))
}

/// For each entry of a group its block.
fn blocks_of(offsets: &[i32]) -> Vec<usize> {
    let counts = offsets.iter().zip(offsets.iter().skip(1));
    counts
        .enumerate()
        .flat_map(|(block, (begin, end))| repeat_n(block, (end - begin) as usize))
        .collect()
}

fn column_array(column: &Column, source: &Source) -> Result<ArrayRef, ArrowError> {
    match column.kind {
        Kind::Number => Ok(values::numbers(source, column)),
        Kind::Decimal => values::decimals(source, column),
        Kind::Timestamp => Ok(values::timestamps(source, column)),
        Kind::Date => Ok(values::dates(source, column)),
        Kind::Numbers => number_lists(column, source),
        Kind::Text(characters) => values::fixed_text(source, column, characters),
        Kind::Enum => values::names(source, column),
        Kind::Set => structs(
            set_fields(column),
            values::flags(source, column),
            column,
            source,
        ),
        Kind::Struct => {
            let children = column
                .children
                .iter()
                .map(|child| column_array(child, source))
                .collect::<Result<_, _>>()?;
            structs(struct_fields(column), children, column, source)
        }
    }
}

fn structs(
    fields: Fields,
    children: Vec<ArrayRef>,
    column: &Column,
    source: &Source,
) -> Result<ArrayRef, ArrowError> {
    let known = source.known(column.since_version);
    Ok(Arc::new(StructArray::try_new_with_length(
        fields,
        children,
        known,
        source.starts.len(),
    )?))
}

/// Arrays of numbers: every element is a separate row to the reader of numbers.
fn number_lists(column: &Column, source: &Source) -> Result<ArrayRef, ArrowError> {
    let known = source.known(column.since_version);
    let size = column.primitive.size();
    let mut starts = Vec::with_capacity(source.starts.len() * column.length);
    let mut offsets = Vec::with_capacity(source.starts.len() + 1);
    offsets.push(0);
    for (row, start) in source.starts.iter().enumerate() {
        if known.as_ref().is_none_or(|known| known.is_valid(row)) {
            let first = start + column.offset;
            starts.extend((0..column.length).map(|index| first + index * size));
        }
        let end = i32::try_from(starts.len()).map_err(|_| {
            ArrowError::ComputeError(format!(
                "{}: too many numbers for one column: decode smaller batches",
                column.name
            ))
        })?;
        offsets.push(end);
    }
    let elements = column_array(
        &element(column),
        &Source {
            starts: &starts,
            versions: &[],
            oldest: 0,
            ..*source
        },
    )?;
    Ok(Arc::new(ListArray::try_new(
        numbers_element(column),
        OffsetBuffer::new(ScalarBuffer::from(offsets)),
        elements,
        known,
    )?))
}
