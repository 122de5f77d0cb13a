//! A column chunk of a Parquet file: data pages of optional strings, each compressed as soon as it is full.
//!
//! The `parquet` crate writes the page headers. This module writes what is inside a page (definition levels and values)
//! and finds the minimum and maximum.

use crate::bounds::{Bounds, Extremes, widen};
use crate::column_values::{ColumnValues, split_first_value};
use crate::dictionary::{Choice, Dictionary};
use crate::page_format::{PageFormat, ValueEncoding};
use crate::varint::push_varint;
use parquet::basic::Encoding;
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::errors::{ParquetError, Result};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use std::borrow::Cow;

/// A page is full when its values take this many bytes: the default of parquet-mr and Arrow.
const PAGE_BYTES: usize = 1 << 20;
/// Maximum number of rows of a page, in whole words, as parquet-mr has about 20,000: a reader that skips pages by the page
/// index reads and decodes no less than one.
const PAGE_ROWS: usize = 20_480;
/// Pages end at multiples of this many rows of a chunk: DuckDB reads as many at a time, and where two pages share them it
/// copies the values of a dictionary instead of using their numbers, which costs it up to 1.8 times the time.
const READ_ROWS: usize = 2048;
/// A page with so many bytes ends at any row.
const MAX_PAGE_BYTES: usize = 2 * PAGE_BYTES;
/// Rows that are processed together: one word of the validity bitmap.
const WORD_ROWS: usize = u64::BITS as usize;
/// Space before the values for definition levels that are a single run: they take less.
const LEVELS_SPACE: usize = 16;
/// Maximum bytes of a page header: ten numbers of a few bytes.
const PAGE_HEADER_BYTES: usize = 64;

#[derive(Default)]
pub struct ColumnChunk {
    page: OpenPage,
    /// Finished pages with their headers, each on its own: one buffer for all would be copied whenever it grows, and be
    /// twice as large as they are.
    pages: Vec<Vec<u8>>,
    summary: ChunkSummary,
    mode: Mode,
    /// Of the pages so far, also when the later ones have none.
    dictionary: Option<Box<Dictionary>>,
    /// What it has taken of the budget of all dictionaries.
    dictionary_memory: usize,
}

/// How the next page is written, if the format has dictionaries.
#[derive(Clone, Copy, Default, PartialEq)]
enum Mode {
    /// There is no value yet.
    #[default]
    Undecided,
    Dictionary,
    Values,
}

/// The metadata of a chunk in the footer.
#[derive(Clone, Default)]
pub struct ChunkSummary {
    pub rows: usize,
    pub nulls: usize,
    pub compressed_bytes: usize,
    pub uncompressed_bytes: usize,
    /// Bytes of the dictionary page, which comes first; 0 without one.
    pub dictionary_bytes: usize,
    /// Of its data pages, each once, with their number.
    pub encodings: Vec<(ValueEncoding, i32)>,
    pub bounds: Bounds,
    /// Its data pages, in order.
    pub pages: Vec<PageSummary>,
}

/// A data page in the page index.
#[derive(Clone)]
pub struct PageSummary {
    pub rows: usize,
    pub nulls: usize,
    /// With its header.
    pub compressed_bytes: usize,
    pub bounds: Bounds,
}

#[derive(Default)]
struct OpenPage {
    rows: usize,
    nulls: usize,
    /// Words of rows before the first value: they take no memory, however many there are.
    null_words: usize,
    /// One bit for each later row, set for a value, the least significant bit first; empty without a value.
    validity: Vec<u64>,
    /// `LEVELS_SPACE` bytes, then the values, each after its length; empty at first.
    plain: Vec<u8>,
    /// Of its values in the dictionary.
    numbers: Vec<u16>,
    /// Of its values in `plain`.
    bounds: Bounds,
}

impl ColumnChunk {
    /// Rows written so far.
    pub fn rows(&self) -> usize {
        self.summary.rows + self.page.rows
    }

