//! The values of one string column, in the layout of Parquet's PLAIN encoding, with a bitmap of the rows that have one.

/// Values up to this length are copied with a copy of this fixed size.
pub const SHORT_VALUE_BYTES: usize = 16;
/// Bytes of the length that precedes each value.
pub const LENGTH_BYTES: usize = size_of::<u32>();

/// Rows are written in order. A row that is left out becomes NULL as soon as a later row is written or padded.
#[derive(Debug, Default)]
pub struct ColumnValues {
    /// Every value that is not NULL, after its length (little-endian).
    pub plain: Vec<u8>,
    /// One bit for each row, set for a value, the least significant bit first; empty while there is no NULL.
    pub validity: Vec<u8>,
    rows: usize,
    /// Where the last value starts in `plain`, for `remove_row`.
    last_start: usize,
}

impl ColumnValues {
    /// Reserves memory for `bytes` bytes of values in total.
    pub fn reserve(&mut self, bytes: usize) {
        self.plain.reserve_exact(bytes.saturating_sub(self.plain.len()));
    }

    /// Rows written or padded so far.
    #[inline]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The validity bits of `rows` rows (at most 64) from row `start` on (a multiple of 8). A row that is not written yet
    /// has no value.
    pub fn validity_word(&self, start: usize, rows: usize) -> u64 {
        let rows = rows.min(self.rows.saturating_sub(start));
        let all = if rows < 64 { (1 << rows) - 1 } else { u64::MAX };
        if rows == 0 || self.validity.is_empty() {
            return all;
        }
        let mut word = [0; 8];
        let bits = &self.validity[start / 8..(start + rows).div_ceil(8)];
        word[..bits.len()].copy_from_slice(bits);
        u64::from_le_bytes(word) & all
    }

    /// Appends the first `length` bytes as row number `row`; the rows left out before it become NULL.
    ///
    /// `length` is below 2 GiB, because a line is.
    #[inline]
    pub fn push(&mut self, row: usize, bytes: &[u8], length: usize) {
        self.pad(row);
        if !self.validity.is_empty() {
            self.validity.resize(row / 8 + 1, 0);
            self.validity[row / 8] |= 1 << (row % 8);
        }
        self.rows = row + 1;
        self.last_start = self.plain.len();
        let header = u32::try_from(length).expect("a line is below 2 GiB").to_le_bytes();
        match bytes.first_chunk::<SHORT_VALUE_BYTES>() {
            // A copy of a fixed size needs no function call.
            Some(chunk) if length <= SHORT_VALUE_BYTES => {
                let mut value = [0; LENGTH_BYTES + SHORT_VALUE_BYTES];
                value[..LENGTH_BYTES].copy_from_slice(&header);
                value[LENGTH_BYTES..].copy_from_slice(chunk);
                self.plain.extend_from_slice(&value);
                self.plain.truncate(self.last_start + LENGTH_BYTES + length);
            }
            _ => {
                self.plain.extend_from_slice(&header);
                self.plain.extend_from_slice(&bytes[..length]);
            }
        }
    }

    /// Sets all unwritten rows up to `rows` to NULL.
    #[inline]
    pub fn pad(&mut self, rows: usize) {
        if self.rows < rows {
            self.append_nulls(rows);
        }
    }

    #[cold]
    fn append_nulls(&mut self, rows: usize) {
        if self.validity.is_empty() {
            self.validity.resize(self.rows / 8, 0xff);
            if !self.rows.is_multiple_of(8) {
                self.validity.push((1 << (self.rows % 8)) - 1);
            }
        }
        self.validity.resize(rows.div_ceil(8), 0);
        self.rows = rows;
    }

    /// Removes row `row`, which must be the last one, if it is written. A bitmap without any NULL left is kept: it is
    /// still correct.
    pub fn remove_row(&mut self, row: usize) {
        if self.rows <= row {
            return;
        }
        debug_assert_eq!(self.rows, row + 1, "only the last row can be removed");
        if self.validity.is_empty() || self.validity[row / 8] >> (row % 8) & 1 == 1 {
            self.plain.truncate(self.last_start);
        }
        self.rows = row;
        if !self.validity.is_empty() {
            self.validity.truncate(row.div_ceil(8));
            if let (Some(last), false) = (self.validity.last_mut(), row.is_multiple_of(8)) {
                *last &= (1 << (row % 8)) - 1;
            }
        }
    }

    /// The values that are not NULL, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &*self.plain;
        std::iter::from_fn(move || {
            let (value, next) = split_first_value(rest)?;
            rest = next;
            Some(value)
        })
    }
}

/// The first value and the bytes after it; None at the end.
#[inline]
pub fn split_first_value(plain: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = plain.split_first_chunk::<LENGTH_BYTES>()?;
    Some(rest.split_at(u32::from_le_bytes(*length) as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows_of(column: &ColumnValues) -> Vec<Option<&[u8]>> {
        let mut values = column.iter();
        (0..column.rows())
            .map(|row| if column.validity_word(row / 8 * 8, 8) >> (row % 8) & 1 == 1 { values.next() } else { None })
            .collect()
    }

    #[test]
    fn rows_left_out_become_null_at_every_bit_position() {
        for gap in 0..20 {
            for filled in 0..20 {
                let mut column = ColumnValues::default();
                (0..filled).for_each(|row| column.push(row, b"a", 1));
                column.push(filled + gap, b"zyxwvutsrqponmlkji", 1);
                let mut expected = vec![Some(&b"a"[..]); filled];
                expected.extend(vec![None; gap]);
                expected.push(Some(b"z"));
                assert_eq!(rows_of(&column), expected);
                column.remove_row(filled + gap);
                expected.pop();
                assert_eq!(rows_of(&column), expected);
                column.pad(filled + gap + 1);
                column.remove_row(filled + gap);
                assert_eq!(rows_of(&column), expected);
                column.push(filled + gap, b"more than sixteen bytes", 23);
                assert_eq!(rows_of(&column).last(), Some(&Some(&b"more than sixteen bytes"[..])));
            }
        }
    }
}
