//! Iterates over the frames of a recording and reassembles fragmented messages.
//!
//! A message belongs to a range when its first frame begins in it, wherever it ends. So ranges
//! that together cover a recording give each message exactly once, whatever the cuts. The walk
//! begins at the start of the term that holds the range's start (or of the recording), because
//! frames can only be found one after the other: a cut that is not a frame boundary is fine too.
//! With `from_boundary`, a message is known to end at the range's start and the walk begins there.
//!
//! Fragments without a message are skipped and counted: the tail of a message whose beginning was
//! not recorded, and the beginning of one whose end never came (its publisher died and padding
//! follows, or the recording stopped). Aeron claims a message's frames in one piece of one term,
//! so padding, a new beginning or a new term ends a message that was not finished.

use super::gap::{self, GapKind, SegmentBases};
use super::recording::Recording;
use super::window::Window;
use crate::checksum::Checksum;
use crate::errors::{Error, Result};
use crate::frame::{FLAG_BEGIN, FLAG_END, FrameHeader, HEADER_LENGTH, TYPE_PAD};
use crate::segment::unchecked::Stored;

/// Where messages go. After `begin` come one or more `fragment`, then `end` or `abandon`.
pub trait Sink {
    fn begin(&mut self, position: i64, header: &FrameHeader);
    fn fragment(&mut self, payload: &[u8]);
    /// Whether to continue when a frame fails its checksum; if not, the walk ends with an error.
    fn accepts_damage(&self) -> bool;
    /// The fragment that was given last fails its checksum.
    fn damaged(&mut self, why: &Error);
    /// `flags` are those of the message's first and last frame together.
    fn end(&mut self, end_position: i64, flags: u8);
    fn abandon(&mut self);
    fn is_full(&self) -> bool;
    /// A padding frame that begins in the range.
    #[inline]
    fn padding(&mut self, _position: i64, _header: &FrameHeader) {}
}

/// The message that the walk is in the middle of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Partial {
    None,
    /// Begun in the range: in the sink, `fragments` so far, its first frame's flags.
    Wanted {
        fragments: u64,
        flags: u8,
    },
    /// Begun before the range: its other fragments belong to another range.
    Unwanted,
}

/// Positions in bytes: messages that begin in `from..to`; nothing at or after `limit` is read.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub from: i64,
    pub to: i64,
    pub limit: i64,
    /// A message is known to have ended at `from`.
    pub from_boundary: bool,
}

/// A frame that fails its checksum.
struct Failure {
    checksum: Checksum,
    computed: i32,
    stored: Stored,
}

pub struct Walk {
    window: Window,
    /// The segment files after gaps.
    bases: SegmentBases,
    range: Range,
    checksum: Option<Checksum>,
    position: i64,
    /// Whether the walk needs more bytes to continue.
    starved: bool,
    partial: Partial,
    skipped_fragments: u64,
    unfinished_fragments: u64,
}

impl Walk {
    /// Clip the range to the recording and go to where the walk has to begin.
    pub fn new(recording: Recording, range: Range, checksum: Option<Checksum>) -> Self {
        let from = range.from.max(recording.start_position);
        let to = range.to.min(range.limit);
        let position = if range.from_boundary {
            from
        } else {
            recording
                .geometry
                .term_base(from)
                .max(recording.start_position)
        };
        Self {
            window: Window::new(recording, range.limit),
            bases: SegmentBases::default(),
            range: Range { from, to, ..range },
            checksum,
            position: if from < to { position } else { range.limit },
            starved: false,
            partial: Partial::None,
            skipped_fragments: 0,
            unfinished_fragments: 0,
        }
    }

    pub fn recording(&self) -> &Recording {
        self.window.recording()
    }

    /// Position after the last frame that was read.
    pub fn position(&self) -> i64 {
        self.position
    }

    /// The same for a walk that does not read segment files, but is given their bytes.
    pub fn given(recording: Recording, range: Range, checksum: Option<Checksum>) -> Self {
        let walk = Self::new(recording.clone(), range, checksum);
        Self {
            window: Window::given(recording, walk.position, range.limit),
            ..walk
        }
    }

    /// Position of the bytes that the walk needs to continue.
    pub fn wanted(&self) -> Option<i64> {
        self.starved.then(|| self.window.end())
    }

    /// Take the bytes from the wanted position on.
    pub fn give(&mut self, bytes: &[u8]) {
        self.window.give(self.position, bytes);
        self.starved = false;
    }

    /// Fragments in the range that belong to no whole message.
    pub fn skipped_fragments(&self) -> u64 {
        self.skipped_fragments
    }

    /// Fragments of a message that has begun but not ended at the limit.
    pub fn unfinished_fragments(&self) -> u64 {
        self.unfinished_fragments
    }

