//! Open publications of the C client, for any thread.

use super::super::client::AeronClient;
use super::super::guarded::Guarded;
use super::super::last_error;
use crate::errors::{Error, Result};
use pyo3::prelude::*;
use rusteron_client::bindings as c;
use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;

pub const NOT_CONNECTED: i64 = c::AERON_PUBLICATION_NOT_CONNECTED as i64;
pub const BACK_PRESSURED: i64 = c::AERON_PUBLICATION_BACK_PRESSURED as i64;
const ADMIN_ACTION: i64 = c::AERON_PUBLICATION_ADMIN_ACTION as i64;
pub const CLOSED: i64 = c::AERON_PUBLICATION_CLOSED as i64;
pub const ERROR: i64 = c::AERON_PUBLICATION_ERROR as i64;

/// Whether an offer that ended so may succeed later, when there is room.
pub fn is_held_up(result: i64) -> bool {
    matches!(result, BACK_PRESSURED | ADMIN_ACTION)
}

/// What does not change about a publication.
#[pyclass(frozen, get_all, subclass, module = "aerotape._native")]
#[derive(Clone, Debug)]
pub struct PublicationConstants {
    pub channel: String,
    pub stream_id: i32,
    pub session_id: i32,
    pub registration_id: i64,
    pub initial_term_id: i32,
    pub term_buffer_length: usize,
    pub max_message_length: usize,
    pub max_payload_length: usize,
}

impl PublicationConstants {
    pub(super) fn closed(&self) -> Error {
        Error::Closed(format!("the publication to {} is closed", self.channel))
    }

    /// # Safety
    /// `raw` was filled in by the C client for a publication that is open.
    unsafe fn from_c(raw: &c::aeron_publication_constants_t) -> Self {
        // SAFETY: the channel is NUL-terminated and lives as long as the publication.
        let channel = unsafe { CStr::from_ptr(raw.channel) }
            .to_string_lossy()
            .into_owned();
        Self {
            channel,
            stream_id: raw.stream_id,
            session_id: raw.session_id,
            registration_id: raw.registration_id,
            initial_term_id: raw.initial_term_id,
            term_buffer_length: raw.term_buffer_length,
            max_message_length: raw.max_message_length,
            max_payload_length: raw.max_payload_length,
        }
    }
}

unsafe extern "C" fn reserved_value(clientd: *mut c_void, _buffer: *mut u8, _length: usize) -> i64 {
    // SAFETY: clientd is the value of the offer under way.
    unsafe { *clientd.cast::<i64>() }
}

fn checked(result: i64) -> Result<i64> {
    if result == ERROR {
        Err(last_error("cannot offer the message"))
    } else {
        Ok(result)
    }
}

macro_rules! publication_handle {
    ($handle:ident, $ctype:ident, $what:literal, $constants:ident, $offer:ident, $position:ident,
     $limit:ident, $connected:ident, $closed:ident, $close:ident) => {
        /// An open publication of a client; closed when dropped.
        pub struct $handle {
            pub(super) cell: Guarded<c::$ctype>,
            pub constants: PublicationConstants,
        }

        impl $handle {
            /// For a publication of an open client; call inside the client.
            pub(super) fn new(client: AeronClient, publication: *mut c::$ctype) -> Result<Self> {
                let mut raw = MaybeUninit::<c::aeron_publication_constants_t>::uninit();
                // SAFETY: the caller is inside the client, whose publication this is. The struct
                // is filled in unless the call fails.
                let constants = unsafe {
                    if c::$constants(publication, raw.as_mut_ptr()) < 0 {
                        return Err(last_error(concat!(
                            "cannot read the constants of the ",
                            $what
                        )));
                    }
                    PublicationConstants::from_c(&raw.assume_init())
                };
                Ok(Self {
                    cell: Guarded::new(client, publication, $what),
                    constants,
                })
            }

            pub fn offer(&self, data: &[u8], mut reserved: i64) -> Result<i64> {
                let clientd = (&raw mut reserved).cast::<c_void>();
                let supplier: c::aeron_reserved_value_supplier_t = if reserved == 0 {
                    None
                } else {
                    Some(reserved_value)
                };
                let offered = self.cell.with(|publication| {
                    // SAFETY: the pointer is valid within the call; C copies the data.
                    unsafe { c::$offer(publication, data.as_ptr(), data.len(), supplier, clientd) }
                });
                checked(offered.unwrap_or(CLOSED))
            }

            pub fn position(&self) -> i64 {
                // SAFETY: the pointer is valid within the call.
                let read = |publication| unsafe { c::$position(publication) };
                self.cell.with(read).unwrap_or(-1)
            }

            pub fn position_limit(&self) -> i64 {
                // SAFETY: the pointer is valid within the call.
                let read = |publication| unsafe { c::$limit(publication) };
                self.cell.with(read).unwrap_or(-1)
            }

            pub fn is_connected(&self) -> bool {
                // SAFETY: the pointer is valid within the call.
                let read = |publication| unsafe { c::$connected(publication) };
                self.cell.with(read).unwrap_or(false)
            }

            pub fn is_closed(&self) -> bool {
                // SAFETY: the pointer is valid within the call.
                let read = |publication| unsafe { c::$closed(publication) };
                self.cell.with(read).unwrap_or(true)
            }

            pub fn close(&self) {
                // SAFETY: taken out, so the publication is not used after this.
                self.cell.take(|publication| unsafe {
                    c::$close(publication, None, std::ptr::null_mut());
                });
            }
        }

        impl Drop for $handle {
            fn drop(&mut self) {
                self.close();
            }
        }
    };
}

