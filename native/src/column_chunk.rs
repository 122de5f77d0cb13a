//! A column chunk of a Parquet file: data pages of optional strings, each compressed as soon as it is full.
//!
//! The `parquet` crate writes the page headers. This module writes what is inside a page (definition levels and values)
//! and finds the minimum and maximum.

use crate::bounds::Prefix;
use crate::column_values::{ColumnValues, split_first_value};
use crate::delta_lengths;
use crate::page_format::{PageFormat, ValueEncoding};
use crate::varint::push_varint;
use parquet::basic::Encoding;
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::errors::{ParquetError, Result};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use std::borrow::Cow;

/// A page is full when its values take this many bytes: the default of parquet-mr and Arrow.
const PAGE_BYTES: usize = 1 << 20;
/// Maximum number of rows of a page, rounded up to whole words: a page without values holds a bit for each row.
const PAGE_ROWS: usize = 1 << 17;
/// Rows that are processed together: one word of the validity bitmap.
const WORD_ROWS: usize = u64::BITS as usize;
/// Space before the values for definition levels that are a single run: they take less.
const LEVELS_SPACE: usize = 16;

#[derive(Default)]
pub struct ColumnChunk {
    page: OpenPage,
    /// Finished pages with their headers.
    pages: Vec<u8>,
    summary: ChunkSummary,
}

/// The metadata of a chunk in the footer.
#[derive(Clone, Default)]
pub struct ChunkSummary {
    pub rows: usize,
    pub nulls: usize,
    pub compressed_bytes: usize,
    pub uncompressed_bytes: usize,
    /// Of its pages, each once.
    pub encodings: Vec<ValueEncoding>,
    /// The first bytes of the minimum and of the maximum value; None if there is no value.
    pub bounds: Option<(Prefix, Prefix)>,
}

#[derive(Default)]
struct OpenPage {
    rows: usize,
    nulls: usize,
    /// One bit for each row, set for a value, the least significant bit first.
    validity: Vec<u64>,
    /// `LEVELS_SPACE` bytes, then the values, each after its length; empty at first.
    plain: Vec<u8>,
}