    /// Bytes of memory of the finished pages and of the open one.
    pub fn held_bytes(&self) -> usize {
        self.summary.compressed_bytes + self.page.plain.len() + size_of::<u16>() * self.page.numbers.len()
    }

    /// Appends `rows` rows of the column. Rows that the column does not have are NULL.
    pub fn write(&mut self, column: &ColumnValues, rows: usize, format: &mut PageFormat) -> Result<()> {
        if self.mode == Mode::Undecided && !column.plain.is_empty() {
            self.decide(column, rows, format)?;
        }
        let mut extremes = None;
        // The values that are not copied to the page yet, and those of them that are not scanned yet.
        let (mut uncopied, mut unscanned) = (&*column.plain, &*column.plain);
        let (mut row, mut word, mut word_rows) = (0, 0, 0);
        while row < rows {
            if word_rows == 0 {
                word_rows = WORD_ROWS.min(rows - row);
                word = column.validity_word(row, word_rows);
            }
            let count = word_rows.min(READ_ROWS - self.rows() % READ_ROWS);
            let validity = word & (u64::MAX >> (WORD_ROWS - count));
            word = word.checked_shr(count as u32).unwrap_or(0);
            word_rows -= count;
            row += count;
            if self.mode == Mode::Dictionary {
                if let Some(rest) = self.push_numbers(unscanned, validity.count_ones(), &mut format.dictionary_budget) {
                    (uncopied, unscanned) = (rest, rest);
                    self.page.push_validity(validity, count);
                    if self.is_page_full(0) {
                        self.end_page(format)?;
                    }
                    continue;
                }
                if self.page.rows > 0 {
                    self.end_page(format)?;
                }
                self.mode = Mode::Values;
            }
            self.page.push_validity(validity, count);
            for _ in 0..validity.count_ones() {
                let (value, next) = split_first_value(unscanned).expect("a value for every bit");
                Extremes::widen(&mut extremes, value);
                unscanned = next;
            }
            let scanned_bytes = uncopied.len() - unscanned.len();
            if self.is_page_full(scanned_bytes) {
                self.page.push_values(&uncopied[..scanned_bytes]);
                uncopied = unscanned;
                widen(&mut self.page.bounds, Extremes::bounds(extremes.take()));
                self.end_page(format)?;
            }
        }
        if !unscanned.is_empty() {
            return Err(ParquetError::General("a column has more values than rows that are not NULL".into()));
        }
        if self.mode != Mode::Dictionary {
            self.page.push_values(uncopied);
        }
        widen(&mut self.page.bounds, Extremes::bounds(extremes));
        Ok(())
    }

    /// Whether the open page ends here; `more`: bytes of values that it has yet to take.
    fn is_page_full(&self, more: usize) -> bool {
        let bytes = self.page.plain.len() + more;
        bytes >= LEVELS_SPACE + MAX_PAGE_BYTES
            || (self.rows().is_multiple_of(READ_ROWS)
                && (bytes >= LEVELS_SPACE + PAGE_BYTES || self.page.is_full_of_rows()))
    }

    /// A dictionary, if the first values of the chunk are few different ones.
    fn decide(&mut self, column: &ColumnValues, rows: usize, format: &mut PageFormat) -> Result<()> {
        self.mode = Mode::Values;
        match Dictionary::choose(column, rows, |values| values * format.batches_in_group) {
            Choice::Plain => return Ok(()),
            Choice::Dictionary => {}
            Choice::Trial(sample) => {
                let Some((values, numbers)) = Dictionary::trial(column, sample) else { return Ok(()) };
                if format.compressor.compress(&numbers)?.len() > format.compressor.compress(values)?.len() {
                    return Ok(());
                }
            }
        }
        self.mode = Mode::Dictionary;
        self.dictionary = Some(Box::new(Dictionary::new()));
        Ok(())
    }

