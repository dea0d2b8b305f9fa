//! The leaves: numbers, characters, names and flags, read from known places.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, BooleanArray, NullBufferBuilder, PrimitiveArray, StringArray,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type,
};
use arrow::error::ArrowError;

use super::plan::{Characters, Column, Primitive};

/// Digits of the largest uint64.
const UINT64_DIGITS: u8 = 20;

/// The places of a column's bytes, row by row.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    pub data: &'a [u8],
    /// First byte of each row's block.
    pub starts: &'a [usize],
    /// Acting versions; empty where every row is known to have the column.
    pub versions: &'a [u64],
    /// No row has an older version.
    pub oldest: u64,
}

impl<'a> Source<'a> {
    /// Which rows have the column; `None` if all have.
    pub fn known(&self, since_version: u64) -> Option<NullBuffer> {
        (since_version > self.oldest && !self.versions.is_empty()).then(|| {
            self.versions
                .iter()
                .map(|version| *version >= since_version)
                .collect()
        })
    }

    /// The bytes of a column at a row. The walk has made sure of them where the row knows the
    /// column; for other rows they are undefined, or empty.
    #[inline]
    fn bytes(&self, column: &'a Column, row: usize) -> &'a [u8] {
        if let Some(constant) = &column.constant {
            return constant;
        }
        let Some(start) = self.starts.get(row).map(|start| start + column.offset) else {
            return &[];
        };
        let size = column.length * column.primitive.size();
        self.data.get(start..start + size).unwrap_or_default()
    }

    /// Convert the bytes of each row with `make`, which receives them in little-endian order.
    #[inline]
    fn words<const N: usize, T>(&self, column: &Column, make: impl Fn([u8; N]) -> T) -> Vec<T> {
        if let Some(constant) = &column.constant {
            let word = constant.first_chunk().copied().unwrap_or([0; N]);
            return self.starts.iter().map(|_| make(word)).collect();
        }
        let word = |start: &usize| {
            let from = self.data.get(start + column.offset..);
            from.and_then(<[u8]>::first_chunk)
                .copied()
                .unwrap_or([0; N])
        };
        if column.big_endian {
            let reversed = |start| {
                let mut word = word(start);
                word.reverse();
                make(word)
            };
            self.starts.iter().map(reversed).collect()
        } else {
            self.starts.iter().map(|start| make(word(start))).collect()
        }
    }

    /// A column's values as unsigned numbers, for names.
    fn unsigned(&self, column: &Column) -> Vec<u64> {
        match column.primitive.size() {
            1 => self.words(column, |word| u64::from(u8::from_le_bytes(word))),
            2 => self.words(column, |word| u64::from(u16::from_le_bytes(word))),
            4 => self.words(column, |word| u64::from(u32::from_le_bytes(word))),
            _ => self.words(column, u64::from_le_bytes),
        }
    }
}

/// The Arrow type of a number. Spark has no unsigned types: those get the next wider signed type.
pub fn number_type(primitive: Primitive) -> DataType {
    match primitive {
        Primitive::Int8 => DataType::Int8,
        Primitive::Int16 | Primitive::Uint8 | Primitive::Char => DataType::Int16,
        Primitive::Int32 | Primitive::Uint16 => DataType::Int32,
        Primitive::Int64 | Primitive::Uint32 => DataType::Int64,
        Primitive::Uint64 => DataType::Decimal128(UINT64_DIGITS, 0),
        Primitive::Float => DataType::Float32,
        Primitive::Double => DataType::Float64,
    }
}

pub fn numbers(source: &Source, column: &Column) -> Result<ArrayRef, ArrowError> {
    Ok(match column.primitive {
        Primitive::Int8 => column_of::<Int8Type, 1>(source, column, i8::from_le_bytes),
        Primitive::Int16 => column_of::<Int16Type, 2>(source, column, i16::from_le_bytes),
        Primitive::Int32 => column_of::<Int32Type, 4>(source, column, i32::from_le_bytes),
        Primitive::Int64 => column_of::<Int64Type, 8>(source, column, i64::from_le_bytes),
        Primitive::Uint8 | Primitive::Char => {
            column_of::<Int16Type, 1>(source, column, |b| i16::from(u8::from_le_bytes(b)))
        }
        Primitive::Uint16 => {
            column_of::<Int32Type, 2>(source, column, |b| i32::from(u16::from_le_bytes(b)))
        }
        Primitive::Uint32 => {
            column_of::<Int64Type, 4>(source, column, |b| i64::from(u32::from_le_bytes(b)))
        }
        Primitive::Uint64 => {
            let array = primitive::<Decimal128Type, 8>(source, column, |b| {
                i128::from(u64::from_le_bytes(b))
            });
            Arc::new(array.with_precision_and_scale(UINT64_DIGITS, 0)?)
        }
        Primitive::Float => column_of::<Float32Type, 4>(source, column, f32::from_le_bytes),
        Primitive::Double => column_of::<Float64Type, 8>(source, column, f64::from_le_bytes),
    })
}

fn column_of<T: ArrowPrimitiveType, const N: usize>(
    source: &Source,
    column: &Column,
    convert: impl Fn([u8; N]) -> T::Native,
) -> ArrayRef {
    Arc::new(primitive::<T, N>(source, column, convert))
}

fn primitive<T: ArrowPrimitiveType, const N: usize>(
    source: &Source,
    column: &Column,
    convert: impl Fn([u8; N]) -> T::Native,
) -> PrimitiveArray<T> {
    let values = ScalarBuffer::from(source.words(column, convert));
    let known = source.known(column.since_version);
    let present = null_word::<N>(column).map(|null| {
        // For floating point numbers every NaN is null, whatever its bits.
        let floating = matches!(column.primitive, Primitive::Float | Primitive::Double);
        NullBuffer::from(if floating && is_nan(&null) {
            source.words(column, |word: [u8; N]| !is_nan(&word))
        } else {
            source.words(column, |word| word != null)
        })
    });
    let nulls = NullBuffer::union(known.as_ref(), present.as_ref());
    PrimitiveArray::new(values, nulls.filter(|nulls| nulls.null_count() > 0))
}

fn null_word<const N: usize>(column: &Column) -> Option<[u8; N]> {
    column.null.as_ref()?.as_slice().try_into().ok()
}

fn is_nan(word: &[u8]) -> bool {
    match word.len() {
        4 => word
            .try_into()
            .is_ok_and(|w| f32::from_le_bytes(w).is_nan()),
        8 => word
            .try_into()
            .is_ok_and(|w| f64::from_le_bytes(w).is_nan()),
        _ => false,
    }
}

/// Collects strings or bytes; reports when they are more than one column can hold.
struct Bytes {
    data: Vec<u8>,
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
}

impl Bytes {
    fn new(rows: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Self {
            data: Vec::new(),
            offsets,
            nulls: NullBufferBuilder::new(rows),
        }
    }

