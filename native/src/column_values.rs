//! One string column, filled row by row, as Parquet's plain pages have it; rows nobody wrote to become NULL when needed.

/// Bytes that are copied at once where there are so many.
const SHORT: usize = 16;
/// Bytes of a value's length, which stands before it.
pub const LENGTH: usize = size_of::<u32>();

#[derive(Debug, Default)]
pub struct Values {
    /// Every value that is not NULL, after its length (little-endian).
    pub plain: Vec<u8>,
    /// Which rows have a value, least significant bit first; empty as long as there is no NULL.
    pub present: Vec<u8>,
    rows: usize,
    /// Where the last value begins, which may have to go.
    last: usize,
}

impl Values {
    /// Room for so many bytes in all.
    pub fn reserve(&mut self, bytes: usize) {
        self.plain.reserve_exact(bytes.saturating_sub(self.plain.len()));
    }

    /// Rows written or padded so far.
    #[inline]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Which of `rows` rows (at most 64) from row `from` on (a multiple of 8) have a value, one bit each.
    pub fn present(&self, from: usize, rows: usize) -> u64 {
        let rows = rows.min(self.rows.saturating_sub(from));
        let all = if rows < 64 { (1 << rows) - 1 } else { u64::MAX };
        if rows == 0 || self.present.is_empty() {
            return all;
        }
        let mut word = [0; 8];
        let bits = &self.present[from / 8..(from + rows).div_ceil(8)];
        word[..bits.len()].copy_from_slice(bits);
        u64::from_le_bytes(word) & all
    }

    /// Appends the first `length` bytes as row number `row`; the rows left out before it become NULL.
    #[inline]
    pub fn push(&mut self, row: usize, bytes: &[u8], length: usize) {
        self.pad(row);
        if !self.present.is_empty() {
            self.present.resize(row / 8 + 1, 0);
            self.present[row / 8] |= 1 << (row % 8);
        }
        self.rows = row + 1;
        self.last = self.plain.len();
        let head = u32::try_from(length).expect("a line stays below 2 GiB").to_le_bytes();
        match bytes.first_chunk::<SHORT>() {
            // A copy of a fixed size takes no call.
            Some(chunk) if length <= SHORT => {
                let mut value = [0; LENGTH + SHORT];
                value[..LENGTH].copy_from_slice(&head);
                value[LENGTH..].copy_from_slice(chunk);
                self.plain.extend_from_slice(&value);
                self.plain.truncate(self.last + LENGTH + length);
            }
            _ => {
                self.plain.extend_from_slice(&head);
                self.plain.extend_from_slice(&bytes[..length]);
            }
        }
    }

    /// Makes the rows before `rows` NULL where nothing was written.
    #[inline]
    pub fn pad(&mut self, rows: usize) {
        if self.rows < rows {
            self.pad_with_nulls(rows);
        }
    }

    #[cold]
    fn pad_with_nulls(&mut self, rows: usize) {
        if self.present.is_empty() {
            self.present.resize(self.rows / 8, 0xff);
            if !self.rows.is_multiple_of(8) {
                self.present.push((1 << (self.rows % 8)) - 1);
            }
        }
        self.present.resize(rows.div_ceil(8), 0);
        self.rows = rows;
    }

    /// Takes back row `row`, the last one, if it is there. A bitmap that is no longer needed stays; it is right all the same.
    pub fn take_back(&mut self, row: usize) {
        if self.rows <= row {
            return;
        }
        debug_assert_eq!(self.rows, row + 1, "only the last row can be taken back");
        if self.present.is_empty() || self.present[row / 8] >> (row % 8) & 1 == 1 {
            self.plain.truncate(self.last);
        }
        self.rows = row;
        if !self.present.is_empty() {
            self.present.truncate(row.div_ceil(8));
            if let (Some(last), false) = (self.present.last_mut(), row.is_multiple_of(8)) {
                *last &= (1 << (row % 8)) - 1;
            }
        }
    }

    /// The values one after the other.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &*self.plain;
        std::iter::from_fn(move || {
            let (value, behind) = split_value(rest)?;
            rest = behind;
            Some(value)
        })
    }
}

/// The first value, and what stands behind it; None at the end.
#[inline]
pub fn split_value(plain: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = plain.split_first_chunk::<LENGTH>()?;
    Some(rest.split_at(u32::from_le_bytes(*length) as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(column: &Values) -> Vec<Option<&[u8]>> {
        let mut values = column.iter();
        (0..column.rows())
            .map(|row| if column.present(row / 8 * 8, 8) >> (row % 8) & 1 == 1 { values.next() } else { None })
            .collect()
    }

    #[test]
    fn gaps_become_null_at_every_bit_position() {
        for gap in 0..20 {
            for filled in 0..20 {
                let mut column = Values::default();
                (0..filled).for_each(|row| column.push(row, b"a", 1));
                column.push(filled + gap, b"zyxwvutsrqponmlkji", 1);
                let mut expected = vec![Some(&b"a"[..]); filled];
                expected.extend(vec![None; gap]);
                expected.push(Some(b"z"));
                assert_eq!(values(&column), expected);
                column.take_back(filled + gap);
                expected.pop();
                assert_eq!(values(&column), expected);
                column.pad(filled + gap + 1);
                column.take_back(filled + gap);
                assert_eq!(values(&column), expected);
                column.push(filled + gap, b"more than sixteen bytes", 23);
                assert_eq!(values(&column).last(), Some(&Some(&b"more than sixteen bytes"[..])));
            }
        }
    }
}