/// The minimum and maximum of some values, each after its first bytes as a number: comparing numbers is nearly always
/// enough.
struct Bounds<'a> {
    min: (u64, &'a [u8]),
    max: (u64, &'a [u8]),
}

impl ColumnChunk {
    /// Rows written so far.
    pub fn rows(&self) -> usize {
        self.summary.rows + self.page.rows
    }

    /// Appends `rows` rows of the column. Rows that the column does not have are NULL.
    pub fn write(&mut self, column: &ColumnValues, rows: usize, format: &mut PageFormat) -> Result<()> {
        let mut bounds = None;
        // The values that are not copied to the page yet, and those of them that are not scanned yet.
        let (mut uncopied, mut unscanned) = (&*column.plain, &*column.plain);
        for row in (0..rows).step_by(WORD_ROWS) {
            let count = WORD_ROWS.min(rows - row);
            let validity = column.validity_word(row, count);
            self.page.push_validity(validity, count);
            for _ in 0..validity.count_ones() {
                let (value, next) = split_first_value(unscanned).expect("a value for every bit");
                Bounds::widen(&mut bounds, value);
                unscanned = next;
            }
            let scanned_bytes = uncopied.len() - unscanned.len();
            if self.page.plain.len() + scanned_bytes >= LEVELS_SPACE + PAGE_BYTES || self.page.rows >= PAGE_ROWS {
                self.page.push_values(&uncopied[..scanned_bytes]);
                uncopied = unscanned;
                self.end_page(format)?;
            }
        }
        if !unscanned.is_empty() {
            return Err(ParquetError::General("a column has more values than rows that are not NULL".into()));
        }
        self.page.push_values(uncopied);
        if let Some(Bounds { min, max }) = bounds {
            self.summary.widen(Prefix::of(min.1), Prefix::of(max.1));
        }
        Ok(())
    }

    /// Ends the chunk: its pages with their headers, and its metadata. The next chunk can begin.
    pub fn take(&mut self, format: &mut PageFormat) -> Result<(Vec<u8>, ChunkSummary)> {
        if self.page.rows > 0 {
            self.end_page(format)?;
        }
        let pages = std::mem::take(&mut self.pages);
        let mut summary = std::mem::take(&mut self.summary);
        summary.compressed_bytes = pages.len();
        // The largest page of each column would otherwise be kept, even if they were full one after the other.
        self.page = OpenPage::default();
        Ok((pages, summary))
    }

    fn end_page(&mut self, format: &mut PageFormat) -> Result<()> {
        let rows = u32::try_from(self.page.rows).expect("a page has at most PAGE_ROWS rows and one word");
        // Some readers fail at delta-encoded lengths of no values, as Iceberg's did: docs/adr/0006-plain-encoding.md.
        let has_values = self.page.nulls < self.page.rows;
        let encoding = if has_values { format.encoding } else { ValueEncoding::Plain };
        let encoded = self.page.encode(encoding);
        let page = Page::DataPage {
            buf: format.compressor.compress(&encoded)?.into(),
            num_values: rows,
            encoding: encoding.in_parquet(),
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let page = CompressedPage::new(page, encoded.len());
        let mut sink = TrackedWrite::new(&mut self.pages);
        let written = SerializedPageWriter::new(&mut sink).write_page(page)?;
        sink.into_inner()?;
        if !self.summary.encodings.contains(&encoding) {
            self.summary.encodings.push(encoding);
        }
        self.summary.rows += self.page.rows;
        self.summary.nulls += self.page.nulls;
        self.summary.uncompressed_bytes += written.uncompressed_size;
        self.page.clear();
        Ok(())
    }
}

impl ChunkSummary {
    fn widen(&mut self, min: Prefix, max: Prefix) {
        self.bounds = Some(match self.bounds.take() {
            None => (min, max),
            Some((chunk_min, chunk_max)) => (min.min(chunk_min), max.max(chunk_max)),
        });
    }
}

impl<'a> Bounds<'a> {
    #[inline]
    fn widen(bounds: &mut Option<Self>, value: &'a [u8]) {
        let value = (first_bytes(value), value);
        match bounds {
            None => *bounds = Some(Bounds { min: value, max: value }),
            Some(bounds) if value < bounds.min => bounds.min = value,
            Some(bounds) if value > bounds.max => bounds.max = value,
            Some(_) => {}
        }
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

impl OpenPage {
    fn push_validity(&mut self, word: u64, rows: usize) {
        let used_bits = self.rows % WORD_ROWS;
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

    fn push_values(&mut self, values: &[u8]) {
        if self.plain.is_empty() {
            self.plain.resize(LEVELS_SPACE, 0);
        }
        self.plain.extend_from_slice(values);
    }

    /// The page before compression: the length of the definition levels, the levels, the values.
    ///
    /// Levels are in Parquet's RLE/bit-packing hybrid: a single run if all rows or none have a value, else bit-packed.
    fn encode(&mut self, encoding: ValueEncoding) -> Cow<'_, [u8]> {
        let mut levels = vec![0; size_of::<u32>()];
        if self.nulls == 0 || self.nulls == self.rows {
            push_varint(&mut levels, self.rows << 1);
            levels.push(u8::from(self.nulls == 0));
        } else {
            let bytes = self.rows.div_ceil(8);
            push_varint(&mut levels, bytes << 1 | 1);
            let end = levels.len() + bytes;
            levels.extend(self.validity.iter().flat_map(|word| word.to_le_bytes()));
            levels.truncate(end);
        }
        let length = u32::try_from(levels.len() - size_of::<u32>()).expect("one bit for each of a page's rows");
        levels[..size_of::<u32>()].copy_from_slice(&length.to_le_bytes());
        if encoding == ValueEncoding::DeltaLength {
            delta_lengths::encode(&self.plain[LEVELS_SPACE..], &mut levels);
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
        self.validity.clear();
        self.plain.clear();
    }
}
