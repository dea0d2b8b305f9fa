//! How far a replay may go: the end of a stopped recording, or a counter that moves.

use crate::aeron::{Counter, ForeignCounter};

/// What sets the end of the replayable part of a recording.
pub enum ReplayLimit {
    /// The recording has stopped.
    Stopped,
    /// The position counter of a live recording in this archive.
    Recording(Counter),
    /// A counter that someone else moves (bounded replay).
    Bound(ForeignCounter),
}

/// The current value of the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitReading {
    /// Position up to which may be replayed.
    pub position: i64,
    /// The position will not move any more.
    pub is_final: bool,
}

impl ReplayLimit {
    /// Read the limit, never below `known_position`.
    pub fn read(&self, known_position: i64) -> LimitReading {
        let (position, is_final) = match self {
            Self::Stopped => (known_position, true),
            Self::Recording(counter) => {
                // Closed first: a counter that is closed then holds its last value for good.
                let is_closed = counter.is_closed();
                (counter.get(), is_closed)
            }
            Self::Bound(counter) => {
                // Freed first: a counter that was freed then has its last value until it is used
                // again, which changes its registration.
                let is_freed = counter.is_freed();
                let position = counter.get();
                if counter.is_registered() {
                    (position, is_freed)
                } else {
                    (known_position, true)
                }
            }
        };
        LimitReading {
            position: position.max(known_position),
            is_final,
        }
    }
}