    /// Continue until the sink is full, the range is done or more bytes are needed. In the last
    /// case the sink may hold a part of a message and must be passed again.
    ///
    /// After an error the walk stays where the bad frame is, and would fail there again.
    pub fn run(&mut self, sink: &mut impl Sink) -> Result<()> {
        let Range {
            from, to, limit, ..
        } = self.range;
        let session_id = self.window.recording().session_id;
        while self.position < limit {
            let position = self.position;
            let in_message = matches!(self.partial, Partial::Wanted { .. });
            if position >= to && !in_message {
                return Ok(());
            }
            if !in_message && sink.is_full() {
                return Ok(());
            }
            if self.window.recording().geometry.term_offset(position) == 0 {
                self.drop_partial(sink);
            }
            if self.starves(position, HEADER_LENGTH) {
                return Ok(());
            }
            let bytes = self.window.bytes(position, HEADER_LENGTH)?;
            let Some(header) = FrameHeader::read(bytes) else {
                return Err(self.broken(position, "the frame header is incomplete"));
            };
            let aligned = header.aligned_length();
            let geometry = &self.window.recording().geometry;
            if let Err(fault) = geometry.check(&header, position, limit) {
                return Err(self.broken(position, &fault.to_string()));
            }
            match header.frame_type {
                TYPE_PAD => {
                    self.drop_partial(sink);
                    if position >= from && position < to {
                        sink.padding(position, &header);
                    }
                }
                _ => {
                    if self.starves(position, aligned) {
                        return Ok(());
                    }
                    let frame = self.window.bytes(position, aligned)?;
                    let frame = frame.get(..aligned).unwrap_or_default();
                    let mut wrong = None;
                    if let Some(checksum) = self.checksum
                        && position >= from
                    {
                        let computed = checksum.compute(frame.get(HEADER_LENGTH..).unwrap_or(&[]));
                        if computed != header.session_id {
                            let body = frame.get(HEADER_LENGTH..);
                            let stored = Stored::of(header.session_id, checksum, body, session_id);
                            let failure = Failure {
                                checksum,
                                computed,
                                stored,
                            };
                            if !sink.accepts_damage() {
                                return Err(self.fails(position, &header, &failure));
                            }
                            wrong = Some(failure);
                        }
                    }
                    let length = header.frame_length as usize;
                    let payload = frame.get(HEADER_LENGTH..length).unwrap_or_default();
                    let end_position = position + aligned as i64;
                    let mut partial = self.partial;
                    let mut skipped = 0;
                    if header.flags & FLAG_BEGIN != 0 {
                        if let Partial::Wanted { fragments, .. } = partial {
                            sink.abandon();
                            skipped += fragments;
                        }
                        partial = Partial::None;
                        if position >= from && position < to {
                            sink.begin(position, &header);
                            partial = Partial::Wanted {
                                fragments: 0,
                                flags: header.flags,
                            };
                        } else if header.flags & FLAG_END == 0 {
                            partial = Partial::Unwanted;
                        }
                    } else if partial == Partial::None && position >= from {
                        skipped += 1;
                    }
                    if let Partial::Wanted { fragments, flags } = partial {
                        sink.fragment(payload);
                        if let Some(failure) = &wrong {
                            sink.damaged(&self.fails(position, &header, failure));
                        }
                        partial = Partial::Wanted {
                            fragments: fragments + 1,
                            flags,
                        };
                        if header.flags & FLAG_END != 0 {
                            sink.end(end_position, flags | header.flags);
                        }
                    }
                    if header.flags & FLAG_END != 0 {
                        partial = Partial::None;
                    }
                    self.partial = partial;
                    self.skipped_fragments += skipped;
                }
            }
            self.position = position + aligned as i64;
        }
        if let Partial::Wanted { fragments, .. } = self.partial {
            sink.abandon();
            self.unfinished_fragments += fragments;
            self.partial = Partial::None;
        }
        Ok(())
    }

    /// After an error: go to the next frame that can be found.
    ///
    /// Returns where that is, at most the limit, and what is in between.
    pub fn pass_over(&mut self, sink: &mut impl Sink) -> (i64, GapKind) {
        let limit = self.range.limit;
        self.drop_partial(sink);
        let kind = gap::kind(&mut self.window, self.position, limit);
        self.position = gap::end(&mut self.window, &mut self.bases, self.position, limit);
        (self.position, kind)
    }

    #[inline]
    fn starves(&mut self, position: i64, length: usize) -> bool {
        self.starved = !self.window.has(position, length);
        self.starved
    }

    fn drop_partial(&mut self, sink: &mut impl Sink) {
        if let Partial::Wanted { fragments, .. } = self.partial {
            sink.abandon();
            self.skipped_fragments += fragments;
        }
        self.partial = Partial::None;
    }

    #[cold]
    fn fails(&self, position: i64, header: &FrameHeader, failure: &Failure) -> Error {
        let why = match failure.stored {
            Stored::SessionId => {
                "the frame holds the session id: it was recorded without checksums; read it \
                 without verifying any"
            }
            Stored::OtherKind => "the frame was recorded with the other checksum; give that one",
            _ => "the frame is damaged or was recorded without this checksum",
        };
        let what = format!(
            "frame checksum does not match: stored {}, computed {} ({:?}); {why}",
            header.session_id, failure.computed, failure.checksum
        );
        self.broken(position, &what)
    }

    #[cold]
    fn broken(&self, position: i64, what: &str) -> Error {
        self.window.recording().error(position, what)
    }
}