publication_handle!(
    PublicationHandle,
    aeron_publication_t,
    "publication",
    aeron_publication_constants,
    aeron_publication_offer,
    aeron_publication_position,
    aeron_publication_position_limit,
    aeron_publication_is_connected,
    aeron_publication_is_closed,
    aeron_publication_close
);
publication_handle!(
    ExclusivePublicationHandle,
    aeron_exclusive_publication_t,
    "exclusive publication",
    aeron_exclusive_publication_constants,
    aeron_exclusive_publication_offer,
    aeron_exclusive_publication_position,
    aeron_exclusive_publication_position_limit,
    aeron_exclusive_publication_is_connected,
    aeron_exclusive_publication_is_closed,
    aeron_exclusive_publication_close
);

impl ExclusivePublicationHandle {
    pub fn client(&self) -> &AeronClient {
        self.cell.client()
    }

    /// Bytes that can be offered within flow control.
    #[inline]
    pub fn available_window(&self) -> i64 {
        // SAFETY: the pointer is valid within the call.
        let window = |publication| unsafe {
            c::aeron_exclusive_publication_position_limit(publication)
                - c::aeron_exclusive_publication_position(publication)
        };
        self.cell.with(window).unwrap_or(CLOSED)
    }

    /// Append whole frames as they stand in `block`: new position, or a negative result.
    #[inline]
    pub fn offer_block(&self, block: &mut [u8]) -> i64 {
        // SAFETY: the pointer is valid within the call; C copies the block and writes the first
        // frame's header fields, hence `&mut`.
        let offer = |publication| unsafe {
            c::aeron_exclusive_publication_offer_block(publication, block.as_mut_ptr(), block.len())
        };
        self.cell.with(offer).unwrap_or(CLOSED)
    }

    pub(super) fn offering(
        &self,
        offer_all: impl FnOnce(&mut dyn FnMut(&[u8], &[u8]) -> i64) -> (usize, i64),
    ) -> Result<(usize, i64)> {
        let piece = |bytes: &[u8]| c::aeron_iovec_t {
            iov_base: bytes.as_ptr().cast_mut(),
            iov_len: bytes.len(),
        };
        let offered = self.cell.with(|publication| {
            offer_all(&mut |first, second| {
                let mut pieces = [piece(first), piece(second)];
                // SAFETY: the pointer is valid within the call; C copies the pieces, which it
                // only reads.
                unsafe {
                    c::aeron_exclusive_publication_offerv(
                        publication,
                        pieces.as_mut_ptr(),
                        pieces.len(),
                        None,
                        std::ptr::null_mut(),
                    )
                }
            })
        });
        let (sent, last) = offered.unwrap_or((0, CLOSED));
        // What went out counts; the error comes again with the next one.
        let last = if sent > 0 { last } else { checked(last)? };
        Ok((sent, last))
    }

    pub(super) fn offer_each<'a>(
        &self,
        prefix: &[u8],
        bodies: impl Iterator<Item = &'a [u8]>,
        longest: usize,
    ) -> Result<(usize, i64)> {
        self.offering(|offer| {
            let (mut sent, mut last) = (0, 0);
            for body in bodies {
                if prefix.len() + body.len() > longest {
                    return (sent, 0);
                }
                last = offer(prefix, body);
                if last <= 0 {
                    break;
                }
                sent += 1;
            }
            (sent, last)
        })
    }

    /// Append a padding frame with `length` bytes after its header.
    pub fn append_padding(&self, length: usize) -> i64 {
        // SAFETY: the pointer is valid within the call.
        let append = |publication| unsafe {
            c::aeron_exclusive_publication_append_padding(publication, length)
        };
        self.cell.with(append).unwrap_or(CLOSED)
    }

    /// Close at once, dropping what subscribers have not consumed.
    pub fn revoke(&self) {
        // SAFETY: taken out, so the publication is not used after this.
        self.cell.take(|publication| unsafe {
            c::aeron_exclusive_publication_revoke(publication, None, std::ptr::null_mut());
        });
    }
}
