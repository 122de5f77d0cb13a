//! Parquet's dictionary encoding of one column chunk: the distinct values once, and for each value its number.
//!
//! The numbers are in Parquet's RLE/bit-packing hybrid. Source: the Parquet format, Encodings.md, "Dictionary Encoding"
//! and "Run Length Encoding / Bit-Packing Hybrid".

use crate::bounds::{Bounds, Extremes};
use crate::column_values::{ColumnValues, LENGTH_BYTES, split_first_value};
use crate::varint::push_varint;
use foldhash::fast::FixedState;
use std::hash::{BuildHasher, Hasher};

/// Maximum number of entries, so that a number fits into 15 bits.
const MAX_ENTRIES: usize = 1 << 15;
/// Maximum number of bytes of the dictionary page before compression.
const MAX_BYTES: usize = 512 << 10;
/// The first values decide whether a column gets a dictionary: a quarter of its first batch, within these limits.
const MIN_SAMPLE: usize = 256;
const MAX_SAMPLE: usize = 8192;
/// Maximum percentage of new values in the last quarter of a sample.
const MAX_NEW_PERCENT: usize = 80;
/// A sample ends after this number of values if nearly all are new; a large sample ends after its half, because values
/// can come in rotation.
const FIRST_LOOK: usize = 128;
/// One in this number of values must have occurred before by then.
const LOOK_DIVISOR: usize = 32;
/// With more distinct values than this a trial must show that the numbers are smaller than the values: for ascending
/// values, such as times, they are not.
const FEW_VALUES: usize = 1500;
/// A chunk must be expected to have this many bytes of each of its values, 16 repetitions of five digits, or to have
/// `MANY_VALUES`: the second compression and the insertions of a small one cost more than its numbers save.
const MIN_REPEATED_BYTES: usize = 16 * (LENGTH_BYTES + 5);
const MANY_VALUES: usize = 20_000;
/// A look-up gives up after this number of steps, as if the dictionary were full. This bounds the cost of values that
/// were chosen to collide.
const MAX_STEPS: usize = 64;
const FIRST_SLOTS: usize = 512;
/// Number of values that are packed together: they fill whole bytes with any width.
const GROUP: usize = 8;
/// Number of equal groups in succession that become a run.
const RUN_GROUPS: usize = 8;

/// The distinct values of a column chunk, in the order of their first occurrence.
pub struct Dictionary {
    /// The values as in the dictionary page: each after its length.
    pub plain: Vec<u8>,
    entries: Vec<Entry>,
    /// A hash table with open addressing: one more than the number of an entry, 0 for a free slot.
    slots: Vec<u16>,
    hash: FixedState,
}

#[derive(Clone, Copy)]
struct Entry {
    hash: u64,
    first: u64,
    start: u32,
    length: u32,
}

/// The encoding that a sample suggests for a column chunk.
pub enum Choice {
    Plain,
    Dictionary,
    /// A dictionary if the numbers of this number of values are smaller than the values, both compressed.
    Trial(usize),
}

impl Dictionary {
    pub fn new() -> Self {
        Self { plain: Vec::new(), entries: Vec::new(), slots: vec![0; FIRST_SLOTS], hash: FixedState::default() }
    }

    /// Whether a chunk that starts with the `rows` rows of `column`, and is expected to have `chunk_values`, is likely to be
    /// smaller with a dictionary.
    pub fn choose(column: &ColumnValues, rows: usize, chunk_values: impl Fn(usize) -> usize) -> Choice {
        Self::sample(column, rows, chunk_values).unwrap_or(Choice::Plain)
    }

