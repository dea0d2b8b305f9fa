//! Readers of files and payloads given arbitrary bytes, and sound ones with some bytes changed.
//!
//! Nothing they are given may end in a panic, an endless loop or a result past the end of the input.
//! Inputs that once failed are in `proptest-regressions/` and run first.

use arrow_array::{Array, BinaryArray};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::checksum::Checksum;
use crate::frame::FRAME_ALIGNMENT;
use crate::geometry::StreamGeometry;
use crate::raft_journal::{record, rows, scan as raft_scan, verify};
use crate::sbe::decoded::Malformed;
use crate::sbe::decoder::Decoder;
use crate::sbe::plan::{
    Body, Characters, Column, Group, Header, HeaderNumber, Kind, Message, Plan, Primitive, VarData,
};
use crate::scan::batches::Scan;
use crate::scan::columns::{BatchLimits, COLUMNS, Mode, schema};
use crate::scan::recording::Recording;
use crate::scan::statistics::Pass;
use crate::scan::walk::{Range, Walk};
use crate::segment::progress::Progress;
use crate::segment::{SegmentTask, archive_tool_check, check, rewrite, walk};
use crate::test_support::frames::data_frame;
use crate::test_support::scratch_dir::ScratchDir;

const TERM_LENGTH: usize = 65_536;
const GEOMETRY: StreamGeometry = StreamGeometry {
    initial_term_id: 0,
    term_length: TERM_LENGTH as i64,
    stream_id: 1001,
    max_frame_length: 1408,
};

/// Bytes to overwrite, each at a part of the whole length.
fn damage() -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    vec((any::<prop::sample::Index>(), any::<u8>()), 0..6)
}

fn damaged(mut bytes: Vec<u8>, damage: &[(prop::sample::Index, u8)]) -> Vec<u8> {
    for (place, byte) in damage {
        if !bytes.is_empty() {
            let index = place.index(bytes.len());
            bytes[index] = *byte;
        }
    }
    bytes
}

/// Frames of a term with fragmented messages, some bytes of them changed; or any bytes.
fn segment() -> impl Strategy<Value = Vec<u8>> {
    let frames = (
        vec((0..1300_usize, any::<u8>()), 0..20),
        damage(),
        0..64_usize,
    )
        .prop_map(|(frames, damage, cut)| {
            let mut bytes = Vec::new();
            for (length, flags) in frames {
                let at = bytes.len();
                bytes.extend(data_frame(at as i32, 0, &vec![flags; length]));
                bytes[at + 5] = flags & 0xC0;
            }
            let mut bytes = damaged(bytes, &damage);
            bytes.truncate(bytes.len().saturating_sub(cut));
            bytes
        });
    prop_oneof![4 => frames, 1 => vec(any::<u8>(), 0..4096)]
}

fn checksums() -> impl Strategy<Value = Option<Checksum>> {
    prop::sample::select(vec![None, Some(Checksum::Crc32), Some(Checksum::Crc32c)])
}

fn recording(dir: &ScratchDir) -> Recording {
    Recording {
        archive_dir: dir.path().to_owned(),
        recording_id: 0,
        start_position: 0,
        segment_length: TERM_LENGTH as i64,
        session_id: 0x5E55_1012,
        geometry: GEOMETRY,
    }
}

/// The rows of a scan, and the error at its end.
fn scanned(mut scan: Scan, recording: &Recording) -> (Vec<String>, Option<String>) {
    let columns = COLUMNS.map(|(_, column)| column);
    let mut batches = Vec::new();
    loop {
        match scan.next(&columns) {
            Ok(Some(messages)) => {
                let schema = schema(&columns, scan.mode);
                let batch = messages.into_batch(recording, &columns, schema);
                batches.push(format!("{:?}", batch.expect("columns of one length")));
            }
            Ok(None) => return (batches, None),
            Err(error) => return (batches, Some(error.message())),
        }
    }
}

