//! Short bounds of a column chunk for the footer: a reader that filters needs only their first bytes.

/// Maximum length in bytes of a minimum or maximum in the footer: the default of parquet-rs. parquet-mr cuts its column
/// index to 64 bytes as well.
pub const MAX_BOUND_BYTES: usize = 64;

/// The first bytes of a value, one more than a bound can have. The prefix of the smallest value is the smallest prefix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix(Vec<u8>);

/// The prefixes of the minimum and of the maximum of some values; None without a value.
pub type Bounds = Option<(Prefix, Prefix)>;

/// The minimum and maximum of some values, each after its first bytes as a number: comparing numbers is nearly always
/// enough.
pub struct Extremes<'a> {
    min: (u64, &'a [u8]),
    max: (u64, &'a [u8]),
}

/// A bound, and whether it is a value of the chunk.
#[derive(Debug, PartialEq, Eq)]
pub struct Bound {
    pub bytes: Vec<u8>,
    pub exact: bool,
}

/// Extends `bounds` to further values.
pub fn widen(bounds: &mut Bounds, others: Bounds) {
    *bounds = match (bounds.take(), others) {
        (Some((min, max)), Some((other_min, other_max))) => Some((min.min(other_min), max.max(other_max))),
        (one, None) | (None, one) => one,
    };
}

impl<'a> Extremes<'a> {
    #[inline]
    pub fn widen(extremes: &mut Option<Self>, value: &'a [u8]) {
        let value = (first_bytes(value), value);
        match extremes {
            None => *extremes = Some(Extremes { min: value, max: value }),
            Some(extremes) if value < extremes.min => extremes.min = value,
            Some(extremes) if value > extremes.max => extremes.max = value,
            Some(_) => {}
        }
    }

    pub fn bounds(extremes: Option<Self>) -> Bounds {
        extremes.map(|Self { min, max }| (Prefix::of(min.1), Prefix::of(max.1)))
    }
}

/// The first eight bytes as a number with the same order. A shorter value is filled with zeros.
#[inline]
fn first_bytes(value: &[u8]) -> u64 {
    match value.first_chunk() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => value.iter().enumerate().fold(0, |number, (index, &byte)| number | u64::from(byte) << (56 - 8 * index)),
    }
}

impl Prefix {
    pub fn of(value: &[u8]) -> Self {
        Self(value[..value.len().min(MAX_BOUND_BYTES + 1)].to_vec())
    }

    /// The value itself if it is short enough, else its first characters, which sort before it.
    pub fn lower_bound(&self) -> Bound {
        Bound { bytes: self.whole_characters().to_vec(), exact: self.is_whole() }
    }

    /// The value itself if it is short enough, else text that sorts after every value with this prefix; None if no text of
    /// this length does.
    pub fn upper_bound(&self) -> Option<Bound> {
        if self.is_whole() {
            return Some(Bound { bytes: self.0.clone(), exact: true });
        }
        let mut text = std::str::from_utf8(self.whole_characters()).ok()?.to_owned();
        while let Some(last) = text.pop() {
            if let Some(next) = next_character(last)
                && text.len() + next.len_utf8() <= MAX_BOUND_BYTES
            {
                text.push(next);
                return Some(Bound { bytes: text.into_bytes(), exact: false });
            }
        }
        None
    }

    fn is_whole(&self) -> bool {
        self.0.len() <= MAX_BOUND_BYTES
    }

    /// The first bytes, as many as a bound can have, cut between two characters.
    fn whole_characters(&self) -> &[u8] {
        let mut end = self.0.len().min(MAX_BOUND_BYTES);
        // A continuation byte of UTF-8 is 0b10xxxxxx.
        while end > 0 && self.0.get(end).is_some_and(|byte| byte & 0xc0 == 0x80) {
            end -= 1;
        }
        &self.0[..end]
    }
}

/// The next character in the order of UTF-8, which is the order of the code points, without the surrogates.
fn next_character(character: char) -> Option<char> {
    match u32::from(character) + 1 {
        0xd800 => Some('\u{e000}'),
        code => char::from_u32(code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(value: &str) -> (Bound, Option<Bound>) {
        let prefix = Prefix::of(value.as_bytes());
        (prefix.lower_bound(), prefix.upper_bound())
    }

    #[test]
    fn a_short_value_is_its_own_bound() {
        for value in ["", "a", &"ä".repeat(32), &"\u{10ffff}".repeat(16)] {
            let exact = || Bound { bytes: value.into(), exact: true };
            assert_eq!(bounds(value), (exact(), Some(exact())));
        }
    }

    #[test]
    fn a_long_value_lies_between_two_short_bounds_of_valid_text() {
        let last = ['a', '\u{7f}', 'ÿ', '\u{7ff}', '\u{d7ff}', '\u{ffff}', '😀', '\u{10fffe}', '\u{10ffff}'];
        for start in 0..8 {
            for repeated in last {
                let value: String = "x".repeat(start) + &repeated.to_string().repeat(70);
                let (lower, upper) = bounds(&value);
                assert!(!lower.exact && lower.bytes.len() <= MAX_BOUND_BYTES && lower.bytes.len() > 60);
                assert!(std::str::from_utf8(&lower.bytes).is_ok() && value.as_bytes() > lower.bytes.as_slice());
                let Some(upper) = upper else {
                    assert!(start == 0 && repeated == '\u{10ffff}');
                    continue;
                };
                assert!(!upper.exact && upper.bytes.len() <= MAX_BOUND_BYTES);
                assert!(std::str::from_utf8(&upper.bytes).is_ok() && value.as_bytes() < upper.bytes.as_slice());
            }
        }
    }
}
