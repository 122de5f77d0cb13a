//! The Arrow buffers of one string column, filled row by row; rows nobody wrote to become NULL when needed.

/// Bytes that are copied at once where there are so many.
const SHORT: usize = 16;

#[derive(Debug)]
pub struct Buffers {
    pub data: Vec<u8>,
    pub offsets: Vec<i32>,
    /// Arrow's bitmap, least significant bit first; empty as long as there is no NULL.
    pub validity: Vec<u8>,
}

impl Default for Buffers {
    fn default() -> Self {
        Self { data: Vec::new(), offsets: vec![0], validity: Vec::new() }
    }
}

impl Buffers {
    /// Room for so many rows and bytes in all.
    pub fn reserve(&mut self, rows: usize, bytes: usize) {
        self.offsets.reserve_exact((rows + 1).saturating_sub(self.offsets.len()));
        self.data.reserve_exact(bytes.saturating_sub(self.data.len()));
    }

    /// Rows written or padded so far.
    pub fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Which of `rows` rows (at most 64) from row `from` on (a multiple of 8) have a value, one bit each.
    pub fn present(&self, from: usize, rows: usize) -> u64 {
        let rows = rows.min(self.rows().saturating_sub(from));
        let all = if rows < 64 { (1 << rows) - 1 } else { u64::MAX };
        if rows == 0 || self.validity.is_empty() {
            return all;
        }
        let mut word = [0; 8];
        let bits = &self.validity[from / 8..(from + rows).div_ceil(8)];
        word[..bits.len()].copy_from_slice(bits);
        u64::from_le_bytes(word) & all
    }

    /// The values of `rows` rows from row `from` on, one after the other.
    pub fn bytes(&self, from: usize, rows: usize) -> &[u8] {
        let offset = |row: usize| self.offsets[row.min(self.rows())] as usize;
        &self.data[offset(from)..offset(from + rows)]
    }

    /// Appends the first `length` bytes as row number `row`; the rows left out before it become NULL.
    #[inline]
    pub fn push(&mut self, row: usize, bytes: &[u8], length: usize) {
        self.pad(row);
        if !self.validity.is_empty() {
            self.validity.resize(row / 8 + 1, 0);
            self.validity[row / 8] |= 1 << (row % 8);
        }
        match bytes.first_chunk::<SHORT>() {
            // A copy of a fixed size takes no call.
            Some(chunk) if length <= SHORT => {
                self.data.extend_from_slice(chunk);
                self.data.truncate(self.data.len() - SHORT + length);
            }
            _ => self.data.extend_from_slice(&bytes[..length]),
        }
        self.offsets.push(end_offset(&self.data));
    }

    /// Makes the rows before `rows` NULL where nothing was written.
    #[inline]
    pub fn pad(&mut self, rows: usize) {
        if self.rows() < rows {
            self.pad_with_nulls(rows);
        }
    }

    #[cold]
    fn pad_with_nulls(&mut self, rows: usize) {
        let filled = self.rows();
        if self.validity.is_empty() {
            self.validity.resize(filled / 8, 0xff);
            if !filled.is_multiple_of(8) {
                self.validity.push((1 << (filled % 8)) - 1);
            }
        }
        self.validity.resize(rows.div_ceil(8), 0);
        self.offsets.resize(rows + 1, end_offset(&self.data));
    }

    /// Takes back everything from row `row` on. A bitmap that is no longer needed stays; it is right all the same.
    pub fn truncate(&mut self, row: usize) {
        if self.rows() <= row {
            return;
        }
        self.offsets.truncate(row + 1);
        self.data.truncate(usize::try_from(self.offsets[row]).unwrap_or(0));
        if !self.validity.is_empty() {
            self.validity.truncate(row.div_ceil(8));
            if let (Some(last), false) = (self.validity.last_mut(), row.is_multiple_of(8)) {
                *last &= (1 << (row % 8)) - 1;
            }
        }
    }
}

/// The table flushes long before a column reaches 2 GiB (the constructor of the reader sees to it).
fn end_offset(data: &[u8]) -> i32 {
    i32::try_from(data.len()).expect("a column stays below 2 GiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(buffers: &Buffers) -> Vec<Option<&[u8]>> {
        (0..buffers.rows())
            .map(|row| {
                let valid = buffers.validity.is_empty() || buffers.validity[row / 8] >> (row % 8) & 1 == 1;
                let (from, to) = (buffers.offsets[row] as usize, buffers.offsets[row + 1] as usize);
                valid.then(|| &buffers.data[from..to])
            })
            .collect()
    }

    #[test]
    fn gaps_become_null_at_every_bit_position() {
        for gap in 0..20 {
            for filled in 0..20 {
                let mut buffers = Buffers::default();
                (0..filled).for_each(|row| buffers.push(row, b"a", 1));
                buffers.push(filled + gap, b"zyxwvutsrqponmlkji", 1);
                buffers.pad(filled + gap + 4);
                let mut expected = vec![Some(&b"a"[..]); filled];
                expected.extend(vec![None; gap]);
                expected.push(Some(b"z"));
                expected.extend(vec![None; 3]);
                assert_eq!(values(&buffers), expected);
                buffers.truncate(filled + gap);
                expected.truncate(filled + gap);
                assert_eq!(values(&buffers), expected);
                buffers.push(filled + gap, b"again", 5);
                assert_eq!(values(&buffers).last(), Some(&Some(&b"again"[..])));
            }
        }
    }
}
