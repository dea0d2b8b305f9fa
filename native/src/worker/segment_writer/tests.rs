use super::*;
use crate::test_support::frames::data_frame;
use crate::test_support::scratch_dir::ScratchDir;

#[test]
fn going_on_needs_the_segment_and_its_expected_length() {
    let dir = ScratchDir::new();
    let open = || {
        let storage = Storage {
            archive_dir: dir.path().to_owned(),
            directory: File::open(dir.path()).expect("the directory").into(),
            sync_level: SyncLevel::Normal,
            checksum: None,
        };
        let placement = Placement {
            recording_id: 4,
            start_position: 0,
            join_position: 128,
            segment_length: 65_536,
            geometry: StreamGeometry {
                initial_term_id: 0,
                term_length: 65_536,
                max_frame_length: 1408,
                stream_id: 1001,
            },
        };
        SegmentWriter::open(Arc::new(storage), placement, None)
    };
    assert!(open().is_err(), "missing");
    let longer = vec![1; 65_537];
    dir.write("4-0.rec", &longer);
    let failure = open().err().expect("too long");
    assert!(failure.message.contains("65537 bytes"), "{failure}");
    assert_eq!(dir.read("4-0.rec"), longer);
}

#[test]
fn whole_frames_end_at_the_last_frame_that_fits() {
    let frame = |length: usize| data_frame(0, 0, &vec![1; length - 32]);
    let block = [frame(64), frame(96), frame(64)].concat();
    let lengths: Vec<usize> = [0, 63, 64, 159, 160, 223, 224, 999]
        .map(|limit| whole_frames(&block, limit))
        .into();
    assert_eq!(lengths, [0, 0, 64, 64, 160, 160, 224, 224]);
}