fn scan(walk: Walk, mode: Mode, to: i64) -> Scan {
    Scan {
        walk,
        limits: BatchLimits {
            rows: 3,
            bytes: 4096,
        },
        mode,
        to,
        rows: 0,
        dropped_messages: 0,
        unfinished: None,
        refused: None,
        failure: None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn checksums_of_two_pieces_are_those_of_the_whole(
        bytes in vec(any::<u8>(), 0..500), cut in any::<prop::sample::Index>(),
    ) {
        let (first, second) = bytes.split_at(cut.index(bytes.len() + 1));
        for checksum in [Checksum::Crc32, Checksum::Crc32c] {
            prop_assert_eq!(checksum.compute(&bytes), checksum.compute_two(first, second));
        }
    }

    #[test]
    fn segments_are_walked_and_checked(
        bytes in segment(), checksum in checksums(), start in 0..4096_u64,
    ) {
        let dir = ScratchDir::new();
        dir.write("0-0.rec", &bytes);
        let task = SegmentTask {
            path: dir.path().join("0-0.rec"),
            start_offset: start & !(FRAME_ALIGNMENT as u64 - 1),
            end_offset: TERM_LENGTH as u64,
            limit: 2 * TERM_LENGTH as u64,
            base_position: 0,
            term_length: TERM_LENGTH as u32,
            initial_term_id: 0,
            stream_id: 1001,
            max_frame_length: 1408,
            session_id: 7,
        };
        let range = task.range(checksum);
        let walked = walk::walk(&task.path, &range).expect("a file");
        prop_assert!(walked.frames as usize * FRAME_ALIGNMENT <= bytes.len());
        prop_assert!(
            walked.end_offset == task.start_offset || walked.end_offset <= bytes.len() as u64
        );
        archive_tool_check::run(&task.path, &range).expect("a file");
        for piece in check::cut(0, &task) {
            check::check_piece(&task, &piece, checksum, &Progress::default());
        }
        if let Some(checksum) = checksum {
            let rewriting = rewrite::RewriteTask {
                path: task.path.clone(),
                start_offset: 0,
                session_id: 7,
                max_frame_length: 1408,
            };
            rewrite::rewrite(&rewriting, checksum, false, &Progress::default());
            prop_assert_eq!(dir.read("0-0.rec").len(), bytes.len());
        }
    }

    #[test]
    fn recordings_are_scanned_alike_from_files_and_from_given_bytes(
        bytes in segment(), checksum in checksums(), piece in 1..5000_usize,
        mode in prop::sample::select(vec![Mode::FailFast, Mode::DropMalformed, Mode::Permissive]),
    ) {
        let dir = ScratchDir::new();
        dir.write("0-0.rec", &bytes);
        let recording = recording(&dir);
        let limit = (bytes.len() & !(FRAME_ALIGNMENT - 1)) as i64;
        let range = Range { from: 0, to: limit, limit, from_boundary: true };
        let from_file = scanned(
            scan(Walk::new(recording.clone(), range, checksum), mode, limit), &recording,
        );
        let mut given = scan(Walk::given(recording.clone(), range, checksum), mode, limit);
        let columns = COLUMNS.map(|(_, column)| column);
        let mut batches = Vec::new();
        let error = loop {
            match given.next(&columns) {
                Ok(Some(messages)) => {
                    let schema = schema(&columns, mode);
                    let batch = messages.into_batch(&recording, &columns, schema);
                    batches.push(format!("{:?}", batch.expect("columns of one length")));
                }
                Ok(None) => match given.walk.wanted() {
                    None => break None,
                    Some(position) => {
                        let begin = usize::try_from(position).expect("a position");
                        let end = (begin + piece).min(bytes.len());
                        prop_assert!(begin < end, "bytes are wanted after the end");
                        given.walk.give(&bytes[begin..end]);
                    }
                },
                Err(error) => break Some(error.message()),
            }
        };
        prop_assert_eq!((batches, error), from_file);
        let mut pass = Pass::new(recording, range, vec![]);
        while !pass.advance(1024) {}
        prop_assert_eq!(pass.position(), limit);
    }

    #[test]
    fn payloads_are_decoded_or_refused(
        sound in vec((vec(any::<[u8; 4]>(), 0..4), ".{0,9}"), 0..4), damage in damage(),
        arbitrary in vec(any::<u8>(), 0..80),
    ) {
        let mut payloads: Vec<Vec<u8>> =
            sound.iter().map(|(entries, text)| damaged(payload(entries, text), &damage)).collect();
        payloads.push(arbitrary);
        let array = BinaryArray::from_iter_values(&payloads);
        let decoder = Decoder::new(plan(), None, None).expect("a plan");
        for malformed in [Malformed::Null, Malformed::Drop, Malformed::Fail] {
            let decoded = decoder.decode(&array, malformed, true).expect("less than 2 GiB");
            prop_assert_eq!(decoded.batch.num_rows(), decoded.kept.rows);
            if malformed == Malformed::Null {
                prop_assert_eq!(decoded.kept.rows, array.len());
            }
        }
    }

    #[test]
    fn raft_records_are_read_or_refused(
        blobs in vec(vec(any::<u8>(), 0..60), 0..5), damage in damage(),
        arbitrary in vec(any::<u8>(), 0..80),
    ) {
        let mut records: Vec<Vec<u8>> =
            blobs.iter().enumerate().map(|(index, blob)| raft_record(index as u64, blob)).collect();
        for bytes in &records {
            record::parse(bytes).expect("a sound record");
        }
        let dir = ScratchDir::new();
        dir.write("raft.log", &damaged(records.concat(), &damage));
        let limit = records.iter().map(Vec::len).sum::<usize>() as u64 + 64;
        let path = dir.path().join("raft.log");
        let run = raft_scan::RaftScan {
            path: path.clone(), offset: 0, limit, first_index: 0, rows: 100, bytes: 1 << 20,
            with_data: true,
        };
        raft_scan::scan(&run).expect("a file");
        let task = verify::RaftSegmentTask { path, offset: 0, limit, first_index: 0 };
        prop_assert!(verify::check(&task, &Progress::default()).end_offset <= limit);
        for bytes in &mut records {
            *bytes = damaged(std::mem::take(bytes), &damage);
        }
        records.push(arbitrary);
        let array = BinaryArray::from_iter_values(&records);
        let decoded = rows::decode(&array, Malformed::Null).expect("less than 2 GiB");
        prop_assert_eq!(decoded.batch.num_rows(), records.len());
    }
}

fn header(block_length: u16, template_id: u16, schema_id: u16) -> Vec<u8> {
    [block_length, template_id, schema_id, 1]
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect()
}

/// A record whose blob begins like an entry of the raft log.
fn raft_record(index: u64, rest: &[u8]) -> Vec<u8> {
    let kind = rest.first().map_or(0, |byte| byte % 3);
    let blob = [&header(9, 1, 8)[..], &[7; 8], &[kind], rest].concat();
    let mut data = header(16, 2, 7);
    data.extend(index.to_le_bytes());
    data.extend(index.to_le_bytes());
    data.extend((blob.len() as u32).to_le_bytes());
    data.extend(&blob);
    let mut record = vec![1];
    record.extend(header(12, 1, 7));
    record.extend(u64::from(Checksum::Crc32c.compute(&data) as u32).to_le_bytes());
    record.extend((data.len() as u32).to_le_bytes());
    record.extend(data);
    record
}

fn number(offset: usize, primitive: Primitive) -> HeaderNumber {
    HeaderNumber {
        offset,
        primitive,
        big_endian: false,
    }
}

fn column(name: &str, kind: Kind, primitive: Primitive, offset: usize, length: usize) -> Column {
    Column {
        name: name.into(),
        kind,
        since_version: 0,
        offset,
        level: 0,
        primitive,
        length,
        big_endian: false,
        null: None,
        constant: None,
        names: vec![(1, "ONE".into()), (2, "TWO".into())],
        children: vec![],
        precision: 0,
        scale: 0,
        exponent: 0,
    }
}

/// A decimal whose exponent is so many bodies further out.
fn decimal(offset: usize, level: usize) -> Column {
    let exponent = Column {
        level,
        ..column("exponent", Kind::Number, Primitive::Int8, 8, 1)
    };
    Column {
        precision: 38,
        scale: 18,
        children: vec![exponent],
        ..column("price", Kind::Decimal, Primitive::Int32, offset, 1)
    }
}

/// A message with fields of each kind, a group and variable data.
fn plan() -> Plan {
    let body = |columns, extent, groups, var_data| Body {
        columns,
        extents: vec![(0, extent)],
        groups,
        var_data,
    };
    let group = Group {
        name: "entries".into(),
        since_version: 0,
        header_size: 4,
        block_length: number(0, Primitive::Uint16),
        count: number(2, Primitive::Uint16),
        body: body(
            vec![
                column("number", Kind::Number, Primitive::Int32, 0, 1),
                decimal(0, 1),
            ],
            4,
            vec![],
            vec![],
        ),
        wanted: true,
    };
    let text = VarData {
        name: "text".into(),
        since_version: 0,
        length: number(0, Primitive::Uint16),
        header_size: 2,
        characters: Characters::Utf8,
        wanted: true,
    };
    Plan {
        schema_id: 9,
        header: Header {
            size: 8,
            block_length: number(0, Primitive::Uint16),
            template_id: number(2, Primitive::Uint16),
            schema_id: number(4, Primitive::Uint16),
            version: number(6, Primitive::Uint16),
        },
        messages: vec![Message {
            name: "message".into(),
            template_id: 1,
            body: body(
                vec![
                    column("id", Kind::Number, Primitive::Uint64, 0, 1),
                    column("choice", Kind::Enum, Primitive::Uint8, 8, 1),
                    column("flags", Kind::Set, Primitive::Uint8, 9, 1),
                    column(
                        "name",
                        Kind::Text(Characters::Latin1),
                        Primitive::Char,
                        10,
                        6,
                    ),
                    column("numbers", Kind::Numbers, Primitive::Int16, 16, 4),
                    decimal(16, 0),
                    Column {
                        scale: 9,
                        exponent: -9,
                        ..column("time", Kind::Timestamp, Primitive::Uint64, 0, 1)
                    },
                    column("date", Kind::Date, Primitive::Uint16, 16, 1),
                ],
                24,
                vec![group],
                vec![text],
            ),
        }],
        flat: true,
    }
}

fn payload(entries: &[[u8; 4]], text: &str) -> Vec<u8> {
    let mut bytes = header(24, 1, 9);
    bytes.extend([1; 24]);
    bytes.extend(4_u16.to_le_bytes());
    bytes.extend((entries.len() as u16).to_le_bytes());
    bytes.extend(entries.concat());
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes
}
