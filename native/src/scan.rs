//! Quick looks at bytes for the plain shapes that most of a line has. All of it answers "no" where it is not sure.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = ONES << 7;
/// Most strings end within so many bytes; what is longer is searched by wider steps, which take longer to begin.
const NEAR: usize = 32;

#[inline]
fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("the caller has looked at the length"))
}

/// Marks the bytes of a word that are zero; the lowest mark is right, higher ones may not be.
#[inline]
fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGH_BITS
}

/// `starts_with` for keys: without a call for what is not longer than 32 bytes.
#[inline]
pub fn begins_with(bytes: &[u8], key: &[u8]) -> bool {
    let length = key.len();
    if bytes.len() < length {
        return false;
    }
    let same = |at| word(bytes, at) == word(key, at);
    match length {
        8..=16 => same(0) && same(length - 8),
        17..=32 => same(0) && same(8) && same(length - 16) && same(length - 8),
        _ => bytes.starts_with(key),
    }
}

/// Where the first quotation mark or backslash is.
#[inline]
pub fn quote_or_backslash(bytes: &[u8]) -> Option<usize> {
    let near = &bytes[..bytes.len().min(NEAR)];
    let mut at = 0;
    for piece in near.chunks_exact(8) {
        let word = word(piece, 0);
        let found = zeros(word ^ (ONES * u64::from(b'"'))) | zeros(word ^ (ONES * u64::from(b'\\')));
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    memchr::memchr2(b'"', b'\\', &bytes[at..]).map(|length| at + length)
}

/// The length of the number that begins here; None if there is none. What follows it is not looked at.
#[inline(always)]
pub fn number(bytes: &[u8]) -> Option<usize> {
    let mut at = usize::from(bytes.first() == Some(&b'-'));
    let digits = |at: usize| bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    at += match bytes.get(at) {
        // Nothing but a dot or an exponent can go on from here: another digit does not belong to the number.
        Some(b'0') => 1,
        _ => Some(digits(at)).filter(|count| *count > 0)?,
    };
    if bytes.get(at) == Some(&b'.') {
        let count = digits(at + 1);
        if count == 0 {
            return None;
        }
        at += 1 + count;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        at += 1 + usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let count = digits(at);
        if count == 0 {
            return None;
        }
        at += count;
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_every_length_are_told_from_their_neighbours() {
        for length in 0..70 {
            let key: Vec<u8> = (0..length).map(|byte| b'a' + byte % 26).collect();
            let line = [key.as_slice(), b"!"].concat();
            assert!(begins_with(&line, &key) && begins_with(&key, &key));
            for changed in 0..key.len() {
                let mut other = key.clone();
                other[changed] ^= 0x80;
                assert!(!begins_with(&line, &other), "{length} {changed}");
                assert!(!begins_with(&key[..changed], &key));
            }
        }
    }

    #[test]
    fn the_first_end_is_found_wherever_it_stands() {
        for before in 0..80 {
            for after in 0..20 {
                for end in [b'"', b'\\'] {
                    for filling in [b'a', b'!', b'#', b'[', b']', 0xff, 0x80, b'"' | 0x80, b'\\' | 0x80] {
                        let mut bytes = vec![filling; before];
                        assert_eq!(quote_or_backslash(&bytes), None);
                        bytes.push(end);
                        bytes.extend(std::iter::repeat_n(b'"', after));
                        assert_eq!(quote_or_backslash(&bytes), Some(before));
                    }
                }
            }
        }
    }

    #[test]
    fn numbers_end_where_the_grammar_says() {
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
            assert_eq!(number(text.as_bytes()), length, "{text}");
        }
    }
}
