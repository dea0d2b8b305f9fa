//! Points of a recording's time index: a wall-clock time and the position that it had then.
//!
//! Python chooses the name and the header of the file and documents its format
//! (`catalog/time_index/file.py`). The recorder takes the time from a clock that it reads anyway;
//! only when a point is due does it read the wall clock and append 32 bytes, after the position
//! counter has moved. A file that cannot be written loses its points and has no other effect.

use crate::no_follow;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const POINT_LENGTH: usize = 32;
const CHECKED_LENGTH: usize = 28;
/// While little is recorded, points are so many intervals apart.
const SLOW_FACTOR: u32 = 10;
/// The clocks are not read at one instant: a smaller difference is not a step of the wall clock.
const STEP_TOLERANCE_NS: i64 = 1_000_000;

/// The time index of a recording, as Python requests it.
#[derive(pyo3::FromPyObject)]
pub struct TimeIndexArguments {
    pub path: PathBuf,
    /// What the file begins with, for a recording that has none yet.
    pub header: Vec<u8>,
    /// Whether a file that is there is of no use: another recording's that had the same id.
    pub is_new: bool,
    /// Points are at least so far apart.
    #[pyo3(attribute("interval_ns"), from_py_with = super::nanoseconds)]
    pub interval: Duration,
    /// And so many bytes, unless `SLOW_FACTOR` intervals have passed.
    pub min_length: i64,
}

pub struct TimeIndex {
    arguments: TimeIndexArguments,
    session_id: i32,
    last: Option<LastPoint>,
    /// Points that are not in the file yet.
    pending: Vec<u8>,
    failure: Option<String>,
    has_failed: bool,
}

#[derive(Clone, Copy)]
struct LastPoint {
    taken: Instant,
    time_ns: i64,
    position: i64,
}

impl TimeIndex {
    pub fn new(arguments: TimeIndexArguments, session_id: i32) -> Self {
        Self {
            arguments,
            session_id,
            last: None,
            pending: Vec::new(),
            failure: None,
            has_failed: false,
        }
    }

    /// Called before a block is recorded at `position`, up to which everything is recorded.
    #[inline]
    pub fn before_block(&mut self, position: i64, now: Instant) {
        if self.is_due(position, now) {
            self.note(position, now, wall_clock_ns());
        }
    }

    /// Nothing has come: note where a burst has ended.
    #[inline]
    pub fn idle(&mut self, position: i64) {
        if self.last.is_some_and(|last| last.position != position) {
            let now = Instant::now();
            if self.is_due(position, now) {
                self.note(position, now, wall_clock_ns());
            }
        }
    }

    /// The recording has ended at `position`.
    pub fn end(&mut self, position: i64) {
        if self.last.is_some() {
            self.note(position, Instant::now(), wall_clock_ns());
        }
        self.flush();
    }

    fn is_due(&self, position: i64, now: Instant) -> bool {
        let Some(last) = self.last else {
            return true;
        };
        let since = now.saturating_duration_since(last.taken);
        since >= self.arguments.interval
            && (position - last.position >= self.arguments.min_length
                || since >= self.arguments.interval.saturating_mul(SLOW_FACTOR))
    }

    fn note(&mut self, position: i64, now: Instant, time_ns: i64) {
        if self.has_failed {
            return;
        }
        if let Some(last) = self.last {
            let since = now.saturating_duration_since(last.taken);
            let since_ns = i64::try_from(since.as_nanos()).unwrap_or(i64::MAX);
            let expected_ns = last.time_ns.saturating_add(since_ns);
            if time_ns < expected_ns - STEP_TOLERANCE_NS {
                // The clock was put back, some time since the last point: what came in between may
                // be as late as the old clock would be now, or as early as the new one was then.
                self.put(expected_ns, position);
                self.put(time_ns.saturating_sub(since_ns), position);
            }
        }
        self.put(time_ns, position);
        self.last = Some(LastPoint {
            taken: now,
            time_ns,
            position,
        });
    }

    fn put(&mut self, time_ns: i64, position: i64) {
        let mut point = [0; POINT_LENGTH];
        point[..8].copy_from_slice(&time_ns.to_le_bytes());
        point[8..16].copy_from_slice(&position.to_le_bytes());
        point[16..20].copy_from_slice(&self.session_id.to_le_bytes());
        let crc = crc32fast::hash(&point[..CHECKED_LENGTH]);
        point[CHECKED_LENGTH..].copy_from_slice(&crc.to_le_bytes());
        self.pending.extend_from_slice(&point);
    }

    /// Write down the points that were noted.
    #[inline]
    pub fn flush(&mut self) {
        if !self.pending.is_empty() {
            self.append();
        }
    }

    fn append(&mut self) {
        let TimeIndexArguments {
            path,
            header,
            is_new,
            ..
        } = &mut self.arguments;
        if let Err(error) = append(path, header, &self.pending, std::mem::take(is_new)) {
            self.has_failed = true;
            self.failure = Some(format!("cannot write {}: {error}", path.display()));
        }
        self.pending.clear();
    }

    /// What has gone wrong, once: from then on no points are written.
    #[inline]
    pub fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }
}

