//! Checks every frame of a recording. All damage is found, not only the first.
//!
//! After a bad frame the check continues at the next offset whose header has the term offset, the
//! term id and the stream id of that place. Frames do not cross the
//! ends of terms, so segments are checked in pieces of whole terms, by several threads.

use std::io;
use std::path::Path;

use super::SegmentTask;
use super::progress::Progress;
use super::reader::Reader;
use super::unchecked::{Run, Runs, Stored};
use super::walk::{self, SegmentWalk, WalkRange};
use crate::checksum::Checksum;
use crate::frame::{FRAME_ALIGNMENT, FrameHeader, HEADER_LENGTH};

/// A thread is given about so many bytes at once.
const PIECE_LENGTH: u64 = 16 << 20;
/// So many bad places are listed for a piece; the rest is counted.
const LISTED: usize = 1000;

/// A place without a good frame; `aerotape/_native/` describes the fields.
#[cfg_attr(
    feature = "python",
    pyo3::pyclass(frozen, get_all, module = "aerotape._native")
)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadFrame {
    pub offset: u64,
    pub length: u64,
    pub kind: &'static str,
    pub detail: String,
}

impl BadFrame {
    fn end(&self) -> u64 {
        self.offset + self.length
    }
}

/// The result of a check of a segment file; `aerotape/_native/` describes the fields.
#[cfg_attr(
    feature = "python",
    pyo3::pyclass(frozen, get_all, module = "aerotape._native")
)]
#[derive(Debug, Default)]
pub struct SegmentCheck {
    pub file_length: u64,
    pub frames: u64,
    pub payload_bytes: u64,
    pub checksum_passes: u64,
    pub other_checksum_passes: u64,
    pub without_checksum: u64,
    pub checksum_failures: u64,
    pub bad: Vec<BadFrame>,
    pub bad_places: u64,
    pub last_frame_offset: i64,
    pub last_frame_length: i64,
    pub tail: Option<SegmentWalk>,
    pub error: Option<String>,
}

/// The check of a file, or of a piece of it, before its frames without a known checksum are judged.
#[derive(Debug)]
pub struct Unsettled {
    check: SegmentCheck,
    runs: Runs,
}

/// A part of a segment file that one thread checks.
#[derive(Debug)]
pub struct Piece {
    pub task: usize,
    start: u64,
    end: u64,
}

/// Cut a task at ends of terms.
pub fn cut(index: usize, task: &SegmentTask) -> Vec<Piece> {
    let term_length = u64::from(task.term_length);
    let step = PIECE_LENGTH.max(term_length);
    let mut pieces = Vec::new();
    let mut start = task.start_offset;
    // A base that is not a multiple of the term length is not a recording's: check in one piece.
    let is_aligned = task.base_position & (term_length as i64 - 1) == 0;
    while is_aligned && (start & !(term_length - 1)) + step < task.end_offset {
        let end = (start & !(term_length - 1)) + step;
        pieces.push(Piece {
            task: index,
            start,
            end,
        });
        start = end;
    }
    pieces.push(Piece {
        task: index,
        start,
        end: task.end_offset.max(start),
    });
    pieces
}

pub fn check_piece(
    task: &SegmentTask,
    piece: &Piece,
    checksum: Option<Checksum>,
    progress: &Progress,
) -> Unsettled {
    let range = WalkRange {
        start_offset: piece.start,
        limit: piece.end,
        ..task.range(checksum)
    };
    let mut check = SegmentCheck::new();
    let mut runs = Runs::default();
    let result = check.run(&task.path, &range, &mut runs, progress);
    let result = result.and_then(|()| {
        if piece.end == task.end_offset && task.limit > task.end_offset {
            check.tail = Some(walk_tail(task, &range)?);
        }
        Ok(())
    });
    if let Err(error) = result {
        check.error = Some(error.to_string());
    }
    Unsettled { check, runs }
}

fn walk_tail(task: &SegmentTask, range: &WalkRange) -> io::Result<SegmentWalk> {
    let range = WalkRange {
        start_offset: task.end_offset,
        limit: task.limit,
        checksum: None,
        ..*range
    };
    walk::walk(&task.path, &range)
}

