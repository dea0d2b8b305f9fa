use super::*;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// A file whose syncs a test sees, holds back and lets fail.
struct FakeFile {
    syncs: Mutex<Vec<SyncLevel>>,
    began: Sender<()>,
    /// Each sync ends with the next of these; without a sender, at once and well.
    ends: Option<Mutex<Receiver<io::Result<()>>>>,
}

impl Syncable for FakeFile {
    fn sync(&self, level: SyncLevel) -> io::Result<()> {
        lock(&self.syncs).push(level);
        let _ = self.began.send(());
        match &self.ends {
            Some(ends) => lock(ends).recv().expect("the test lets it end"),
            None => Ok(()),
        }
    }
}

impl FakeFile {
    fn fast() -> Arc<Self> {
        Arc::new(Self {
            syncs: Mutex::default(),
            began: channel().0,
            ends: None,
        })
    }

    /// A file and: when a sync of it begins, and how it ends.
    fn held() -> (Arc<Self>, Receiver<()>, Sender<io::Result<()>>) {
        let (began, beginnings) = channel();
        let (end, ends) = channel();
        let file = Self {
            syncs: Mutex::default(),
            began,
            ends: Some(Mutex::new(ends)),
        };
        (Arc::new(file), beginnings, end)
    }

    fn count(&self) -> usize {
        lock(&self.syncs).len()
    }
}

/// A pool, and recordings whose published positions are seen.
struct Rig {
    directory: Arc<dyn Syncable>,
    pool: SyncPool,
}

struct Seen {
    sync: Arc<RecordingSync>,
    published: Arc<Mutex<Vec<i64>>>,
    fulfilled: Arc<Mutex<Vec<i64>>>,
}

impl Rig {
    fn new() -> Self {
        Self {
            directory: FakeFile::fast(),
            pool: SyncPool::start(thread::current()).expect("threads"),
        }
    }

    fn recording(&self, is_continuous: bool) -> Seen {
        let (published, fulfilled) = (Arc::default(), Arc::default());
        let (to_published, to_fulfilled) = (Arc::clone(&published), Arc::clone(&fulfilled));
        let mode = SyncMode {
            level: SyncLevel::Data,
            is_continuous,
            directory: Arc::clone(&self.directory),
            directory_path: PathBuf::from("archive"),
            synced: Box::new(move |position| lock::<Vec<i64>>(&to_published).push(position)),
            fulfilled: Box::new(move |position| lock::<Vec<i64>>(&to_fulfilled).push(position)),
        };
        Seen {
            sync: RecordingSync::new(self.pool.queue(), mode, 0),
            published,
            fulfilled,
        }
    }
}

impl Seen {
    fn add(&self, file: &Arc<FakeFile>, begin: i64, end: i64) {
        let file: Arc<dyn Syncable> = Arc::clone(file) as _;
        self.sync
            .add_segment(file, PathBuf::from(format!("7-{begin}.rec")), begin, end);
    }

    fn published(&self) -> Vec<i64> {
        lock(&self.published).clone()
    }

    fn fulfilled(&self) -> Vec<i64> {
        lock(&self.fulfilled).clone()
    }

    fn settle(&self) {
        until(|| self.sync.is_settled());
    }
}

fn until(is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(20), "waited in vain");
        thread::sleep(Duration::from_micros(200));
    }
}

fn is_begun(beginnings: &Receiver<()>) {
    beginnings
        .recv_timeout(Duration::from_secs(20))
        .expect("a sync begins");
}

#[test]
fn one_sync_covers_what_was_written_during_the_one_before() {
    let rig = Rig::new();
    let recording = rig.recording(true);
    let (file, began, end) = FakeFile::held();
    recording.add(&file, 0, 65_536);
    recording.sync.written(64);
    is_begun(&began);
    for position in [128, 192, 256] {
        recording.sync.written(position);
    }
    assert!(
        recording.published().is_empty(),
        "nothing counts before its sync"
    );
    end.send(Ok(())).expect("held");
    is_begun(&began);
    assert_eq!(recording.published(), [64]);
    assert!(!recording.sync.is_settled());
    end.send(Ok(())).expect("held");
    recording.settle();
    assert_eq!((recording.published(), file.count()), (vec![64, 256], 2));
}

#[test]
fn a_panic_in_a_sync_is_a_failure_of_the_recording() {
    struct Panicking;
    impl Syncable for Panicking {
        fn sync(&self, _: SyncLevel) -> io::Result<()> {
            panic!("on purpose");
        }
    }
    let rig = Rig::new();
    for _ in 0..2 * SYNC_THREADS {
        let recording = rig.recording(true);
        recording
            .sync
            .add_segment(Arc::new(Panicking), PathBuf::new(), 0, 65_536);
        recording.sync.written(64);
        until(|| recording.sync.failure().is_some());
        let failure = recording.sync.failure().expect("failed");
        assert!(failure.message.contains("on purpose"), "{failure}");
        assert!(recording.sync.is_settled());
    }
}

#[test]
fn full_files_are_synced_in_order_and_not_again() {
    let rig = Rig::new();
    let recording = rig.recording(true);
    let (first, began, end) = FakeFile::held();
    let (second, third) = (FakeFile::fast(), FakeFile::fast());
    recording.add(&first, 0, 100);
    recording.sync.written(50);
    is_begun(&began);
    recording.add(&second, 100, 200);
    recording.add(&third, 200, 300);
    recording.sync.written(250);
    end.send(Ok(())).expect("held");
    is_begun(&began);
    assert_eq!(second.count(), 0);
    end.send(Ok(())).expect("held");
    recording.settle();
    assert_eq!(recording.published(), [50, 100, 200, 250]);
    recording.sync.written(260);
    recording.settle();
    let counts = [first.count(), second.count(), third.count()];
    assert_eq!(counts, [2, 1, 2]);
}

