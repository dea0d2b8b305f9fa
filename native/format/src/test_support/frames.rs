//! Frames made by hand for unit tests.

use crate::frame::{
    FLAGS_OFFSET, FLAGS_UNFRAGMENTED, HEADER_LENGTH, TERM_ID_OFFSET, TERM_OFFSET_OFFSET, TYPE_DATA,
    TYPE_OFFSET, align,
};

pub fn data_frame(term_offset: i32, term_id: i32, payload: &[u8]) -> Vec<u8> {
    let frame_length = HEADER_LENGTH + payload.len();
    let mut bytes = vec![0; align(frame_length)];
    bytes[..4].copy_from_slice(&(frame_length as i32).to_le_bytes());
    bytes[FLAGS_OFFSET] = FLAGS_UNFRAGMENTED;
    bytes[TYPE_OFFSET..TYPE_OFFSET + 2].copy_from_slice(&TYPE_DATA.to_le_bytes());
    bytes[TERM_OFFSET_OFFSET..TERM_OFFSET_OFFSET + 4].copy_from_slice(&term_offset.to_le_bytes());
    bytes[12..16].copy_from_slice(&0x5E55_1012_i32.to_le_bytes());
    bytes[16..20].copy_from_slice(&1001_i32.to_le_bytes());
    bytes[TERM_ID_OFFSET..TERM_ID_OFFSET + 4].copy_from_slice(&term_id.to_le_bytes());
    bytes[HEADER_LENGTH..frame_length].copy_from_slice(payload);
    bytes
}