    fn sample(column: &ColumnValues, rows: usize, chunk_values: impl Fn(usize) -> usize) -> Option<Choice> {
        let mut rest = &*column.plain;
        for _ in 0..FIRST_LOOK {
            rest = split_first_value(rest)?.1;
        }
        // A long later value makes the estimate too high.
        let values = (FIRST_LOOK * column.plain.len() / (column.plain.len() - rest.len())).min(rows);
        let sample = (values / 4).clamp(MIN_SAMPLE, MAX_SAMPLE);
        let look = if sample >= 8 * FIRST_LOOK { sample / 2 } else { FIRST_LOOK };
        // Only hashes: most columns have many different values, which are then not copied.
        let hash = FixedState::default();
        let mut seen = vec![0_u32; (2 * sample).next_power_of_two()];
        let mask = seen.len() - 1;
        let (mut distinct, mut distinct_bytes, mut late) = (0, 0, 0);
        rest = &column.plain;
        for number in 0..sample {
            let (value, next) = split_first_value(rest)?;
            rest = next;
            let hash = (hash_of(&hash, value) >> 16) as u32 | 1;
            let mut slot = hash as usize >> 1 & mask;
            while seen[slot] != 0 && seen[slot] != hash {
                slot = (slot + 1) & mask;
            }
            if seen[slot] == 0 {
                seen[slot] = hash;
                distinct += 1;
                distinct_bytes += LENGTH_BYTES + value.len();
                late += usize::from(number >= sample / 4 * 3);
                if distinct_bytes > MAX_BYTES {
                    return None;
                }
            }
            if number + 1 == look && (number + 1 - distinct) * LOOK_DIVISOR < number + 1 {
                return None;
            }
        }
        if 100 * late > MAX_NEW_PERCENT * (sample / 4) {
            return None;
        }
        // The number of distinct values that explains the share of new ones at the end, if all are equally frequent.
        let expected = distinct * (sample / 4) / (sample / 4 - late);
        let repetitions = (MIN_REPEATED_BYTES * distinct / distinct_bytes).max(2);
        if chunk_values(values) < (repetitions * expected).min(MANY_VALUES) {
            return None;
        }
        Some(if distinct > FEW_VALUES { Choice::Trial(sample) } else { Choice::Dictionary })
    }

    /// The first `sample` values of a column: in plain encoding, and as numbers of a dictionary; None if it overflows.
    pub fn trial(column: &ColumnValues, sample: usize) -> Option<(&[u8], Vec<u8>)> {
        let mut dictionary = Self::new();
        let mut numbers = Vec::with_capacity(sample);
        let mut rest = &*column.plain;
        for _ in 0..sample {
            let (value, next) = split_first_value(rest)?;
            numbers.push(dictionary.number_of(value)?);
            rest = next;
        }
        let mut page = Vec::new();
        dictionary.encode(&numbers, &mut page);
        Some((&column.plain[..column.plain.len() - rest.len()], page))
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        self.plain.capacity() + self.entries.capacity() * size_of::<Entry>() + self.slots.len() * size_of::<u16>()
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The number of a value, which is added if it is new; None if the dictionary is full.
    #[inline]
    pub fn number_of(&mut self, value: &[u8]) -> Option<u16> {
        let first = first_bytes(value);
        let hash = hash_of(&self.hash, value);
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        for _ in 0..MAX_STEPS {
            let number = self.slots[slot];
            if number == 0 {
                return self.add(value, first, hash, slot);
            }
            let entry = &self.entries[usize::from(number - 1)];
            if entry.first == first && entry.length as usize == value.len() && self.has_rest(entry, value) {
                return Some(number - 1);
            }
            slot = (slot + 1) & mask;
        }
        None
    }

    /// A value of at most eight bytes is identified by these and its length.
    #[inline]
    fn has_rest(&self, entry: &Entry, value: &[u8]) -> bool {
        value.len() <= 8 || &self.plain[entry.start as usize..][..value.len()] == value
    }

    #[cold]
    fn add(&mut self, value: &[u8], first: u64, hash: u64, slot: usize) -> Option<u16> {
        let bytes = self.plain.len() + LENGTH_BYTES + value.len();
        if self.entries.len() >= MAX_ENTRIES || bytes > MAX_BYTES {
            return None;
        }
        let number = u16::try_from(self.entries.len()).ok()?;
        let length = u32::try_from(value.len()).ok()?;
        self.plain.extend_from_slice(&length.to_le_bytes());
        self.entries.push(Entry { hash, first, start: self.plain.len() as u32, length });
        self.plain.extend_from_slice(value);
        self.slots[slot] = number + 1;
        if 2 * self.entries.len() > self.slots.len() {
            self.grow();
        }
        Some(number)
    }

    fn grow(&mut self) {
        let mask = 4 * self.slots.len() - 1;
        self.slots = vec![0; mask + 1];
        for (number, entry) in self.entries.iter().enumerate() {
            let mut slot = entry.hash as usize & mask;
            while self.slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            self.slots[slot] = number as u16 + 1;
        }
    }

    /// The minimum and maximum of the values with these numbers.
    pub fn bounds(&self, numbers: &[u16]) -> Bounds {
        let mut used = vec![false; self.entries.len()];
        for &number in numbers {
            used[usize::from(number)] = true;
        }
        let mut extremes = None;
        for (entry, _) in self.entries.iter().zip(used).filter(|(_, used)| *used) {
            Extremes::widen(&mut extremes, &self.plain[entry.start as usize..][..entry.length as usize]);
        }
        Extremes::bounds(extremes)
    }

    /// Appends the numbers of a page's values: their width in bits as a byte, then runs.
    pub fn encode(&self, numbers: &[u16], page: &mut Vec<u8>) {
        let largest = self.entries.len().saturating_sub(1).max(1);
        let width = usize::BITS - largest.leading_zeros();
        page.push(width as u8);
        push_numbers(numbers, width as usize, page);
    }
}

#[inline]
fn hash_of(state: &FixedState, value: &[u8]) -> u64 {
    let mut hasher = state.build_hasher();
    hasher.write(value);
    hasher.finish()
}

/// The first eight bytes as a number. A shorter value is filled with zeros.
#[inline]
fn first_bytes(value: &[u8]) -> u64 {
    match value.first_chunk() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => value.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)),
    }
}