impl Default for Unsettled {
    fn default() -> Self {
        Self {
            check: SegmentCheck::new(),
            runs: Runs::default(),
        }
    }
}

impl Unsettled {
    /// Add the results of the next piece of the file.
    pub fn add(&mut self, next: Self) {
        self.check.add(next.check);
        self.runs.add(next.runs);
    }

    /// Take into account that another file follows, of the same recording.
    pub fn followed_by(&mut self, next: &mut Self) {
        self.runs.join(&mut next.runs);
    }

    /// Judge the frames with unknown values, when all pieces are added.
    pub fn settle(self) -> SegmentCheck {
        let mut check = self.check;
        check.checksum_failures = self.runs.unlisted;
        check.bad_places += self.runs.unlisted;
        for run in self.runs.into_runs() {
            if run.is_session() {
                check.without_checksum += run.frames;
            } else {
                check.checksum_failures += run.frames;
                check.found_bad(run.offset, run.end - run.offset, "checksum", run.detail);
            }
        }
        check.bad.sort_by_key(|bad| bad.offset);
        check
    }
}

impl SegmentCheck {
    fn new() -> Self {
        Self {
            last_frame_offset: -1,
            last_frame_length: -1,
            ..Self::default()
        }
    }

    fn run(
        &mut self,
        path: &Path,
        range: &WalkRange,
        runs: &mut Runs,
        progress: &Progress,
    ) -> io::Result<()> {
        let file = super::open_regular(path)?;
        self.file_length = file.metadata()?.len();
        let end = range.limit;
        let there = end.min(self.file_length);
        let mut reader = Reader::new(&file, there).with_progress(progress);
        let mut offset = range.start_offset;
        while offset < end {
            let bytes = reader.at(offset, HEADER_LENGTH)?;
            let Some(header) = FrameHeader::read(bytes) else {
                let detail = "the file ends there".to_owned();
                self.found_bad(offset, end - offset, "file-end", detail);
                break;
            };
            if let Err(fault) = range.check(&header, offset, there) {
                let (kind, detail) = if header.frame_length == 0 {
                    ("unwritten", "nothing was written there".to_owned())
                } else {
                    ("frame", fault.to_string())
                };
                let next = find_frame(&mut reader, offset, there, end, range)?;
                self.found_bad(offset, next - offset, kind, detail);
                offset = next;
                continue;
            }
            let aligned = header.aligned_length();
            self.frames += 1;
            self.last_frame_offset = offset as i64;
            self.last_frame_length = i64::from(header.frame_length);
            if !header.is_padding() {
                self.payload_bytes +=
                    (header.frame_length as u64).saturating_sub(HEADER_LENGTH as u64);
                if let Some(checksum) = range.checksum {
                    let body = reader.body(offset, aligned)?;
                    match Stored::of(header.session_id, checksum, body, range.session_id) {
                        Stored::Right => self.checksum_passes += 1,
                        Stored::OtherKind => self.other_checksum_passes += 1,
                        Stored::SessionId => self.without_checksum += 1,
                        Stored::Unknown => {
                            let detail = describe(header.session_id, checksum, body);
                            runs.unknown(Run {
                                offset,
                                end: offset + aligned as u64,
                                stored: header.session_id,
                                frames: 1,
                                detail,
                                ..Run::default()
                            });
                            offset += aligned as u64;
                            continue;
                        }
                    }
                    runs.known(header.session_id);
                }
            }
            offset += aligned as u64;
        }
        Ok(())
    }

    fn found_bad(&mut self, offset: u64, length: u64, kind: &'static str, detail: String) {
        self.bad_places += 1;
        if self.bad.len() < LISTED {
            self.bad.push(BadFrame {
                offset,
                length,
                kind,
                detail,
            });
        }
    }

