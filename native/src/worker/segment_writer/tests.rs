use super::*;
use crate::test_support::frames::data_frame;
use crate::test_support::scratch_dir::ScratchDir;

const TERM: i64 = 65_536;
const INITIAL_TERM_ID: i32 = i32::MAX;
const GEOMETRY: StreamGeometry = StreamGeometry {
    initial_term_id: INITIAL_TERM_ID,
    term_length: TERM,
    stream_id: 1001,
};

fn open(dir: &ScratchDir, start: i64, join: i64) -> Result<SegmentWriter, Failure> {
    let storage = Storage {
        archive_dir: dir.path().to_owned(),
        sync_level: SyncLevel::Normal,
        checksum: None,
    };
    let placement = Placement {
        recording_id: 4,
        start_position: start,
        join_position: join,
        segment_length: TERM,
        geometry: GEOMETRY,
    };
    SegmentWriter::open(Arc::new(storage), placement, None)
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
fn an_empty_recordings_blank_file_is_used() {
    let dir = ScratchDir::new();
    dir.write("4-0.rec", &[0; 65_536]);
    let mut writer = open(&dir, 0, 0).expect("open");
    let block = frame_at(0, 64);
    writer.write_block(&block, &mut scratch()).expect("write");
    assert_eq!(dir.read("4-0.rec")[..64], block);
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