    /// Appends the numbers of the first `count` values and returns the rest; None, and no number, if the dictionary is
    /// full or all dictionaries of the file take too much memory.
    #[inline]
    fn push_numbers<'a>(&mut self, mut values: &'a [u8], count: u32, budget: &mut usize) -> Option<&'a [u8]> {
        let dictionary = self.dictionary.as_mut()?;
        let memory = dictionary.memory();
        let numbers = &mut self.page.numbers;
        let before = numbers.len();
        numbers.reserve(WORD_ROWS);
        for _ in 0..count {
            let (value, next) = split_first_value(values).expect("a value for every bit");
            let Some(number) = dictionary.number_of(value) else {
                numbers.truncate(before);
                return None;
            };
            numbers.push(number);
            values = next;
        }
        let more = dictionary.memory() - memory;
        if more > *budget {
            numbers.truncate(before);
            return None;
        }
        *budget -= more;
        self.dictionary_memory += more;
        Some(values)
    }

    /// Ends the chunk: its pages with their headers, and its metadata. The next chunk can begin.
    pub fn take(&mut self, format: &mut PageFormat) -> Result<(Vec<Vec<u8>>, ChunkSummary)> {
        if self.page.rows > 0 {
            self.end_page(format)?;
        }
        let mut pages = std::mem::take(&mut self.pages);
        let mut summary = std::mem::take(&mut self.summary);
        self.mode = Mode::default();
        if let Some(dictionary) = self.dictionary.take() {
            format.dictionary_budget += std::mem::take(&mut self.dictionary_memory);
            let page = Page::DictionaryPage {
                buf: format.compressor.compress(&dictionary.plain)?.into(),
                num_values: u32::try_from(dictionary.len()).expect("a dictionary is small"),
                encoding: Encoding::PLAIN,
                is_sorted: false,
            };
            let (page, uncompressed_bytes) = with_header(CompressedPage::new(page, dictionary.plain.len()))?;
            summary.uncompressed_bytes += uncompressed_bytes;
            summary.dictionary_bytes = page.len();
            summary.compressed_bytes += page.len();
            pages.insert(0, page);
        }
        // The largest page of each column would otherwise be kept, even if they were full one after the other.
        self.page = OpenPage::default();
        Ok((pages, summary))
    }

    fn end_page(&mut self, format: &mut PageFormat) -> Result<()> {
        let rows = u32::try_from(self.page.rows).expect("a file has fewer rows");
        let encoding = match self.mode {
            Mode::Dictionary => ValueEncoding::Dictionary,
            Mode::Undecided | Mode::Values => ValueEncoding::Plain,
        };
        let dictionary = self.dictionary.as_deref().filter(|_| encoding == ValueEncoding::Dictionary);
        let bounds = match dictionary {
            Some(dictionary) => dictionary.bounds(&self.page.numbers),
            None => self.page.bounds.take(),
        };
        let encoded = self.page.encode(dictionary);
        let page = Page::DataPage {
            buf: format.compressor.compress(&encoded)?.into(),
            num_values: rows,
            encoding: encoding.in_parquet(),
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let (page, uncompressed_bytes) = with_header(CompressedPage::new(page, encoded.len()))?;
        match self.summary.encodings.iter_mut().find(|(known, _)| *known == encoding) {
            Some((_, pages)) => *pages += 1,
            None => self.summary.encodings.push((encoding, 1)),
        }
        self.summary.rows += self.page.rows;
        self.summary.nulls += self.page.nulls;
        self.summary.uncompressed_bytes += uncompressed_bytes;
        self.summary.pages.push(PageSummary {
            rows: self.page.rows,
            nulls: self.page.nulls,
            compressed_bytes: page.len(),
            bounds: bounds.clone(),
        });
        self.summary.compressed_bytes += page.len();
        self.pages.push(page);
        widen(&mut self.summary.bounds, bounds);
        self.page.clear();
        Ok(())
    }
}