    #[inline]
    fn push(&mut self, value: &[u8]) -> Result<(), ArrowError> {
        self.data.extend_from_slice(value);
        self.end()
    }

    /// Push bytes as the characters that they are.
    #[inline]
    fn push_characters(&mut self, value: &[u8], characters: Characters) -> Result<(), ArrowError> {
        match characters {
            Characters::Bytes => self.data.extend_from_slice(value),
            _ if value.is_ascii() => self.data.extend_from_slice(value),
            Characters::Utf8 => self
                .data
                .extend_from_slice(String::from_utf8_lossy(value).as_bytes()),
            Characters::Latin1 => {
                for byte in value {
                    let mut utf8 = [0; 2];
                    self.data
                        .extend_from_slice(char::from(*byte).encode_utf8(&mut utf8).as_bytes());
                }
            }
        }
        self.end()
    }

    #[inline]
    fn end(&mut self) -> Result<(), ArrowError> {
        let end = i32::try_from(self.data.len()).map_err(|_| {
            ArrowError::ComputeError(
                "a column of text would be over 2 GiB: decode smaller batches".to_owned(),
            )
        })?;
        self.offsets.push(end);
        self.nulls.append_non_null();
        Ok(())
    }

    fn push_null(&mut self) {
        self.offsets.push(self.offsets.last().copied().unwrap_or(0));
        self.nulls.append_null();
    }

