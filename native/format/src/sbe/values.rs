//! The leaves: numbers, characters, names and flags, read from known places.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, PrimitiveArray,
    StringArray, TimestampMicrosecondArray, TimestampNanosecondArray,
};
use arrow_buffer::{
    ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, NullBufferBuilder, OffsetBuffer,
    ScalarBuffer,
};
use arrow_schema::{ArrowError, DataType, TimeUnit};

use super::plan::{Characters, Column, Kind, Primitive, VarData};

/// The time zone of timestamps.
const ZONE: &str = "UTC";
const NANOSECONDS: i8 = 9;
/// The first and the last microsecond, and the first and the last day, of the years 1 to 9999,
/// which Spark and Python have.
const MICROSECONDS: (i128, i128) = (-62_135_596_800_000_000, 253_402_300_799_999_999);
const DAYS: (i128, i128) = (-719_162, 2_932_896);

/// A value that its column cannot have: the index of its block, and why.
pub type Unfit = (usize, String);

/// How many texts of a column had bytes that became their numbers.
pub type Escaped = RefCell<BTreeMap<String, u64>>;

/// The body that a group is in.
pub struct Outer<'a> {
    pub source: &'a Source<'a>,
    /// For each entry of the group its block.
    pub blocks: Vec<usize>,
}

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
    /// Collects the values that do not fit their columns.
    pub unfit: &'a RefCell<Vec<Unfit>>,
    pub escaped: &'a Escaped,
    /// Where a group's fields may have their exponents.
    pub outer: Option<&'a Outer<'a>>,
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

/// The Arrow type of a number. Unsigned types get the next wider signed type, as Spark has only
/// those, but for uint64.
pub fn number_type(primitive: Primitive) -> DataType {
    match primitive {
        Primitive::Int8 => DataType::Int8,
        Primitive::Int16 | Primitive::Uint8 | Primitive::Char => DataType::Int16,
        Primitive::Int32 | Primitive::Uint16 => DataType::Int32,
        Primitive::Int64 | Primitive::Uint32 => DataType::Int64,
        Primitive::Uint64 => DataType::UInt64,
        Primitive::Float => DataType::Float32,
        Primitive::Double => DataType::Float64,
    }
}

pub fn numbers(source: &Source, column: &Column) -> ArrayRef {
    match column.primitive {
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
        Primitive::Uint64 => column_of::<UInt64Type, 8>(source, column, u64::from_le_bytes),
        Primitive::Float => column_of::<Float32Type, 4>(source, column, f32::from_le_bytes),
        Primitive::Double => column_of::<Float64Type, 8>(source, column, f64::from_le_bytes),
    }
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
    PrimitiveArray::new(values, nulls::<N>(source, column))
}

/// Which rows have a value; `None` if all have.
fn nulls<const N: usize>(source: &Source, column: &Column) -> Option<NullBuffer> {
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
    nulls.filter(|nulls| nulls.null_count() > 0)
}

fn nulls_of(source: &Source, column: &Column) -> Option<NullBuffer> {
    match column.primitive.size() {
        1 => nulls::<1>(source, column),
        2 => nulls::<2>(source, column),
        4 => nulls::<4>(source, column),
        _ => nulls::<8>(source, column),
    }
}

/// Convert a column's whole numbers with `make`.
#[inline]
fn integers<T>(source: &Source, column: &Column, make: impl Fn(i128) -> T) -> Vec<T> {
    match column.primitive {
        Primitive::Int8 => source.words(column, |word| make(i8::from_le_bytes(word).into())),
        Primitive::Int16 => source.words(column, |word| make(i16::from_le_bytes(word).into())),
        Primitive::Int32 => source.words(column, |word| make(i32::from_le_bytes(word).into())),
        Primitive::Int64 => source.words(column, |word| make(i64::from_le_bytes(word).into())),
        Primitive::Uint8 | Primitive::Char => {
            source.words(column, |word| make(u8::from_le_bytes(word).into()))
        }
        Primitive::Uint16 => source.words(column, |word| make(u16::from_le_bytes(word).into())),
        Primitive::Uint32 | Primitive::Float => {
            source.words(column, |word| make(u32::from_le_bytes(word).into()))
        }
        Primitive::Uint64 | Primitive::Double => {
            source.words(column, |word| make(u64::from_le_bytes(word).into()))
        }
    }
}

/// `number` times a power of ten, if it is a whole number of 128 bits.
fn scaled(number: i128, power: i128) -> Option<i128> {
    if number == 0 {
        return Some(0);
    }
    let factor = 10_i128.checked_pow(u32::try_from(power.unsigned_abs()).ok()?)?;
    if power >= 0 {
        number.checked_mul(factor)
    } else {
        (number % factor == 0).then_some(number / factor)
    }
}

