//! Frames made by hand for unit tests.

use crate::frame::{
    FLAGS_OFFSET, FLAGS_UNFRAGMENTED, HEADER_LENGTH, TERM_ID_OFFSET, TERM_OFFSET_OFFSET, TYPE_DATA,
    TYPE_OFFSET, TYPE_PAD, align,
};

fn frame(term_offset: i32, term_id: i32, frame_type: u16, frame_length: usize) -> Vec<u8> {
    let mut bytes = vec![0; align(frame_length)];
    bytes[..4].copy_from_slice(&(frame_length as i32).to_le_bytes());
    bytes[FLAGS_OFFSET] = FLAGS_UNFRAGMENTED;
    bytes[TYPE_OFFSET..TYPE_OFFSET + 2].copy_from_slice(&frame_type.to_le_bytes());
    bytes[TERM_OFFSET_OFFSET..TERM_OFFSET_OFFSET + 4].copy_from_slice(&term_offset.to_le_bytes());
    bytes[12..16].copy_from_slice(&0x5E55_1012_i32.to_le_bytes());
    bytes[16..20].copy_from_slice(&1001_i32.to_le_bytes());
    bytes[TERM_ID_OFFSET..TERM_ID_OFFSET + 4].copy_from_slice(&term_id.to_le_bytes());
    bytes
}

pub fn data_frame(term_offset: i32, term_id: i32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = frame(
        term_offset,
        term_id,
        TYPE_DATA,
        HEADER_LENGTH + payload.len(),
    );
    bytes[HEADER_LENGTH..HEADER_LENGTH + payload.len()].copy_from_slice(payload);
    bytes
}

pub fn padding_frame(term_offset: i32, term_id: i32, frame_length: usize) -> Vec<u8> {
    frame(term_offset, term_id, TYPE_PAD, frame_length)
}
