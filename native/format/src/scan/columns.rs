//! Messages laid out as Arrow columns, only the requested ones.

use std::mem::take;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use super::recording::Recording;
use super::walk::Sink;
use crate::errors::Error;
use crate::frame::FrameHeader;
use crate::large_pages;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    RecordingId,
    Position,
    EndPosition,
    StreamId,
    SessionId,
    TermId,
    TermOffset,
    Flags,
    ReservedValue,
    Length,
    Payload,
    Corrupt,
}

/// All columns in the order in which a table has them.
pub const COLUMNS: [(&str, Column); 12] = [
    ("recording_id", Column::RecordingId),
    ("position", Column::Position),
    ("end_position", Column::EndPosition),
    ("stream_id", Column::StreamId),
    ("session_id", Column::SessionId),
    ("term_id", Column::TermId),
    ("term_offset", Column::TermOffset),
    ("flags", Column::Flags),
    ("reserved_value", Column::ReservedValue),
    ("length", Column::Length),
    ("payload", Column::Payload),
    ("_corrupt", Column::Corrupt),
];

/// How a message with a frame that fails its checksum is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It ends the scan with an error.
    FailFast,
    /// It is left out.
    DropMalformed,
    /// It is there, with null for its payload and the reason in the column `_corrupt`.
    Permissive,
}

impl Mode {
    pub fn parse(name: &str) -> Result<Self, String> {
        match name {
            "FAILFAST" => Ok(Self::FailFast),
            "DROPMALFORMED" => Ok(Self::DropMalformed),
            "PERMISSIVE" => Ok(Self::Permissive),
            other => Err(format!(
                "unknown mode {other:?}: use \"FAILFAST\", \"DROPMALFORMED\" or \"PERMISSIVE\""
            )),
        }
    }
}

impl Column {
    pub fn parse(name: &str) -> Option<Self> {
        COLUMNS
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, column)| *column)
    }

    fn name(self) -> &'static str {
        COLUMNS
            .iter()
            .find(|(_, column)| *column == self)
            .map_or("", |(name, _)| name)
    }

    fn data_type(self) -> DataType {
        match self {
            Self::RecordingId | Self::Position | Self::EndPosition | Self::ReservedValue => {
                DataType::Int64
            }
            Self::Payload => DataType::Binary,
            Self::Corrupt => DataType::Utf8,
            _ => DataType::Int32,
        }
    }
}

/// When a batch is full: by rows, or by bytes of payload (the last message may exceed it).
#[derive(Clone, Copy, Debug)]
pub struct BatchLimits {
    pub rows: usize,
    pub bytes: usize,
}

/// The fields of a message that stand in its first frame.
#[derive(Clone, Copy, Debug, Default)]
struct First {
    position: i64,
    term_id: i32,
    term_offset: i32,
    reserved_value: i64,
}

/// Collects messages of one batch. A column that was not requested stays empty.
pub struct Messages {
    limits: BatchLimits,
    mode: Mode,
    with_payload: bool,
    first: First,
    /// Why the message that is being put together is damaged.
    damage: Option<String>,
    /// Damaged messages that were left out.
    pub dropped: u64,
    /// Rows of damaged messages, ascending, and why they are.
    corrupt: Vec<(usize, String)>,
    /// Bytes of payload of whole messages, and of the message that is being put together.
    bytes: usize,
    partial_bytes: usize,
    pub rows: usize,
    wanted: [bool; COLUMNS.len()],
    pub position: Vec<i64>,
    pub end_position: Vec<i64>,
    pub term_id: Vec<i32>,
    pub term_offset: Vec<i32>,
    pub flags: Vec<i32>,
    pub reserved_value: Vec<i64>,
    length: Vec<i32>,
    /// Arrow's layout: message `i` is `payload[offsets[i]..offsets[i + 1]]`, nothing when damaged.
    pub payload: Vec<u8>,
    pub offsets: Vec<i32>,
}

impl Messages {
    /// `expected_bytes` is a hint: no more payload than this is to come.
    #[expect(clippy::indexing_slicing, reason = "one flag for each column")]
    pub fn new(columns: &[Column], limits: BatchLimits, mode: Mode, expected_bytes: usize) -> Self {
        let wanted = COLUMNS.map(|(_, column)| columns.contains(&column));
        let with_payload = wanted[Column::Payload as usize];
        let capacity = if with_payload {
            limits.bytes.min(expected_bytes)
        } else {
            0
        };
        Self {
            limits,
            mode,
            with_payload,
            first: First::default(),
            damage: None,
            dropped: 0,
            corrupt: Vec::new(),
            bytes: 0,
            partial_bytes: 0,
            rows: 0,
            wanted,
            position: Vec::new(),
            end_position: Vec::new(),
            term_id: Vec::new(),
            term_offset: Vec::new(),
            flags: Vec::new(),
            reserved_value: Vec::new(),
            length: Vec::new(),
            payload: large_pages::with_capacity(capacity),
            offsets: if with_payload { vec![0] } else { Vec::new() },
        }
    }

    #[inline]
    #[expect(clippy::indexing_slicing, reason = "one flag for each column")]
    fn wants(&self, column: Column) -> bool {
        self.wanted[column as usize]
    }