/// A column's numbers times its power of ten, each of which must be in a range, as `make` has
/// them; and which rows have one. A number out of the range is reported, unless it is null.
fn scaled_numbers<T: ArrowNativeType>(
    source: &Source,
    column: &Column,
    (low, high): (i128, i128),
    make: impl Fn(i128) -> T,
) -> (ScalarBuffer<T>, Option<NullBuffer>) {
    let range = low..=high;
    let own = i128::from(column.exponent);
    let scale = i128::from(column.scale);
    let mut nulls = nulls_of(source, column);
    let unit = match column.children.first() {
        None => {
            let factor = scaled(1, own + scale).unwrap_or_default();
            let fit = Cell::new(true);
            let values = integers(source, column, |number| {
                let value = number.wrapping_mul(factor);
                if value < low || value > high {
                    fit.set(false);
                }
                make(value)
            });
            if fit.get() {
                return (values.into(), nulls);
            }
            vec![own; values.len()]
        }
        Some(child) => {
            let (exponents, of_exponents) = exponents(source, child, child.level);
            nulls = NullBuffer::union(nulls.as_ref(), of_exponents.as_ref());
            let is_unit = column.kind == Kind::Timestamp;
            let sign = if is_unit { -1 } else { 1 };
            exponents.into_iter().map(|each| sign * each).collect()
        }
    };
    let numbers = integers(source, column, |number| number);
    let rows = numbers.into_iter().zip(unit).enumerate();
    let values: Vec<T> = rows
        .map(|(row, (number, exponent))| {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                return T::default();
            }
            match scaled(number, exponent + scale) {
                Some(value) if range.contains(&value) => make(value),
                _ => {
                    let text = unfit_text(column, number, exponent);
                    source.unfit.borrow_mut().push((row, text));
                    T::default()
                }
            }
        })
        .collect();
    (values.into(), nulls)
}

/// The exponents that are so many bodies further out, for each row, and which rows have one.
fn exponents(source: &Source, child: &Column, level: usize) -> (Vec<i128>, Option<NullBuffer>) {
    let Some(outer) = source.outer.filter(|_| level > 0) else {
        return (
            integers(source, child, |exponent| exponent),
            nulls_of(source, child),
        );
    };
    let (values, nulls) = exponents(outer.source, child, level - 1);
    let of_entry = |block: &usize| values.get(*block).copied().unwrap_or_default();
    let nulls = nulls.map(|nulls| outer.blocks.iter().map(|at| nulls.is_valid(*at)).collect());
    (outer.blocks.iter().map(of_entry).collect(), nulls)
}

fn unfit_text(column: &Column, number: i128, exponent: i128) -> String {
    let name = &column.name;
    let what = match column.kind {
        Kind::Date => format!("{number} days from 1970 are not in the years 1 to 9999"),
        Kind::Timestamp if column.scale == NANOSECONDS => {
            format!("{number}e{exponent} s from 1970 are not in the years 1678 to 2261")
        }
        Kind::Timestamp => {
            format!(
                "{number}e{exponent} s from 1970 are not in the years 1 to 9999, or not in \
                     whole microseconds"
            )
        }
        _ => format!(
            "{number}e{exponent} does not fit decimal({}, {})",
            column.precision, column.scale
        ),
    };
    format!("{name}: {what}; types=wire has it as it is")
}

pub fn decimals(source: &Source, column: &Column) -> Result<ArrayRef, ArrowError> {
    let most = 10_i128
        .saturating_pow(column.precision.into())
        .saturating_sub(1);
    let (values, nulls) = scaled_numbers(source, column, (-most, most), |value| value);
    let array = Decimal128Array::new(values, nulls);
    Ok(Arc::new(array.with_precision_and_scale(
        column.precision,
        column.scale,
    )?))
}

pub fn timestamp_type(column: &Column) -> DataType {
    let unit = match column.scale {
        NANOSECONDS => TimeUnit::Nanosecond,
        _ => TimeUnit::Microsecond,
    };
    DataType::Timestamp(unit, Some(ZONE.into()))
}

pub fn timestamps(source: &Source, column: &Column) -> ArrayRef {
    // The range leaves only numbers of 64 bits.
    let make = |value| value as i64;
    if column.scale == NANOSECONDS {
        let range = (i64::MIN.into(), i64::MAX.into());
        let (values, nulls) = scaled_numbers(source, column, range, make);
        Arc::new(TimestampNanosecondArray::new(values, nulls).with_timezone(ZONE))
    } else {
        let (values, nulls) = scaled_numbers(source, column, MICROSECONDS, make);
        Arc::new(TimestampMicrosecondArray::new(values, nulls).with_timezone(ZONE))
    }
}

pub fn dates(source: &Source, column: &Column) -> ArrayRef {
    // The range leaves only numbers of 32 bits.
    let (values, nulls) = scaled_numbers(source, column, DAYS, |value| value as i32);
    Arc::new(Date32Array::new(values, nulls))
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
    /// Texts that had bytes which became their numbers.
    escaped: u64,
}

impl Bytes {
    fn new(rows: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Self {
            data: Vec::new(),
            offsets,
            nulls: NullBufferBuilder::new(rows),
            escaped: 0,
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
            Characters::Utf8 => self.extend_escaped(value),
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

    /// Add UTF-8, each byte that is not as its number.
    fn extend_escaped(&mut self, value: &[u8]) {
        let before = self.data.len();
        for chunk in value.utf8_chunks() {
            self.data.extend_from_slice(chunk.valid().as_bytes());
            for byte in chunk.invalid() {
                self.data
                    .extend_from_slice(format!("\\x{byte:02x}").as_bytes());
            }
        }
        self.escaped += u64::from(self.data.len() - before > value.len());
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
    note_escaped(source.escaped, &column.name, built.escaped);
    built.finish(characters)
}

fn note_escaped(escaped: &Escaped, name: &str, texts: u64) {
    if texts > 0 {
        *escaped.borrow_mut().entry(name.to_owned()).or_default() += texts;
    }
}

/// Variable data at the places that the walk has found.
pub fn variable(
    source: &Source,
    places: &[super::walk::Place],
    variable: &VarData,
) -> Result<ArrayRef, ArrowError> {
    let characters = variable.characters;
    let mut built = Bytes::new(places.len());
    for place in places {
        match place {
            Some((start, length)) => built.push_characters(
                source.data.get(*start..start + length).unwrap_or_default(),
                characters,
            )?,
            None => built.push_null(),
        }
    }
    note_escaped(source.escaped, &variable.name, built.escaped);
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
