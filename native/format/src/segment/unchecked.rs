//! Frames that hold no checksum although one is to be verified.
//!
//! A checksum stands in place of a frame's session id. A recording may have been recorded without
//! checksums, or have frames of several sessions, of which some were. The catalog has the session id
//! of the last one. Frames of an earlier one all hold the same value, one after the other.

use crate::checksum::Checksum;

/// What stands in place of a data frame's session id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The checksum.
    Right,
    /// The checksum of the other kind.
    OtherKind,
    /// The session id of the recording's last session.
    SessionId,
    /// Neither: a wrong checksum, or the session id of an earlier session.
    Unknown,
}

impl Stored {
    /// Judge a value by the bytes after the frame's header, `None` if they are not all there.
    pub fn of(stored: i32, checksum: Checksum, body: Option<&[u8]>, session_id: i32) -> Self {
        let Some(body) = body else {
            return Self::Unknown;
        };
        if stored == checksum.compute(body) {
            Self::Right
        } else if stored == session_id {
            Self::SessionId
        } else if stored == checksum.other().compute(body) {
            Self::OtherKind
        } else {
            Self::Unknown
        }
    }
}

/// So many runs are listed; the frames of others are counted.
const LISTED: usize = 1000;

/// Data frames in a row with the same unknown value.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Offset of the first frame, and after the last.
    pub offset: u64,
    pub end: u64,
    pub stored: i32,
    pub frames: u64,
    /// The value is a checksum: that of a frame next to them.
    pub is_checksum: bool,
    /// They continue in the file before or after.
    pub is_continued: bool,
    /// What is wrong with the first frame.
    pub detail: String,
}

impl Run {
    /// Whether the frames are of an earlier session that was recorded without checksums. A single
    /// frame cannot be told from a damaged one.
    pub fn is_session(&self) -> bool {
        (self.frames > 1 || self.is_continued) && !self.is_checksum
    }
}

/// A data frame that was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Judged {
    stored: i32,
    is_known: bool,
}

impl Judged {
    fn unknown(stored: i32) -> Self {
        Self {
            stored,
            is_known: false,
        }
    }
}

/// The runs of a part of a segment file.
#[derive(Debug, Default)]
pub struct Runs {
    runs: Vec<Run>,
    /// Frames with an unknown value that are in no listed run.
    pub unlisted: u64,
    first: Option<Judged>,
    last: Option<Judged>,
}

impl Runs {
    /// Add a frame with a known value.
    pub fn known(&mut self, stored: i32) {
        let before = self.judged(stored, true);
        if before.is_some_and(|before| !before.is_known)
            && let Some(last) = self.runs.last_mut()
        {
            last.is_checksum |= last.stored == stored;
        }
    }

    /// Add a frame with an unknown value, or several.
    pub fn unknown(&mut self, run: Run) {
        let before = self.judged(run.stored, false);
        let has_room = self.runs.len() < LISTED || run.frames > 1;
        match self.runs.last_mut() {
            // Padding may be between them.
            Some(last)
                if last.stored == run.stored
                    && before.is_some_and(|before| before == Judged::unknown(run.stored)) =>
            {
                last.end = run.end;
                last.frames += run.frames;
                last.is_checksum |= run.is_checksum;
            }
            _ if has_room => {
                let next_to = before.filter(|before| before.is_known);
                let is_checksum = next_to.is_some_and(|before| before.stored == run.stored);
                self.runs.push(Run {
                    is_checksum: run.is_checksum || is_checksum,
                    ..run
                });
            }
            _ => self.unlisted += run.frames,
        }
    }

    /// Add the runs of the next part.
    pub fn add(&mut self, next: Self) {
        if let Some(first) = next.first.filter(|first| first.is_known) {
            self.known(first.stored);
        }
        for run in next.runs {
            self.unknown(run);
        }
        self.unlisted += next.unlisted;
        self.last = next.last.or(self.last);
    }

    /// Return the runs, when all parts are added.
    pub fn into_runs(self) -> Vec<Run> {
        self.runs
    }

    /// Join the last run of a file with the first one of the next file, if they are of one session.
    pub fn join(&mut self, next: &mut Self) {
        let (Some(last), Some(first)) = (self.runs.last_mut(), next.runs.first_mut()) else {
            return;
        };
        let is_last = self.last.is_some_and(|judged| !judged.is_known);
        let is_first = next.first.is_some_and(|judged| !judged.is_known);
        if is_last && is_first && last.stored == first.stored {
            last.is_continued = true;
            first.is_continued = true;
        }
    }

    fn judged(&mut self, stored: i32, is_known: bool) -> Option<Judged> {
        let judged = Judged { stored, is_known };
        self.first.get_or_insert(judged);
        self.last.replace(judged)
    }
}
