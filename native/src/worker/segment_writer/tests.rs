use super::*;
use crate::test_support::frames::data_frame;
use crate::test_support::scratch_dir::ScratchDir;
use crate::worker::failure::code;

const TERM: i64 = 65_536;
const INITIAL_TERM_ID: i32 = i32::MAX;
const GEOMETRY: StreamGeometry = StreamGeometry {
    initial_term_id: INITIAL_TERM_ID,
    term_length: TERM,
    stream_id: 1001,
};

fn storage(dir: &ScratchDir, sync_level: SyncLevel, checksum: Option<Checksum>) -> Arc<Storage> {
    Arc::new(Storage {
        archive_dir: dir.path().to_owned(),
        sync_level,
        checksum,
    })
}

fn placement(start_position: i64, join_position: i64) -> Placement {
    Placement {
        recording_id: 4,
        start_position,
        join_position,
        segment_length: TERM,
        geometry: GEOMETRY,
    }
}

fn open(dir: &ScratchDir, start: i64, join: i64) -> Result<SegmentWriter, Failure> {
    SegmentWriter::open(
        storage(dir, SyncLevel::Normal, None),
        placement(start, join),
        None,
    )
}

/// The data frame at `position` that is `length` bytes long with header and alignment.
fn frame_at(position: i64, length: usize) -> Vec<u8> {
    let term_id = INITIAL_TERM_ID.wrapping_add((position / TERM) as i32);
    data_frame(
        (position % TERM) as i32,
        term_id,
        &vec![position as u8 | 1; length - 32],
    )
}

fn scratch() -> Vec<u8> {
    vec![0; SCRATCH_LENGTH]
}

#[test]
fn a_segment_that_already_exists_at_roll_over_stops_there_and_is_left_alone() {
    let dir = ScratchDir::new();
    dir.write("4-65536.rec", b"someone's");
    let mut writer = open(&dir, 0, 0).expect("open");
    let failure = writer
        .write_block(&frame_at(0, 65_536), &mut scratch())
        .expect_err("refused");
    assert!(failure.message.contains("4-65536.rec"), "{failure}");
    assert_eq!(
        (failure.code, writer.written_position()),
        (code::GENERIC, 65_536)
    );
    assert_eq!(dir.read("4-65536.rec"), b"someone's");
    assert!(
        writer
            .write_block(&frame_at(65_536, 64), &mut scratch())
            .is_err()
    );
    assert_eq!(dir.read("4-65536.rec"), b"someone's");
}

#[test]
fn a_new_recording_never_takes_over_a_file_with_data() {
    let dir = ScratchDir::new();
    let mut file = vec![0; 65_536];
    file[40_000] = 1;
    dir.write("4-0.rec", &file);
    assert!(open(&dir, 0, 0).is_err());
    assert_eq!(dir.read("4-0.rec"), file);
}

#[test]
fn an_empty_recordings_blank_file_is_used() {
    let dir = ScratchDir::new();
    dir.write("4-0.rec", &[0; 65_536]);
    let mut writer = open(&dir, 0, 0).expect("open");
    let block = frame_at(0, 64);
    writer.write_block(&block, &mut scratch()).expect("write");
    assert_eq!(dir.read("4-0.rec")[..64], block);
}

#[test]
fn going_on_in_a_segment_keeps_what_it_holds() {
    let dir = ScratchDir::new();
    let before = frame_at(0, 128);
    dir.write("4-0.rec", &before);
    let mut writer = open(&dir, 0, 128).expect("open");
    let block = frame_at(128, 64);
    writer.write_block(&block, &mut scratch()).expect("write");
    let file = dir.read("4-0.rec");
    assert_eq!(
        (file.len(), &file[..128], &file[128..192]),
        (65_536, &before[..], &block[..])
    );
}

#[test]
fn going_on_needs_the_segment_and_its_expected_length() {
    let dir = ScratchDir::new();
    assert!(open(&dir, 0, 128).is_err(), "missing");
    let longer = vec![1; 65_537];
    dir.write("4-0.rec", &longer);
    let failure = open(&dir, 0, 128).err().expect("too long");
    assert!(failure.message.contains("65537 bytes"), "{failure}");
    assert_eq!(dir.read("4-0.rec"), longer);
}

#[test]
fn a_block_that_does_not_follow_the_last_one_is_not_written() {
    let dir = ScratchDir::new();
    let mut writer = open(&dir, 0, 0).expect("open");
    let failure = writer
        .write_block(&frame_at(64, 64), &mut scratch())
        .expect_err("gap");
    assert!(
        failure.message.contains("does not follow position 0"),
        "{failure}"
    );
    assert_eq!(
        (writer.written_position(), dir.read("4-0.rec")),
        (0, vec![0; 65_536])
    );
}

#[test]
fn a_write_that_fails_keeps_the_whole_frames_and_poisons_the_writer() {
    let dir = ScratchDir::new();
    let mut writer = open(&dir, 0, 0).expect("open");
    writer
        .write_block(&frame_at(0, 64), &mut scratch())
        .expect("write");
    let read_only = File::open(dir.path().join("4-0.rec")).expect("read only");
    writer.file = Some(Arc::new(read_only));
    let failure = writer
        .write_block(&frame_at(64, 64), &mut scratch())
        .expect_err("read only");
    assert!(
        failure.message.contains("cannot write segment file"),
        "{failure}"
    );
    assert_eq!(
        (failure.code, writer.written_position()),
        (code::GENERIC, 64)
    );
    assert!(writer.file.is_none());
}

#[test]
fn whole_frames_end_at_the_last_frame_that_fits() {
    let block = [frame_at(0, 64), frame_at(64, 96), frame_at(160, 64)].concat();
    let lengths: Vec<usize> = [0, 63, 64, 159, 160, 223, 224, 999]
        .map(|limit| whole_frames(&block, limit))
        .into();
    assert_eq!(lengths, [0, 0, 64, 64, 160, 160, 224, 224]);
}

#[test]
fn a_segment_that_is_a_link_is_refused_and_what_it_leads_to_is_not_touched() {
    let dir = ScratchDir::new();
    dir.write("outside", &[0; 96]);
    for (join, target) in [(0, "outside"), (0, "nowhere"), (64, "outside")] {
        let name = dir.path().join("4-0.rec");
        std::os::unix::fs::symlink(target, &name).expect("a link");
        let failure = open(&dir, 0, join).err().expect("a link");
        assert!(failure.message.contains("4-0.rec"), "{failure}");
        assert!(
            failure.message.contains("symbolic link") || target == "nowhere",
            "{failure}"
        );
        assert_eq!(dir.read("outside"), [0; 96]);
        assert!(!dir.path().join("nowhere").exists());
        std::fs::remove_file(&name).expect("remove the link");
    }
}