/// Groups of eight numbers, bit-packed; many equal groups in succession as a run.
fn push_numbers(numbers: &[u16], width: usize, page: &mut Vec<u8>) {
    page.reserve(numbers.len() * width / 8 + 64);
    let mut packed = 0;
    let mut at = 0;
    while at < numbers.len() {
        let number = numbers[at];
        let group = &numbers[at..numbers.len().min(at + GROUP)];
        if group.iter().all(|&other| other == number) {
            let run = numbers[at..].iter().take_while(|&&other| other == number).count();
            if run >= RUN_GROUPS * GROUP {
                push_packed(&numbers[packed..at], width, page);
                push_varint(page, run << 1);
                page.extend_from_slice(&number.to_le_bytes()[..width.div_ceil(8)]);
                at += run;
                packed = at;
                continue;
            }
            at += (run / GROUP).max(1) * GROUP;
            continue;
        }
        at += GROUP;
    }
    push_packed(&numbers[packed..], width, page);
}

/// One bit-packed run, the least significant bits first; the last group is filled with zeros.
fn push_packed(numbers: &[u16], width: usize, page: &mut Vec<u8>) {
    if numbers.is_empty() {
        return;
    }
    push_varint(page, numbers.len().div_ceil(GROUP) << 1 | 1);
    if width == 8 {
        page.extend(numbers.iter().map(|&number| number as u8));
        page.resize(page.len() + numbers.len().next_multiple_of(GROUP) - numbers.len(), 0);
        return;
    }
    let (groups, rest) = numbers.as_chunks::<GROUP>();
    for group in groups {
        push_group(group, width, page);
    }
    if !rest.is_empty() {
        let mut group = [0; GROUP];
        group[..rest.len()].copy_from_slice(rest);
        push_group(&group, width, page);
    }
}