/// The bytes of a page in the file, and their number before compression.
fn with_header(page: CompressedPage) -> Result<(Vec<u8>, usize)> {
    let mut bytes = Vec::with_capacity(page.compressed_size() + PAGE_HEADER_BYTES);
    let mut sink = TrackedWrite::new(&mut bytes);
    let written = SerializedPageWriter::new(&mut sink).write_page(page)?;
    sink.into_inner()?;
    Ok((bytes, written.uncompressed_size))
}

impl OpenPage {
    fn push_validity(&mut self, word: u64, rows: usize) {
        let used_bits = self.rows % WORD_ROWS;
        if self.validity.is_empty() {
            if word == 0 {
                self.rows += rows;
                self.nulls += rows;
                return;
            }
            self.null_words = self.rows / WORD_ROWS;
            if used_bits > 0 {
                self.validity.push(0);
            }
        }
        match self.validity.last_mut() {
            Some(last) if used_bits > 0 => {
                *last |= word << used_bits;
                if used_bits + rows > WORD_ROWS {
                    self.validity.push(word >> (WORD_ROWS - used_bits));
                }
            }
            _ => self.validity.push(word),
        }
        self.rows += rows;
        self.nulls += rows - word.count_ones() as usize;
    }

    /// Rows without a value cost no byte: a reader that skips them gains nothing from more pages.
    fn is_full_of_rows(&self) -> bool {
        self.rows > PAGE_ROWS - READ_ROWS && self.nulls < self.rows
    }

    fn push_values(&mut self, values: &[u8]) {
        if self.plain.is_empty() {
            self.plain.resize(LEVELS_SPACE, 0);
        }
        self.plain.extend_from_slice(values);
    }

    /// The page before compression: the length of the definition levels, the levels, the values.
    ///
    /// Levels are in Parquet's RLE/bit-packing hybrid: a single run if all rows or none have a value, else bit-packed.
    fn encode(&mut self, dictionary: Option<&Dictionary>) -> Cow<'_, [u8]> {
        let mut levels = vec![0; size_of::<u32>()];
        if self.nulls == 0 || self.nulls == self.rows {
            push_varint(&mut levels, self.rows << 1);
            levels.push(u8::from(self.nulls == 0));
        } else {
            let bytes = self.rows.div_ceil(8);
            push_varint(&mut levels, bytes << 1 | 1);
            let end = levels.len() + bytes;
            levels.resize(levels.len() + self.null_words * size_of::<u64>(), 0);
            levels.extend(self.validity.iter().flat_map(|word| word.to_le_bytes()));
            levels.truncate(end);
        }
        let length = u32::try_from(levels.len() - size_of::<u32>()).expect("one bit for each of a page's rows");
        levels[..size_of::<u32>()].copy_from_slice(&length.to_le_bytes());
        if let Some(dictionary) = dictionary {
            dictionary.encode(&self.numbers, &mut levels);
            return Cow::Owned(levels);
        }
        // A single run fits into the space before the values. Longer levels move the values.
        let start = LEVELS_SPACE.saturating_sub(levels.len());
        self.plain.splice(start..LEVELS_SPACE, levels);
        Cow::Borrowed(&self.plain[start..])
    }

    fn clear(&mut self) {
        self.rows = 0;
        self.nulls = 0;
        self.null_words = 0;
        self.validity.clear();
        self.plain.clear();
        self.numbers.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page_format::PageCompressor;

    #[test]
    fn rows_before_the_first_value_of_a_page_take_no_memory() {
        let mut format = PageFormat::new(PageCompressor::None);
        let (mut chunk, mut column) = (ColumnChunk::default(), ColumnValues::default());
        column.push(1_000_003, b"a", 1);
        chunk.write(&column, 1_000_004, &mut format).unwrap();
        assert!((chunk.page.rows, chunk.page.nulls) == (1_000_004, 1_000_003) && chunk.page.validity.len() == 1);
        let last_byte = *chunk.page.encode(None)[..].split_at(4 + 3 + 125_001).0.last().unwrap();
        assert_eq!(last_byte, 1 << 3);
    }
}
