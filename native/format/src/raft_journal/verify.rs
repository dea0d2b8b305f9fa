//! Checks every record of segments, several segments at a time.

use std::path::PathBuf;

use super::Finding;
use super::entry;
use super::record::{self, Damage, Problem, Record};
use crate::segment::open_regular;
use crate::segment::progress::Progress;
use crate::segment::reader::Reader;

const NO_ASQN: i64 = -1;
/// So many findings of a segment are listed; the rest is counted.
const LISTED: usize = 1000;

/// The records of a segment file, as Python passes it.
#[derive(Debug)]
#[cfg_attr(feature = "python", derive(pyo3::FromPyObject))]
pub struct RaftSegmentTask {
    pub path: PathBuf,
    /// Offset of the first record, bytes.
    pub offset: u64,
    /// The segment's end, bytes.
    pub limit: u64,
    /// The index that the first record must have.
    pub first_index: u64,
}

/// The result of a check of a segment; `aerotape/_native/` describes the fields.
#[cfg_attr(
    feature = "python",
    pyo3::pyclass(frozen, get_all, module = "aerotape._native")
)]
#[derive(Debug, Default)]
pub struct RaftSegmentCheck {
    pub records: u64,
    pub end_offset: u64,
    pub next_index: u64,
    pub is_complete: bool,
    pub first_asqn: Option<(u64, u64, i64)>,
    pub last_asqn: i64,
    pub first_lowest: Option<(u64, u64, u64)>,
    pub last_highest: Option<u64>,
    pub findings: Vec<Finding>,
    pub problems: u64,
}

impl RaftSegmentCheck {
    fn find(&mut self, offset: u64, problem: Problem, why: String) {
        self.problems += 1;
        if self.findings.len() < LISTED {
            let finding = (offset, self.next_index, problem.name(), why);
            self.findings.push(finding);
        }
    }

    /// Check what a sound record says, and count it.
    fn add(&mut self, offset: u64, record: &Record<'_>) {
        self.records += 1;
        if record.index != self.next_index {
            let why = format!(
                "the index is {}, expected {}, the one after the previous record's",
                record.index, self.next_index
            );
            self.find(offset, Problem::InvalidIndex, why);
            self.next_index = record.index;
        }
        if record.asqn != NO_ASQN {
            if record.asqn <= self.last_asqn || record.asqn < 0 {
                let why = format!(
                    "the asqn is {}, expected -1 or more than {}",
                    record.asqn, self.last_asqn
                );
                self.find(offset, Problem::InvalidAsqn, why);
            }
            let first = (offset, self.next_index, record.asqn);
            self.first_asqn.get_or_insert(first);
            self.last_asqn = self.last_asqn.max(record.asqn);
        }
        self.add_entry(offset, record.blob);
        self.next_index = self.next_index.wrapping_add(1);
        self.end_offset = offset + record.bytes.len() as u64;
    }

    fn add_entry(&mut self, offset: u64, blob: &[u8]) {
        let parsed =
            entry::parse(blob).and_then(|found| entry::end(blob, &found).map(|end| (found, end)));
        let (found, end) = match parsed {
            Ok(parsed) => parsed,
            Err(why) => {
                let why = format!("its raft entry is not valid: {why}");
                self.find(offset, Problem::InvalidEntry, why);
                // Its positions are not known.
                self.last_highest = None;
                return;
            }
        };
        if end < blob.len() {
            let why = format!("{} bytes follow its raft entry", blob.len() - end);
            self.find(offset, Problem::TrailingBytes, why);
        }
        if found.kind != entry::APPLICATION {
            return;
        }
        if let Some(last) = self.last_highest
            && last.wrapping_add(1) != found.lowest_asqn
        {
            let why = format!(
                "the lowest asqn is {}, expected {}, the one after the previous entry's highest",
                found.lowest_asqn,
                last.wrapping_add(1)
            );
            self.find(offset, Problem::PositionGap, why);
        }
        let first = (offset, self.next_index, found.lowest_asqn);
        self.first_lowest.get_or_insert(first);
        self.last_highest = Some(found.highest_asqn);
    }
}

/// Check a segment.
pub fn check(task: &RaftSegmentTask, progress: &Progress) -> RaftSegmentCheck {
    let mut check = RaftSegmentCheck {
        end_offset: task.offset,
        next_index: task.first_index,
        last_asqn: NO_ASQN,
        ..RaftSegmentCheck::default()
    };
    if let Err(error) = walk(task, progress, &mut check) {
        let offset = check.end_offset;
        check.find(offset, Problem::Unreadable, error.to_string());
    }
    check
}

fn walk(
    task: &RaftSegmentTask,
    progress: &Progress,
    check: &mut RaftSegmentCheck,
) -> std::io::Result<()> {
    let file = open_regular(&task.path)?;
    let mut reader = Reader::new(&file, task.limit).with_progress(progress);
    loop {
        let offset = check.end_offset;
        match record::read(&mut reader, offset, task.limit)? {
            Ok(Some(record)) => check.add(offset, &record),
            Ok(None) => {
                check.is_complete = true;
                return Ok(());
            }
            Err(damage) => {
                if !pass(task, &mut reader, check, damage)? {
                    return Ok(());
                }
            }
        }
    }
}

/// Pass over damaged records, and report them; `false` where the check cannot resume. It resumes
/// at a sound record that the lengths of the damaged ones lead to: a length may be damaged itself.
fn pass(
    task: &RaftSegmentTask,
    reader: &mut Reader<'_>,
    check: &mut RaftSegmentCheck,
    first: Damage,
) -> std::io::Result<bool> {
    let (mut at, mut damage) = (check.end_offset, first);
    let mut listed = Vec::new();
    let mut count = 0;
    let resume = loop {
        let next = damage.length.map(|length| at + length);
        count += 1;
        if listed.len() < LISTED {
            listed.push((at, damage));
        }
        let Some(next) = next else { break None };
        match record::read(reader, next, task.limit)? {
            Err(found) => (at, damage) = (next, found),
            found => break found.ok().flatten().map(|_| next),
        }
    };
    let Some(next) = resume else {
        for (at, damage) in listed.into_iter().take(1) {
            let why = format!("{}; the rest of the segment is not checked", damage.why);
            check.find(at, damage.problem, why);
        }
        return Ok(false);
    };
    let unlisted = count - listed.len() as u64;
    for (at, damage) in listed {
        check.find(at, damage.problem, damage.why);
        check.next_index = check.next_index.wrapping_add(1);
    }
    check.problems += unlisted;
    check.next_index = check.next_index.wrapping_add(unlisted);
    check.end_offset = next;
    // Their positions are not known.
    check.last_highest = None;
    Ok(true)
}