#[inline]
fn push_group(group: &[u16; GROUP], width: usize, page: &mut Vec<u8>) {
    if width <= 8 {
        let bits = group.iter().rev().fold(0_u64, |bits, &number| bits << width | u64::from(number));
        page.extend_from_slice(&bits.to_le_bytes()[..width]);
    } else {
        let bits = group.iter().rev().fold(0_u128, |bits, &number| bits << width | u128::from(number));
        page.extend_from_slice(&bits.to_le_bytes()[..width]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(numbers: &[u16], width: usize) -> Vec<u8> {
        let mut page = Vec::new();
        push_numbers(numbers, width, &mut page);
        page
    }

    /// By the text of the format, one bit after the other.
    fn decoded(mut page: &[u8], width: usize, count: usize) -> Vec<u16> {
        let mut numbers = Vec::new();
        while numbers.len() < count {
            let (mut header, mut shift) = (0, 0);
            loop {
                let byte = page[0];
                page = &page[1..];
                header |= usize::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    break;
                }
            }
            if header & 1 == 0 {
                let bytes = width.div_ceil(8);
                let number = page[..bytes].iter().rev().fold(0, |number, &byte| number << 8 | u16::from(byte));
                assert!(header > 1);
                numbers.extend(std::iter::repeat_n(number, header >> 1));
                page = &page[bytes..];
            } else {
                let values = (header >> 1) * 8;
                for value in 0..values {
                    let bit = |bit: usize| u16::from(page[bit / 8] >> (bit % 8) & 1);
                    numbers.push((0..width).fold(0, |number, index| number | bit(value * width + index) << index));
                }
                page = &page[values * width / 8..];
            }
        }
        assert!(page.is_empty() && numbers.len() < count + 8);
        numbers.truncate(count);
        numbers
    }

    #[test]
    fn numbers_are_packed_as_the_format_describes_it() {
        // The example of Encodings.md: 0 to 7 in three bits.
        assert_eq!(encoded(&[0, 1, 2, 3, 4, 5, 6, 7], 3), [3, 0b10001000, 0b11000110, 0b11111010]);
        assert_eq!(encoded(&[5; 100], 3), [200, 1, 5]);
        assert_eq!(encoded(&[300; 100], 9), [200, 1, 44, 1]);
        assert_eq!(encoded(&[1, 0, 1], 1), [3, 5]);
        assert!(encoded(&[], 1).is_empty());
    }

    #[test]
    fn numbers_of_every_width_in_runs_of_every_length_are_read_back() {
        for width in 1..=16 {
            let top = (1_u32 << width) - 1;
            for length in 0..40 {
                for run in [1, 3, 7, 8, 9, 15, 16, 17, 31, 64, 500] {
                    let numbers: Vec<u16> = (0..length * 13)
                        .map(|at: u32| {
                            if (at / run).is_multiple_of(2) {
                                (((at / run) * 7919) & top) as u16
                            } else {
                                ((at * 31) & top) as u16
                            }
                        })
                        .collect();
                    let page = encoded(&numbers, width);
                    assert_eq!(decoded(&page, width, numbers.len()), numbers, "{width} {length} {run}");
                }
            }
        }
    }

    #[test]
    fn equal_values_have_equal_numbers() {
        let mut dictionary = Dictionary::new();
        let values: Vec<Vec<u8>> =
            (0..MAX_ENTRIES).map(|n| format!("{n:0width$}", width = n % 9).into_bytes()).collect();
        for _ in 0..2 {
            for (number, value) in values.iter().enumerate() {
                assert_eq!(dictionary.number_of(value), Some(number as u16));
            }
        }
        assert_eq!(dictionary.number_of(b"another"), None);
        assert_eq!(dictionary.len(), MAX_ENTRIES);
    }

    #[test]
    fn zeros_at_the_end_and_the_empty_value_are_values_of_their_own() {
        let mut dictionary = Dictionary::new();
        for (number, value) in [&b""[..], b"\0", b"\0\0", b"a", b"a\0", b"12345678", b"12345678\0"].iter().enumerate() {
            assert_eq!(dictionary.number_of(value), Some(number as u16));
        }
    }
}
