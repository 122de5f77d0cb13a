//! A digest of a column's values. The check of the written column computes it again, by other code.

use crate::column_values::ColumnValues;
use crc32fast::Hasher;

/// Values are copied to a buffer of this size: a checksum of many short texts is slow, and of one long text fast.
const BUFFER_BYTES: usize = 64 << 10;
/// Rows that are processed together: one word of the validity bitmap.
const WORD_ROWS: usize = u64::BITS as usize;
/// The length that stands for NULL.
const NULL_LENGTH: i32 = -1;
/// Of a word of rows without a value; every byte of a negative one is 0xff.
const NULL_LENGTHS: [u8; WORD_ROWS * size_of::<i32>()] = [0xff; WORD_ROWS * size_of::<i32>()];

/// The digest of consecutive rows of one column. More rows can be added to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColumnDigest {
    pub nulls: u64,
    /// Bytes of all values.
    pub bytes: u64,
    /// CRC-32 of the lengths: little-endian, four bytes for each row, -1 for NULL.
    pub lengths: u32,
    /// CRC-32 of all values in order, without any separator.
    pub values: u32,
}

impl ColumnDigest {
    /// Adds the first `rows` rows of `column`. Rows that it does not have are NULL.
    pub fn add(&mut self, column: &ColumnValues, rows: usize) {
        let (mut lengths, mut values) = (Checksum::new(self.lengths), Checksum::new(self.values));
        let mut present = column.iter();
        for start in (0..rows).step_by(WORD_ROWS) {
            let word_rows = WORD_ROWS.min(rows - start);
            let validity = column.validity_word(start, word_rows);
            if validity == 0 {
                self.nulls += word_rows as u64;
                lengths.add(&NULL_LENGTHS[..word_rows * size_of::<i32>()]);
                continue;
            }
            for row in 0..word_rows {
                let value = if validity >> row & 1 == 1 { present.next() } else { None };
                let Some(value) = value else {
                    self.nulls += 1;
                    lengths.add(&NULL_LENGTH.to_le_bytes());
                    continue;
                };
                self.bytes += value.len() as u64;
                lengths.add(&i32::try_from(value.len()).expect("a line is below 2 GiB").to_le_bytes());
                values.add(value);
            }
        }
        (self.lengths, self.values) = (lengths.finish(), values.finish());
    }
}

/// A CRC-32 that is continued from an earlier one.
struct Checksum {
    hasher: Hasher,
    buffer: Vec<u8>,
}

impl Checksum {
    fn new(previous: u32) -> Self {
        Self { hasher: Hasher::new_with_initial(previous), buffer: Vec::with_capacity(BUFFER_BYTES) }
    }

    #[inline]
    fn add(&mut self, bytes: &[u8]) {
        if self.buffer.len() + bytes.len() > BUFFER_BYTES {
            self.flush();
            if bytes.len() > BUFFER_BYTES {
                return self.hasher.update(bytes);
            }
        }
        self.buffer.extend_from_slice(bytes);
    }

    fn flush(&mut self) {
        self.hasher.update(&self.buffer);
        self.buffer.clear();
    }

    fn finish(mut self) -> u32 {
        self.flush();
        self.hasher.finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(values: &[Option<&[u8]>]) -> ColumnValues {
        let mut column = ColumnValues::default();
        for (row, value) in values.iter().enumerate() {
            if let Some(value) = value {
                column.push(row, value, value.len());
            }
        }
        column
    }

    fn digest(parts: &[(&ColumnValues, usize)]) -> ColumnDigest {
        let mut digest = ColumnDigest::default();
        parts.iter().for_each(|(column, rows)| digest.add(column, *rows));
        digest
    }

    #[test]
    fn it_is_the_crc_of_lengths_and_values() {
        let values = column(&[Some(b"ab"), None, Some(b""), Some(b"c")]);
        for rows in [5, 64, 200] {
            let nulls = std::iter::repeat_n(-1, rows - 4);
            let lengths: Vec<u8> = [2, -1, 0, 1].into_iter().chain(nulls).flat_map(i32::to_le_bytes).collect();
            let (lengths, text) = (crc32fast::hash(&lengths), crc32fast::hash(b"abc"));
            let expected = ColumnDigest { nulls: rows as u64 - 3, bytes: 3, lengths, values: text };
            assert_eq!(digest(&[(&values, rows)]), expected, "{rows}");
        }
    }

    #[test]
    fn rows_in_two_parts_give_the_digest_of_the_whole() {
        let long = vec![b'x'; BUFFER_BYTES + 1];
        let rows: Vec<Option<&[u8]>> =
            (0..300).map(|row| (row % 7 != 3).then_some(if row % 50 == 0 { &*long } else { b"value" })).collect();
        let whole = digest(&[(&column(&rows), 300)]);
        for cut in [0, 1, 63, 64, 65, 299] {
            let (head, tail) = (column(&rows[..cut]), column(&rows[cut..]));
            assert_eq!(digest(&[(&head, cut), (&tail, 300 - cut)]), whole, "{cut}");
        }
    }

    #[test]
    fn null_and_empty_and_moved_bytes_differ() {
        let base = digest(&[(&column(&[Some(b"ab"), Some(b"c")]), 2)]);
        for other in [[Some(&b"a"[..]), Some(b"bc")], [Some(b"c"), Some(b"ab")], [Some(b"abc"), None]] {
            assert_ne!(digest(&[(&column(&other), 2)]), base);
        }
        assert_ne!(digest(&[(&column(&[Some(b"")]), 1)]), digest(&[(&column(&[None]), 1)]));
    }
}
