//! Memory of many megabytes in large pages: the first touch of each small page takes longer than
//! the copying into it.

const LARGE_PAGE: usize = 2 << 20;

/// Reserve bytes, and ask the kernel for large pages where there is room for whole ones.
pub fn with_capacity(capacity: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(capacity);
    let place = bytes.spare_capacity_mut();
    let begin = place.as_mut_ptr().addr();
    let first = begin.next_multiple_of(LARGE_PAGE);
    let end = (begin + place.len()) / LARGE_PAGE * LARGE_PAGE;
    if first < end {
        // SAFETY: whole pages within the allocation; what is in them does not change. The kernel
        // may refuse, then pages are small.
        unsafe {
            let first_page = place.as_mut_ptr().byte_add(first - begin);
            libc::madvise(first_page.cast(), end - first, libc::MADV_HUGEPAGE);
        }
    }
    bytes
}