#[test]
fn an_empty_next_file_is_not_synced() {
    let rig = Rig::new();
    let recording = rig.recording(true);
    let (first, second) = (FakeFile::fast(), FakeFile::fast());
    recording.add(&first, 0, 100);
    recording.add(&second, 100, 200);
    recording.sync.written(100);
    recording.settle();
    assert_eq!((first.count(), second.count()), (1, 0));
    assert_eq!(recording.published(), [100]);
}

#[test]
fn nothing_counts_in_a_file_whose_name_is_not_on_the_device() {
    let (directory, _began, end) = FakeFile::held();
    let rig = Rig {
        directory,
        ..Rig::new()
    };
    let recording = rig.recording(true);
    let file = FakeFile::fast();
    recording.add(&file, 0, 65_536);
    end.send(Err(io::Error::from_raw_os_error(libc::EIO)))
        .expect("held");
    recording.sync.written(64);
    until(|| recording.sync.failure().is_some());
    let failure = recording.sync.failure().expect("failed");
    assert!(
        failure.message.contains("sync archive directory"),
        "{failure}"
    );
    assert_eq!((recording.published(), file.count()), (vec![], 0));
}

#[test]
fn requests_are_fulfilled_by_a_sync_that_began_after_them() {
    let rig = Rig::new();
    let recording = rig.recording(false);
    let (file, began, end) = FakeFile::held();
    recording.add(&file, 0, 65_536);
    recording.sync.request();
    assert_eq!(recording.fulfilled(), [0], "nothing is written");
    recording.sync.written(64);
    recording.sync.request();
    is_begun(&began);
    recording.sync.written(128);
    recording.sync.request();
    recording.sync.request();
    end.send(Ok(())).expect("held");
    is_begun(&began);
    assert_eq!(recording.fulfilled(), [0, 64]);
    end.send(Ok(())).expect("held");
    recording.settle();
    assert_eq!(recording.fulfilled(), [0, 64, 128, 128]);
    recording.sync.request();
    assert_eq!(recording.fulfilled(), [0, 64, 128, 128, 128]);
    assert_eq!((recording.published(), file.count()), (vec![64, 128], 2));
}

#[test]
fn a_recording_that_is_synced_on_request_keeps_no_full_file_open() {
    let rig = Rig::new();
    let recording = rig.recording(false);
    let files: Vec<_> = (0..50).map(|_| FakeFile::fast()).collect();
    for (file, begin) in files.iter().zip((0..).step_by(100)) {
        recording.add(file, begin, begin + 100);
        recording.sync.written(begin + 100);
        recording.settle();
    }
    let open: Vec<_> = files
        .iter()
        .map(|file| (file.count(), Arc::strong_count(file)))
        .collect();
    assert_eq!(open[..49], [(1, 1); 49], "synced and closed");
    assert_eq!(open[49], (0, 2), "not requested");
    assert!(recording.published().is_empty(), "nothing was requested");
    recording.sync.request();
    recording.settle();
    assert_eq!(recording.published().last(), Some(&5_000));
    assert_eq!(recording.fulfilled(), [5_000]);
}

#[test]
fn recordings_take_turns() {
    // More recordings than threads, each written to all the time: each is synced to its end.
    let rig = Rig::new();
    let recordings: Vec<_> = (0..4 * SYNC_THREADS)
        .map(|_| {
            let recording = rig.recording(true);
            let file = FakeFile::fast();
            recording.add(&file, 0, 1 << 30);
            (recording, file)
        })
        .collect();
    for position in 1..=2_000 {
        for (recording, _) in &recordings {
            recording.sync.written(position * 32);
        }
    }
    for (recording, file) in &recordings {
        recording.settle();
        assert_eq!(recording.published().last(), Some(&64_000));
        assert!(recording.published().is_sorted());
        assert!(file.count() > 0);
    }
    let took = rig.pool.take_progress().expect("syncs have ended");
    assert!(took.len() >= recordings.len());
    assert!(took.iter().all(|each| *each > Duration::ZERO));
}

#[test]
fn no_recording_waits_while_a_thread_is_free() {
    let rig = Rig::new();
    for round in 0..200 {
        let recordings: Vec<_> = (0..SYNC_THREADS)
            .map(|_| {
                let recording = rig.recording(true);
                let (file, began, end) = FakeFile::held();
                recording.add(&file, 0, 65_536);
                (recording, began, end)
            })
            .collect();
        for (number, (recording, ..)) in recordings.iter().enumerate() {
            recording.sync.written(64);
            if round % 2 == 0 && number == 0 {
                thread::sleep(POLL_TIME * (round / 50));
            }
        }
        for (_, began, _) in &recordings {
            is_begun(began);
        }
        for (recording, _, end) in &recordings {
            end.send(Ok(())).expect("held");
            recording.settle();
        }
    }
}

#[test]
fn both_sync_levels_reach_the_file() {
    let rig = Rig::new();
    let mut recording = rig.recording(true);
    let file = FakeFile::fast();
    let sync = Arc::get_mut(&mut recording.sync).expect("not shared yet");
    sync.mode.level = SyncLevel::DataAndMetadata;
    recording.add(&file, 0, 65_536);
    recording.sync.written(64);
    recording.settle();
    assert_eq!(*lock(&file.syncs), [SyncLevel::DataAndMetadata]);
}