/// Append points to a file, which begins with `header`. It is opened each time, so that points go
/// to the file that Python may have replaced it with. For a new one what is there is removed,
/// as a name and not as a file, which may have others.
fn append(path: &Path, header: &[u8], points: &[u8], is_new: bool) -> io::Result<()> {
    if is_new
        && let Err(error) = std::fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    let mut file = no_follow::open(OpenOptions::new().append(true).create(true), path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let length = found.len();
    let outcome = if length == 0 {
        file.write_all(&[header, points].concat())
    } else {
        file.write_all(points)
    };
    if outcome.is_err() {
        // Part of a point would make the next ones unreadable.
        let _ = file.set_len(length);
    }
    outcome
}

fn wall_clock_ns() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::scratch_dir::ScratchDir;

    const INTERVAL: Duration = Duration::from_millis(100);
    const HEADER: [u8; 64] = [7; 64];
    const NAME: &str = "aerotape-3.time-index";

    fn index(dir: &ScratchDir) -> TimeIndex {
        let request = TimeIndexArguments {
            path: dir.path().join(NAME),
            header: HEADER.to_vec(),
            is_new: false,
            interval: INTERVAL,
            min_length: 1_000,
        };
        TimeIndex::new(request, -5)
    }

    /// Times and positions in the file, the header and the sums having been checked.
    fn points(dir: &ScratchDir) -> Vec<(i64, i64)> {
        let file = dir.read(NAME);
        assert_eq!(file[..64], HEADER);
        file[64..]
            .chunks(POINT_LENGTH)
            .map(|point| {
                let number = |from: usize| {
                    i64::from_le_bytes(point[from..from + 8].try_into().expect("8 bytes"))
                };
                assert_eq!(point[16..20], (-5_i32).to_le_bytes());
                assert_eq!(point[28..], crc32fast::hash(&point[..28]).to_le_bytes());
                (number(0), number(8))
            })
            .collect()
    }

    #[test]
    fn points_are_an_interval_and_so_many_bytes_apart_or_ten_intervals() {
        let dir = ScratchDir::new();
        let mut index = index(&dir);
        let begin = Instant::now();
        let mut noted = Vec::new();
        for (intervals, position, is_noted) in [
            (0.0, 0, true), // the first block of all
            (0.9, 50_000, false),
            (1.1, 60_000, true),
            (2.2, 60_032, false), // too few bytes
            (3.0, 61_000, true),
            (12.9, 61_032, false),
            (13.1, 61_032, true), // a burst begins
        ] {
            index.before_block(position, begin + INTERVAL.mul_f64(intervals));
            index.flush();
            if is_noted {
                noted.push(position);
            }
            let mut positions: Vec<i64> = points(&dir).iter().map(|point| point.1).collect();
            // To the wall clock it is all one moment: it looks as if it was put back.
            positions.dedup();
            assert_eq!(positions, noted, "after {intervals} intervals");
        }
    }

    #[test]
    fn the_end_of_a_burst_is_noted_once() {
        let dir = ScratchDir::new();
        let mut index = index(&dir);
        index.idle(0);
        index.flush();
        assert!(!dir.path().join(NAME).exists(), "nothing was recorded");
        let long_ago = Instant::now() - INTERVAL * 11;
        index.note(0, long_ago, 1);
        index.idle(64);
        index.idle(64);
        index.flush();
        let positions: Vec<i64> = points(&dir).iter().map(|point| point.1).collect();
        assert_eq!(positions, [0, 64]);
    }

    #[test]
    fn a_clock_that_was_put_back_leaves_what_either_clock_says() {
        let dir = ScratchDir::new();
        let mut index = index(&dir);
        let begin = Instant::now();
        let second = 1_000_000_000;
        index.note(0, begin, 100 * second);
        index.note(64, begin + Duration::from_secs(1), 101 * second - 999_999);
        index.note(128, begin + Duration::from_secs(2), 50 * second);
        index.flush();
        let found = points(&dir);
        assert_eq!(
            found[..2],
            [(100 * second, 0), (101 * second - 999_999, 64)]
        );
        assert_eq!(
            found[2..],
            [
                (102 * second - 999_999, 128),
                (49 * second, 128),
                (50 * second, 128)
            ]
        );
    }

    #[test]
    fn it_continues_in_a_file_that_replaced_its_own() {
        let dir = ScratchDir::new();
        let mut index = index(&dir);
        let begin = Instant::now();
        index.note(0, begin, 1);
        index.flush();
        dir.write("other", &HEADER);
        std::fs::rename(dir.path().join("other"), dir.path().join(NAME)).expect("rename");
        index.note(64, begin, 1);
        index.end(96);
        let positions: Vec<i64> = points(&dir).iter().map(|point| point.1).collect();
        assert_eq!(positions, [64, 96]);
    }

    #[test]
    fn the_file_of_another_recording_is_emptied_once() {
        let dir = ScratchDir::new();
        dir.write(NAME, &[9; 64 + 10 * POINT_LENGTH + 5]);
        let mut index = index(&dir);
        index.arguments.is_new = true;
        index.note(0, Instant::now(), 1);
        index.flush();
        index.note(64, Instant::now(), 1);
        index.end(96);
        let positions: Vec<i64> = points(&dir).iter().map(|point| point.1).collect();
        assert_eq!(positions, [0, 64, 96]);
    }

    #[test]
    fn a_link_is_not_written_through() {
        for target in ["outside", "nowhere"] {
            let dir = ScratchDir::new();
            dir.write("outside", &[9; 96]);
            std::os::unix::fs::symlink(target, dir.path().join(NAME)).expect("a link");
            let mut index = index(&dir);
            index.note(0, Instant::now(), 1);
            index.flush();
            let failure = index.take_failure().expect("a failure");
            assert!(failure.contains("symbolic link"), "{failure}");
            assert_eq!(dir.read("outside"), [9; 96]);
            assert!(!dir.path().join("nowhere").exists());
        }
    }
}
