//! Images that are subscribed to and not recorded, or no longer: their frames are read and discarded.
//!
//! An image cannot be closed without its subscription, which may have others that are recorded. One
//! that is not read would hold up its publisher for all subscribers.

use crate::aeron::ImageHandle;

#[derive(Default)]
pub struct Discards(Vec<ImageHandle>);

impl Discards {
    pub fn add(&mut self, image: ImageHandle) {
        self.0.push(image);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Discard a block of each image, of at most `limit` bytes; whether there was one. An image that
    /// has ended, or whose subscription is closed, is released.
    pub fn work(&mut self, limit: usize) -> bool {
        let mut worked = false;
        self.0.retain(|image| {
            match image.block_poll(limit.min(image.term_buffer_length), &mut |_, _, _| {}) {
                Ok(Some(length)) => {
                    worked |= length > 0;
                    true
                }
                Ok(None) | Err(_) => false,
            }
        });
        worked
    }
}
