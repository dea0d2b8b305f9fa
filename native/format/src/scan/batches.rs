//! A scan: batches of messages from a walk.

use super::columns::{BatchLimits, Column, Messages, Mode};
use super::walk::{Sink, Walk};
use crate::errors::{Error, Result};

/// A walk whose messages are collected into batches.
pub struct Scan {
    pub walk: Walk,
    pub limits: BatchLimits,
    pub mode: Mode,
    pub to: i64,
    pub rows: u64,
    pub dropped_messages: u64,
    /// A batch that could not be finished before more bytes are given.
    pub unfinished: Option<Messages>,
    /// Why these bytes cannot be had.
    pub refused: Option<Error>,
    /// Why the scan cannot continue. Raised after the preceding messages have been returned.
    pub failure: Option<Error>,
}

impl Scan {
    /// Collect the next batch; `None` at the end of the range, or where more bytes are wanted.
    pub fn next(&mut self, columns: &[Column]) -> Result<Option<Messages>> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let mut messages = self.unfinished.take().unwrap_or_else(|| {
            let expected = usize::try_from(self.to - self.walk.position()).unwrap_or(0);
            Messages::new(columns, self.limits, self.mode, expected)
        });
        let ended = match self.refused.take() {
            Some(error) => Err(error),
            None => self.walk.run(&mut messages),
        };
        if ended.is_ok() && self.walk.wanted().is_some() {
            self.unfinished = Some(messages);
            return Ok(None);
        }
        self.dropped_messages += messages.dropped;
        if let Err(error) = ended {
            self.failure = Some(error.clone());
            if messages.rows == 0 {
                return Err(error);
            }
            // Fragments of the failed message may remain.
            Sink::abandon(&mut messages);
        }
        self.rows += messages.rows as u64;
        Ok((messages.rows > 0).then_some(messages))
    }
}
