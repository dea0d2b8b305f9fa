//! What a recording is like: how many messages of which length, how they lie over its positions,
//! and the gaps between them. One pass, in memory that does not grow.

use super::gap::GapKind;
use super::histogram::Histogram;
use super::recording::Recording;
use super::walk::{Range, Sink, Walk};
use crate::errors::Error;
use crate::frame::FrameHeader;

/// So many gaps are listed; the rest is counted.
const LISTED_GAPS: usize = 1000;

/// A range of positions that holds no frames, in bytes.
#[derive(Clone, Debug)]
pub struct Gap {
    pub from: i64,
    pub to: i64,
    pub kind: GapKind,
    /// The error that a reader of the recording would get there.
    pub detail: String,
}

/// What begins in one part of the range.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bin {
    pub messages: u64,
    pub payload_bytes: u64,
    pub padding_bytes: u64,
    pub gap_bytes: u64,
    pub shortest: u64,
    pub median: u64,
    pub percentile_99: u64,
    pub longest: u64,
}

/// All that was counted so far.
#[derive(Clone, Debug)]
pub struct Counts {
    pub lengths: Histogram,
    pub fragments: u64,
    pub fragmented_messages: u64,
    pub padding_frames: u64,
    pub padding_bytes: u64,
    /// Padding that does not reach to the end of its term.
    pub filler_frames: u64,
    pub filler_bytes: u64,
    pub gap_count: u64,
    pub gap_bytes: u64,
    pub gaps: Vec<Gap>,
    pub bins: Vec<Bin>,
}

/// Where the walk's messages go: they are counted.
struct Counter {
    /// Bin `i` is `edges[i]..edges[i + 1]`.
    edges: Vec<i64>,
    counts: Counts,
    /// Lengths of the bin in which the walk is.
    lengths: Histogram,
    bin: usize,
    term_length: i64,
    /// The message that the walk is in: where it begins, and its fragments so far.
    begin: i64,
    bytes: u64,
    fragments: u64,
    /// Where the walk is to be interrupted.
    pause: i64,
}

impl Counter {
    /// Go to the bin that holds a position, which is never before the last one.
    #[inline]
    fn seek(&mut self, position: i64) {
        while self.bin + 2 < self.edges.len()
            && self
                .edges
                .get(self.bin + 1)
                .is_some_and(|edge| *edge <= position)
        {
            self.close_bin();
            self.bin += 1;
        }
    }

    fn close_bin(&mut self) {
        if let Some(bin) = self.counts.bins.get_mut(self.bin)
            && self.lengths.messages > 0
        {
            bin.messages = self.lengths.messages;
            bin.payload_bytes = self.lengths.bytes;
            bin.shortest = self.lengths.shortest;
            bin.median = self.lengths.quantile(0.5);
            bin.percentile_99 = self.lengths.quantile(0.99);
            bin.longest = self.lengths.longest;
        }
        self.counts.lengths.drain(&mut self.lengths);
    }

    #[expect(clippy::indexing_slicing, reason = "windows of two")]
    fn gap(&mut self, gap: Gap) {
        let counts = &mut self.counts;
        counts.gap_count += 1;
        counts.gap_bytes += (gap.to - gap.from) as u64;
        for (bin, edges) in counts.bins.iter_mut().zip(self.edges.windows(2)) {
            let shared = gap.to.min(edges[1]) - gap.from.max(edges[0]);
            bin.gap_bytes += shared.max(0) as u64;
        }
        if counts.gaps.len() < LISTED_GAPS {
            counts.gaps.push(gap);
        }
    }
}

impl Sink for Counter {
    #[inline]
    fn begin(&mut self, position: i64, _header: &FrameHeader) {
        self.begin = position;
        (self.bytes, self.fragments) = (0, 0);
    }

    #[inline]
    fn fragment(&mut self, payload: &[u8]) {
        self.bytes += payload.len() as u64;
        self.fragments += 1;
    }

    fn accepts_damage(&self) -> bool {
        false
    }

    fn damaged(&mut self, _why: &Error) {}

    #[inline]
    fn end(&mut self, _end_position: i64, _flags: u8) {
        self.seek(self.begin);
        self.lengths.add(self.bytes);
        self.counts.fragments += self.fragments;
        self.counts.fragmented_messages += u64::from(self.fragments > 1);
    }

    fn abandon(&mut self) {}

    #[inline]
    fn is_full(&self) -> bool {
        self.begin >= self.pause
    }

    fn padding(&mut self, position: i64, header: &FrameHeader) {
        self.seek(position);
        let bytes = header.aligned_length() as u64;
        self.counts.padding_frames += 1;
        self.counts.padding_bytes += bytes;
        if let Some(bin) = self.counts.bins.get_mut(self.bin) {
            bin.padding_bytes += bytes;
        }
        if i64::from(header.term_offset) + (bytes as i64) < self.term_length {
            self.counts.filler_frames += 1;
            self.counts.filler_bytes += bytes;
        }
    }
}

/// A pass over a range of a recording that continues after gaps.
pub struct Pass {
    walk: Walk,
    counter: Counter,
    range: Range,
    done: bool,
}

impl Pass {
    /// `edges` ascend from the range's start to its end.
    pub fn new(recording: Recording, range: Range, edges: Vec<i64>) -> Self {
        let counter = Counter {
            counts: Counts {
                lengths: Histogram::new(),
                fragments: 0,
                fragmented_messages: 0,
                padding_frames: 0,
                padding_bytes: 0,
                filler_frames: 0,
                filler_bytes: 0,
                gap_count: 0,
                gap_bytes: 0,
                gaps: Vec::new(),
                bins: vec![Bin::default(); edges.len().saturating_sub(1)],
            },
            edges,
            lengths: Histogram::new(),
            bin: 0,
            term_length: recording.geometry.term_length,
            begin: -1,
            bytes: 0,
            fragments: 0,
            pause: 0,
        };
        Self {
            walk: Walk::new(recording, range, None),
            counter,
            range,
            done: false,
        }
    }

    /// Continue for about `length` bytes. Returns whether the range is done.
    pub fn advance(&mut self, length: i64) -> bool {
        let pause = self.walk.position().saturating_add(length.max(1));
        self.counter.pause = pause;
        while !self.done {
            match self.walk.run(&mut self.counter) {
                Ok(()) => {
                    self.done = self.walk.position() >= self.range.to.min(self.range.limit);
                    break;
                }
                Err(error) => self.pass_over(&error),
            }
            if self.walk.position() >= pause {
                break;
            }
        }
        if self.done {
            self.counter.close_bin();
        }
        self.done
    }

    fn pass_over(&mut self, error: &Error) {
        let from = self.walk.position().max(self.range.from);
        let (to, kind) = self.walk.pass_over(&mut self.counter);
        let to = to.min(self.range.to);
        if from < to {
            let subject = format!("recording {}: ", self.walk.recording().recording_id);
            let detail = match error {
                Error::Segment { message, .. } => message.trim_start_matches(&subject).to_owned(),
                other => other.message(),
            };
            self.counter.gap(Gap {
                from,
                to,
                kind,
                detail,
            });
        }
    }

    pub fn position(&self) -> i64 {
        self.walk.position()
    }

    pub fn counts(&self) -> &Counts {
        &self.counter.counts
    }

    pub fn skipped_fragments(&self) -> u64 {
        self.walk.skipped_fragments()
    }

    pub fn unfinished_fragments(&self) -> u64 {
        self.walk.unfinished_fragments()
    }
}