    /// Build a record batch of what was collected. `columns` must not name one twice.
    pub fn into_batch(
        mut self,
        recording: &Recording,
        columns: &[Column],
        schema: SchemaRef,
    ) -> Result<RecordBatch, ArrowError> {
        let rows = self.rows;
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(columns.len());
        for column in columns {
            let array: ArrayRef = match column {
                Column::RecordingId => int64(vec![recording.recording_id; rows]),
                Column::Position => int64(take(&mut self.position)),
                Column::EndPosition => int64(take(&mut self.end_position)),
                Column::StreamId => int32(vec![recording.geometry.stream_id; rows]),
                Column::SessionId => int32(vec![recording.session_id; rows]),
                Column::TermId => int32(take(&mut self.term_id)),
                Column::TermOffset => int32(take(&mut self.term_offset)),
                Column::Flags => int32(take(&mut self.flags)),
                Column::ReservedValue => int64(take(&mut self.reserved_value)),
                Column::Length => int32(take(&mut self.length)),
                Column::Payload => Arc::new(BinaryArray::try_new(
                    OffsetBuffer::new(ScalarBuffer::from(take(&mut self.offsets))),
                    Buffer::from_vec(take(&mut self.payload)),
                    self.sound_rows(),
                )?),
                Column::Corrupt => {
                    let mut corrupt = self.corrupt.iter().peekable();
                    let reasons = (0..rows).map(|row| {
                        let (_, why) = corrupt.next_if(|(damaged, _)| *damaged == row)?;
                        Some(why.as_str())
                    });
                    Arc::new(reasons.collect::<StringArray>())
                }
            };
            arrays.push(array);
        }
        RecordBatch::try_new(schema, arrays)
    }

    /// Which rows have a payload; `None` when all have.
    fn sound_rows(&self) -> Option<NullBuffer> {
        if self.corrupt.is_empty() {
            return None;
        }
        let mut sound = vec![true; self.rows];
        for (row, _) in &self.corrupt {
            if let Some(row) = sound.get_mut(*row) {
                *row = false;
            }
        }
        Some(NullBuffer::new(BooleanBuffer::from(sound)))
    }
}

fn int64(values: Vec<i64>) -> ArrayRef {
    Arc::new(Int64Array::from(values))
}

fn int32(values: Vec<i32>) -> ArrayRef {
    Arc::new(Int32Array::from(values))
}

/// The schema of batches with these columns. Null are the payloads of damaged messages and the
/// reason for which sound ones are.
pub fn schema(columns: &[Column], mode: Mode) -> SchemaRef {
    let fields: Vec<Field> = columns
        .iter()
        .map(|column| {
            let has_nulls = match column {
                Column::Payload => mode == Mode::Permissive,
                Column::Corrupt => true,
                _ => false,
            };
            Field::new(column.name(), column.data_type(), has_nulls)
        })
        .collect();
    Arc::new(Schema::new(fields))
}

impl Sink for Messages {
    #[inline]
    fn begin(&mut self, position: i64, header: &FrameHeader) {
        self.first = First {
            position,
            term_id: header.term_id,
            term_offset: header.term_offset,
            reserved_value: header.reserved_value,
        };
        self.partial_bytes = 0;
        self.damage = None;
    }

    #[inline]
    fn fragment(&mut self, payload: &[u8]) {
        self.partial_bytes += payload.len();
        if self.with_payload {
            self.payload.extend_from_slice(payload);
        }
    }

    fn accepts_damage(&self) -> bool {
        self.mode != Mode::FailFast
    }

    #[cold]
    fn damaged(&mut self, why: &Error) {
        self.damage.get_or_insert_with(|| why.message());
    }

    #[inline]
    fn end(&mut self, end_position: i64, flags: u8) {
        let mut payload_bytes = self.partial_bytes;
        if let Some(why) = self.damage.take() {
            if self.with_payload {
                self.payload.truncate(self.bytes);
            }
            if self.mode == Mode::DropMalformed {
                self.dropped += 1;
                return;
            }
            self.corrupt.push((self.rows, why));
            payload_bytes = 0;
        }
        let first = self.first;
        self.rows += 1;
        self.bytes += payload_bytes;
        if self.wants(Column::Position) {
            self.position.push(first.position);
        }
        if self.wants(Column::EndPosition) {
            self.end_position.push(end_position);
        }
        if self.wants(Column::TermId) {
            self.term_id.push(first.term_id);
        }
        if self.wants(Column::TermOffset) {
            self.term_offset.push(first.term_offset);
        }
        if self.wants(Column::Flags) {
            self.flags.push(i32::from(flags));
        }
        if self.wants(Column::ReservedValue) {
            self.reserved_value.push(first.reserved_value);
        }
        if self.wants(Column::Length) {
            // A message lies in one term, so its length fits.
            self.length.push(self.partial_bytes as i32);
        }
        if self.with_payload {
            // Limits are at most 1 GiB and so is one message: the sum fits.
            self.offsets.push(self.payload.len() as i32);
        }
    }

    #[inline]
    fn abandon(&mut self) {
        if self.with_payload {
            self.payload.truncate(self.bytes);
        }
        self.partial_bytes = 0;
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.rows >= self.limits.rows || self.bytes >= self.limits.bytes
    }
}