    /// Add the results of the next piece.
    fn add(&mut self, next: SegmentCheck) {
        self.file_length = self.file_length.max(next.file_length);
        self.frames += next.frames;
        self.payload_bytes += next.payload_bytes;
        self.checksum_passes += next.checksum_passes;
        self.other_checksum_passes += next.other_checksum_passes;
        self.without_checksum += next.without_checksum;
        self.bad_places += next.bad_places;
        if next.last_frame_offset >= 0 {
            self.last_frame_offset = next.last_frame_offset;
            self.last_frame_length = next.last_frame_length;
        }
        self.tail = self.tail.take().or(next.tail);
        self.error = self.error.take().or(next.error);
        for bad in next.bad {
            // A bad place that continues past the end of a piece counts once.
            match self.bad.last_mut() {
                Some(last) if last.end() == bad.offset && last.kind == bad.kind => {
                    last.length += bad.length;
                    self.bad_places -= 1;
                }
                _ => self.bad.push(bad),
            }
        }
    }
}

fn describe(stored: i32, checksum: Checksum, body: Option<&[u8]>) -> String {
    body.map_or_else(
        || "the file ends within the frame, or it is too long for one".to_owned(),
        |bytes| format!("its checksum is {stored}, not {}", checksum.compute(bytes)),
    )
}

/// Find the first offset after `offset` with the header of a frame, `end` if there is none.
fn find_frame(
    reader: &mut Reader<'_>,
    offset: u64,
    there: u64,
    end: u64,
    range: &WalkRange,
) -> io::Result<u64> {
    let mut at = offset + FRAME_ALIGNMENT as u64;
    while at + HEADER_LENGTH as u64 <= there {
        let bytes = reader.at(at, HEADER_LENGTH)?;
        let header = FrameHeader::read(bytes);
        if header.is_some_and(|header| range.check(&header, at, there).is_ok()) {
            return Ok(at);
        }
        at += FRAME_ALIGNMENT as u64;
    }
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::frames::data_frame;

    const TERM: u32 = 65_536;

    fn stream(terms: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let term_length = TERM as usize;
        while bytes.len() < terms as usize * term_length {
            let at = bytes.len();
            let length = 288.min(term_length - at % term_length);
            let (term_offset, term_id) = (at % term_length, 7 + at / term_length);
            let payload = vec![7; length - HEADER_LENGTH];
            let mut frame = data_frame(term_offset as i32, term_id as i32, &payload);
            let sum = Checksum::Crc32c.compute(&frame[HEADER_LENGTH..]);
            frame[12..16].copy_from_slice(&sum.to_le_bytes());
            bytes.extend(frame);
        }
        bytes
    }

    fn check(name: &str, bytes: &[u8], pieces: &[(u64, u64)]) -> SegmentCheck {
        let path = std::env::temp_dir().join(format!("check-{name}-{}", std::process::id()));
        std::fs::write(&path, bytes).expect("writable");
        let task = SegmentTask {
            path: path.clone(),
            start_offset: 0,
            end_offset: pieces.last().map_or(0, |piece| piece.1),
            limit: 0,
            base_position: 0,
            term_length: TERM,
            initial_term_id: 7,
            stream_id: 1001,
            max_frame_length: 1408,
            session_id: 5,
        };
        let mut all = Unsettled::default();
        for &(start, end) in pieces {
            let piece = Piece {
                task: 0,
                start,
                end,
            };
            all.add(check_piece(
                &task,
                &piece,
                Some(Checksum::Crc32c),
                &Progress::default(),
            ));
        }
        std::fs::remove_file(&path).expect("removable");
        let all = all.settle();
        assert_eq!(all.error, None);
        all
    }

    #[test]
    fn pieces_find_what_the_whole_finds() {
        let mut bytes = stream(6);
        let term = u64::from(TERM);
        let hole = TERM as usize - 1000..2 * TERM as usize + 32;
        bytes[hole].fill(0);
        bytes.truncate(5 * TERM as usize + 128);
        let whole = check("whole", &bytes, &[(0, 6 * term)]);
        let cut = check(
            "cut",
            &bytes,
            &[(0, term), (term, 2 * term), (2 * term, 6 * term)],
        );
        assert_eq!(whole.bad, cut.bad);
        assert_eq!(whole.bad_places, cut.bad_places);
        assert_eq!(whole.frames, cut.frames);
        assert_eq!(whole.bad.last().map(|bad| bad.kind), Some("frame"));
        assert_eq!(cut.last_frame_offset, whole.last_frame_offset);
    }
}
