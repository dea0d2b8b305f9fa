//! Frame checksums, which `aeron.archive.record.checksum` stores in place of a frame's sessionId.
//!
//! The sum covers the frame after its header up to the aligned end, so padding bytes count.

use crc_fast::{CrcAlgorithm, Digest};

use crate::errors::InvalidArgument;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    Crc32,
    Crc32c,
}

impl Checksum {
    /// Parse a name as the Python side gives it: "crc-32" or "crc-32c"; `None` for "none".
    pub fn parse(name: &str) -> Result<Option<Self>, InvalidArgument> {
        match name {
            "none" => Ok(None),
            "crc-32" => Ok(Some(Self::Crc32)),
            "crc-32c" => Ok(Some(Self::Crc32c)),
            other => Err(InvalidArgument(format!(
                "unknown checksum {other:?}: use \"none\", \"crc-32\" or \"crc-32c\""
            ))),
        }
    }

    #[inline]
    pub fn compute(self, bytes: &[u8]) -> i32 {
        match self {
            Self::Crc32 => crc32fast::hash(bytes) as i32,
            Self::Crc32c => crc32c_append(0, bytes) as i32,
        }
    }

    /// Compute the checksum of bytes that lie in two pieces.
    pub fn compute_two(self, first: &[u8], second: &[u8]) -> i32 {
        match self {
            Self::Crc32 => {
                let mut hasher = crc32fast::Hasher::new();
                hasher.update(first);
                hasher.update(second);
                hasher.finalize() as i32
            }
            Self::Crc32c => crc32c_append(crc32c_append(0, first), second) as i32,
        }
    }

    /// The kind that this one is not, for files that were recorded with that.
    pub fn other(self) -> Self {
        match self {
            Self::Crc32 => Self::Crc32c,
            Self::Crc32c => Self::Crc32,
        }
    }
}

/// Up to this many bytes the instruction in a plain loop beats the library, which prepares for
/// long runs: 3 ns against 9 ns for the 32 bytes of a small message.
#[cfg(target_arch = "x86_64")]
const SHORT_LENGTH: usize = 384;

#[inline]
fn crc32c_append(sum: u32, bytes: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if bytes.len() <= SHORT_LENGTH && std::arch::is_x86_feature_detected!("sse4.2") {
        // SAFETY: the processor has the instructions, as just looked up.
        return unsafe { crc32c_append_short(sum, bytes) };
    }
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(!sum));
    digest.update(bytes);
    digest.finalize() as u32
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
fn crc32c_append_short(sum: u32, mut bytes: &[u8]) -> u32 {
    use std::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u64};
    let mut crc = u64::from(!sum);
    while let Some((word, rest)) = bytes.split_first_chunk::<8>() {
        crc = _mm_crc32_u64(crc, u64::from_le_bytes(*word));
        bytes = rest;
    }
    let crc = bytes
        .iter()
        .fold(crc as u32, |crc, &byte| _mm_crc32_u8(crc, byte));
    !crc
}
