use super::*;

const PASSWORD: &[u8] = b"secret";

fn header(scope_id: u64) -> Header {
    Header {
        scope_id,
        ledger_id: 7,
        entry_id: 41,
        last_add_confirmed: 40,
        length: 1234,
    }
}

fn encoded(header: &Header, kind: DigestType, payload: &[u8]) -> Vec<u8> {
    let mut prefix = Prefix::new();
    header.write_prefix(&Digest::new(kind, PASSWORD), payload, &mut prefix);
    [prefix.as_slice(), payload].concat()
}

fn class(result: Result<Entry<'_>>) -> &'static str {
    match result {
        Err(Error::Entry { class, .. }) => class,
        _ => "",
    }
}

#[test]
fn entries_have_the_worked_bytes() {
    let version_1 = encoded(&header(0), DigestType::Crc32c, b"hello");
    assert_eq!(
        hex(&version_1),
        "0000000000000007000000000000002900000000000000280000000000000\
         4d2601b6ee968656c6c6f"
    );
    let version_2 = encoded(&header(0x0123_4567_89ab_cdef), DigestType::Crc32c, b"hello");
    assert_eq!(
        hex(&version_2),
        "a3000000000000000123456789abcdef00000000000000070000000000000029\
         000000000000002800000000000004d24016c9e268656c6c6f"
    );
}

#[test]
fn every_type_decodes_to_what_was_encoded() {
    for scope_id in [0, 1, u64::MAX] {
        for kind in DigestType::ALL {
            for payload in [&b""[..], b"x", &[9; 1000]] {
                let bytes = encoded(&header(scope_id), kind, payload);
                assert_eq!(bytes.len(), prefix_length(scope_id, kind) + payload.len());
                let expected = Entry {
                    header: header(scope_id),
                    kind,
                    payload,
                };
                assert_eq!(decode(&bytes, Some(kind), PASSWORD), Ok(expected));
                let read = decode_header(&bytes).map(|(header, _, _)| header);
                assert_eq!(read, Ok(header(scope_id)));
                let detected = decode(&bytes, None, PASSWORD).map(|entry| entry.kind);
                if scope_id != 0 || kind != DigestType::Dummy {
                    assert_eq!(detected, Ok(kind));
                } else {
                    assert!(detected.is_err(), "the digest of no type fits");
                }
            }
        }
    }
}

#[test]
fn every_changed_byte_is_found_and_every_shorter_entry() {
    for scope_id in [0, 5] {
        for kind in [DigestType::Crc32, DigestType::Crc32c, DigestType::Hmac] {
            let bytes = encoded(&header(scope_id), kind, b"payload");
            for at in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[at] ^= 0x04;
                assert!(decode(&changed, Some(kind), PASSWORD).is_err(), "byte {at}");
                assert!(decode(&changed, None, PASSWORD).is_err(), "byte {at}");
            }
            for length in 0..prefix_length(scope_id, kind) {
                let result = decode(&bytes[..length], Some(kind), PASSWORD);
                assert_eq!(class(result), "EntryTooShortError", "{length} bytes");
            }
            for length in prefix_length(scope_id, kind)..bytes.len() {
                let result = decode(&bytes[..length], Some(kind), PASSWORD);
                assert_eq!(class(result), "EntryDigestError", "{length} bytes");
            }
        }
    }
}

#[test]
fn other_versions_types_and_flags_are_not_supported() {
    let bytes = encoded(&header(5), DigestType::Crc32c, &[9; 100]);
    for flags in 0x80..=0xFF_u8 {
        let mut changed = bytes.clone();
        changed[0] = flags;
        let found = class(decode(&changed, None, PASSWORD));
        match flags {
            0xA3 => assert_eq!(found, ""),
            0xA4 => assert_eq!(found, "", "a payload that begins with the other digest"),
            0xA1 | 0xA2 => assert_eq!(found, "EntryDigestError", "{flags:#x}"),
            _ => assert_eq!(found, "EntryFormatError", "{flags:#x}"),
        }
    }
    for at in 1..8 {
        let mut changed = bytes.clone();
        changed[at] = 1;
        assert_eq!(class(decode(&changed, None, PASSWORD)), "EntryFormatError");
    }
}

#[test]
fn expected_ids_are_compared() {
    let header = header(5);
    assert_eq!(header.check_ids(None, None, None), Ok(()));
    assert_eq!(header.check_ids(Some(5), Some(7), Some(41)), Ok(()));
    for (scope_id, ledger_id, entry_id) in [(0, 7, 41), (5, 8, 41), (5, 7, 40)] {
        let result = header.check_ids(Some(scope_id), Some(ledger_id), Some(entry_id));
        assert!(matches!(
            result,
            Err(Error::Entry {
                class: "EntryMismatchError",
                ..
            })
        ));
    }
}
