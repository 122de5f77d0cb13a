//! Byte scans for the fast path: keys, ends of strings and numbers, without building anything.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = ONES << 7;
/// Strings up to this length are searched word by word. `memchr` has wider steps, but a longer start.
const SHORT_STRING_BYTES: usize = 32;

#[inline]
fn read_word(bytes: &[u8], position: usize) -> u64 {
    u64::from_le_bytes(*bytes[position..].first_chunk().expect("the caller has checked the length"))
}

/// Sets the high bit of the zero bytes of a word. Only the lowest bit that is set is reliable.
#[inline]
fn mark_zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGH_BITS
}

/// `starts_with` without a function call for keys of 8 to 32 bytes.
#[inline]
pub fn starts_with_key(bytes: &[u8], key: &[u8]) -> bool {
    let length = key.len();
    if bytes.len() < length {
        return false;
    }
    let same = |position| read_word(bytes, position) == read_word(key, position);
    match length {
        8..=16 => same(0) && same(length - 8),
        17..=32 => same(0) && same(8) && same(length - 16) && same(length - 8),
        _ => bytes.starts_with(key),
    }
}

/// The position of the first quotation mark or backslash.
#[inline]
pub fn find_quote_or_backslash(bytes: &[u8]) -> Option<usize> {
    let head = &bytes[..bytes.len().min(SHORT_STRING_BYTES)];
    let mut position = 0;
    for chunk in head.chunks_exact(8) {
        let word = read_word(chunk, 0);
        let found =
            mark_zero_bytes(word ^ (ONES * u64::from(b'"'))) | mark_zero_bytes(word ^ (ONES * u64::from(b'\\')));
        if found != 0 {
            return Some(position + found.trailing_zeros() as usize / 8);
        }
        position += 8;
    }
    memchr::memchr2(b'"', b'\\', &bytes[position..]).map(|length| position + length)
}

/// The length of the JSON number at the start; None without a number. The bytes after it are not checked.
#[inline(always)]
pub fn number_length(bytes: &[u8]) -> Option<usize> {
    let mut position = usize::from(bytes.first() == Some(&b'-'));
    let digits = |position: usize| bytes[position..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    position += match bytes.get(position) {
        // RFC 8259, section 6: no leading zeros, so that another digit does not belong to the number.
        Some(b'0') => 1,
        _ => Some(digits(position)).filter(|count| *count > 0)?,
    };
    if bytes.get(position) == Some(&b'.') {
        let count = digits(position + 1);
        if count == 0 {
            return None;
        }
        position += 1 + count;
    }
    if let Some(b'e' | b'E') = bytes.get(position) {
        position += 1 + usize::from(matches!(bytes.get(position + 1), Some(b'+' | b'-')));
        let count = digits(position);
        if count == 0 {
            return None;
        }
        position += count;
    }
    Some(position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_every_length_are_distinguished_from_similar_ones() {
        for length in 0..70 {
            let key: Vec<u8> = (0..length).map(|byte| b'a' + byte % 26).collect();
            let line = [key.as_slice(), b"!"].concat();
            assert!(starts_with_key(&line, &key) && starts_with_key(&key, &key));
            for position in 0..key.len() {
                let mut changed = key.clone();
                changed[position] ^= 0x80;
                assert!(!starts_with_key(&line, &changed), "{length} {position}");
                assert!(!starts_with_key(&key[..position], &key));
            }
        }
    }

    #[test]
    fn the_first_quote_or_backslash_is_found_at_every_position() {
        for before in 0..80 {
            for after in 0..20 {
                for end in [b'"', b'\\'] {
                    for filler in [b'a', b'!', b'#', b'[', b']', 0xff, 0x80, b'"' | 0x80, b'\\' | 0x80] {
                        let mut bytes = vec![filler; before];
                        assert_eq!(find_quote_or_backslash(&bytes), None);
                        bytes.push(end);
                        bytes.extend(std::iter::repeat_n(b'"', after));
                        assert_eq!(find_quote_or_backslash(&bytes), Some(before));
                    }
                }
            }
        }
    }

    #[test]
    fn a_number_ends_where_the_grammar_ends_it() {
        for (text, length) in [
            ("0", Some(1)),
            ("-0,", Some(2)),
            ("10.50}", Some(5)),
            ("1e5", Some(3)),
            ("1E-05 ", Some(5)),
            ("-12.5e+10,", Some(9)),
            ("1.", None),
            ("1.e5", None),
            ("1e", None),
            ("1e+", None),
            ("-", None),
            ("01", Some(1)),
            ("-00.5", Some(2)),
            (".5", None),
            ("+1", None),
            ("", None),
        ] {
            assert_eq!(number_length(text.as_bytes()), length, "{text}");
        }
    }
}