    fn finish(mut self, characters: Characters) -> Result<ArrayRef, ArrowError> {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        let nulls = self.nulls.finish();
        let data = Buffer::from_vec(self.data);
        Ok(match characters {
            Characters::Bytes => Arc::new(BinaryArray::try_new(offsets, data, nulls)?),
            _ => Arc::new(StringArray::try_new(offsets, data, nulls)?),
        })
    }
}

pub fn text_type(characters: Characters) -> DataType {
    match characters {
        Characters::Bytes => DataType::Binary,
        _ => DataType::Utf8,
    }
}

/// Fixed arrays of characters or bytes. Characters end at the first NUL.
pub fn fixed_text(
    source: &Source,
    column: &Column,
    characters: Characters,
) -> Result<ArrayRef, ArrowError> {
    let rows = source.starts.len();
    let known = source.known(column.since_version);
    let mut built = Bytes::new(rows);
    for row in 0..rows {
        let value = source.bytes(column, row);
        let is_null = match column.null.as_deref() {
            Some([null]) => match characters {
                Characters::Bytes => value.iter().all(|byte| byte == null),
                _ => value.first() == Some(null),
            },
            _ => false,
        };
        if is_null || known.as_ref().is_some_and(|known| known.is_null(row)) {
            built.push_null();
        } else if characters == Characters::Bytes {
            built.push(value)?;
        } else {
            let text = value.split(|byte| *byte == 0).next().unwrap_or_default();
            built.push_characters(text, characters)?;
        }
    }
    built.finish(characters)
}

/// Variable data at the places that the walk has found.
pub fn variable(
    data: &[u8],
    places: &[super::walk::Place],
    characters: Characters,
) -> Result<ArrayRef, ArrowError> {
    let mut built = Bytes::new(places.len());
    for place in places {
        match place {
            Some((start, length)) => built.push_characters(
                data.get(*start..start + length).unwrap_or_default(),
                characters,
            )?,
            None => built.push_null(),
        }
    }
    built.finish(characters)
}

/// Enum values by name. A value without a name, as a newer sender may have, is its number.
pub fn names(source: &Source, column: &Column) -> Result<ArrayRef, ArrowError> {
    let rows = source.starts.len();
    let known = source.known(column.since_version);
    let null = column.null.as_ref().map(|bytes| {
        let mut number = [0; 8];
        for (to, from) in number.iter_mut().zip(bytes) {
            *to = *from;
        }
        u64::from_le_bytes(number)
    });
    let signed = matches!(
        column.primitive,
        Primitive::Int8 | Primitive::Int16 | Primitive::Int32 | Primitive::Int64
    );
    let spare = 64 - 8 * column.primitive.size() as u32;
    // Small numbers, which most are, find their name by index.
    let mut table: Vec<Option<&str>> = vec![None; 256];
    for (value, name) in &column.names {
        if let Some(slot) = usize::try_from(*value).ok().and_then(|i| table.get_mut(i)) {
            slot.get_or_insert(name);
        }
    }
    let mut built = Bytes::new(rows);
    for (row, value) in source.unsigned(column).into_iter().enumerate() {
        if known.as_ref().is_some_and(|known| known.is_null(row)) {
            built.push_null();
            continue;
        }
        let name = match usize::try_from(value).ok().and_then(|i| table.get(i)) {
            Some(name) => *name,
            None => column
                .names
                .iter()
                .find(|(known, _)| *known == value)
                .map(|(_, name)| name.as_str()),
        };
        match name {
            Some(name) => built.push(name.as_bytes())?,
            None if Some(value) == null => built.push_null(),
            None if signed => {
                let number = (value << spare) as i64 >> spare;
                built.push(number.to_string().as_bytes())?;
            }
            None => built.push(value.to_string().as_bytes())?,
        }
    }
    built.finish(Characters::Utf8)
}

/// The flags of a set, one column a bit.
pub fn flags(source: &Source, column: &Column) -> Vec<ArrayRef> {
    let values = source.unsigned(column);
    let flag = |bit: u64| -> ArrayRef {
        let set = |value: u64| bit < 64 && value >> bit & 1 == 1;
        let buffer = BooleanBuffer::collect_bool(values.len(), |row| {
            values.get(row).is_some_and(|value| set(*value))
        });
        Arc::new(BooleanArray::new(buffer, None))
    };
    column.names.iter().map(|(bit, _)| flag(*bit)).collect()
}

/// Strings with nulls, of errors and of template names.
pub fn strings<'a>(
    values: impl ExactSizeIterator<Item = Option<&'a str>>,
) -> Result<ArrayRef, ArrowError> {
    let mut built = Bytes::new(values.len());
    for value in values {
        match value {
            Some(value) => built.push(value.as_bytes())?,
            None => built.push_null(),
        }
    }
    let array = built.finish(Characters::Utf8)?;
    debug_assert_eq!(array.data_type(), &DataType::Utf8);
    Ok(array)
}
