//! A column chunk of a Parquet file: pages of optional strings, each compressed as soon as it is full.
//!
//! Page headers are the `parquet` crate's. Ours are the inside of a page (which rows have a value, lengths, bytes) and
//! the smallest and largest value.

use crate::column::Buffers;
use crate::delta_packing::{pack_differences, push_varint};
use crate::page_format::{Layout, PageFormat};
use parquet::basic::Encoding;
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::errors::Result;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};

/// A page ends when its values take so many bytes ...
const PAGE_BYTES: usize = 1 << 20;
/// ... or it has so many rows.
const PAGE_ROWS: usize = 1 << 20;
/// Rows that are looked at together: one word of the bitmap.
const WORD: usize = u64::BITS as usize;
/// A chunk whose smallest or largest value is longer tells neither: a footer of many megabytes helps nobody.
const LONGEST_BOUND: usize = 4096;

#[derive(Default)]
pub struct ColumnChunk {
    page: OpenPage,
    /// Finished pages with their headers.
    pages: Vec<u8>,
    summary: Summary,
}

/// What the footer says of a chunk.
#[derive(Clone, Default)]
pub struct Summary {
    pub rows: usize,
    pub nulls: usize,
    pub compressed: usize,
    pub uncompressed: usize,
    /// The smallest and the largest value.
    pub bounds: Option<(Vec<u8>, Vec<u8>)>,
}

#[derive(Default)]
struct OpenPage {
    rows: usize,
    nulls: usize,
    /// Which rows have a value, one bit each, least significant first.
    present: Vec<u64>,
    /// Of each value, unless they stand among the values.
    lengths: Vec<i32>,
    values: Vec<u8>,
}

impl ColumnChunk {
    /// Rows so far.
    pub fn rows(&self) -> usize {
        self.summary.rows + self.page.rows
    }

    /// Appends `rows` rows of the column; those it does not have are NULL.
    pub fn write(&mut self, column: &Buffers, rows: usize, format: &mut PageFormat) -> Result<()> {
        let mut bounds = None;
        for row in (0..rows).step_by(WORD) {
            self.page.append(column, row, WORD.min(rows - row), format.layout, &mut bounds);
            if self.page.values.len() >= PAGE_BYTES || self.page.rows >= PAGE_ROWS {
                self.end_page(format)?;
            }
        }
        if let Some((least, most)) = bounds {
            self.summary.widen(least, most);
        }
        Ok(())
    }

    /// Ends the chunk: its pages one after the other, and what the footer is to say of them.
    pub fn take(&mut self, format: &mut PageFormat) -> Result<(Vec<u8>, Summary)> {
        if self.page.rows > 0 {
            self.end_page(format)?;
        }
        let pages = std::mem::take(&mut self.pages);
        let mut summary = std::mem::take(&mut self.summary);
        summary.compressed = pages.len();
        summary.bounds.take_if(|(least, most)| least.len().max(most.len()) > LONGEST_BOUND);
        Ok((pages, summary))
    }

    fn end_page(&mut self, format: &mut PageFormat) -> Result<()> {
        let plain = self.page.encode(format.layout);
        let page = Page::DataPage {
            buf: format.compress(&plain)?.into(),
            num_values: u32::try_from(self.page.rows).expect("a page has few rows"),
            encoding: format.layout.encoding(),
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let mut sink = TrackedWrite::new(&mut self.pages);
        let written = SerializedPageWriter::new(&mut sink).write_page(CompressedPage::new(page, plain.len()))?;
        sink.into_inner()?;
        self.summary.rows += self.page.rows;
        self.summary.nulls += self.page.nulls;
        self.summary.uncompressed += written.uncompressed_size;
        self.page.clear();
        Ok(())
    }
}

impl Summary {
    fn widen(&mut self, least: &[u8], most: &[u8]) {
        let (smallest, largest) = self.bounds.get_or_insert_with(|| (least.to_vec(), most.to_vec()));
        if least < smallest.as_slice() {
            *smallest = least.to_vec();
        }
        if most > largest.as_slice() {
            *largest = most.to_vec();
        }
    }
}

impl OpenPage {
    /// At most 64 rows, from a row on whose number is a multiple of 64.
    fn append<'a>(
        &mut self,
        column: &'a Buffers,
        from: usize,
        rows: usize,
        layout: Layout,
        bounds: &mut Option<(&'a [u8], &'a [u8])>,
    ) {
        let mut present = column.present(from, rows);
        self.push_present(present, rows);
        while present != 0 {
            let row = from + present.trailing_zeros() as usize;
            present &= present - 1;
            let (start, end) = (column.offsets[row], column.offsets[row + 1]);
            let value = &column.data[start as usize..end as usize];
            match layout {
                Layout::DeltaLength => self.lengths.push(end - start),
                Layout::Plain => {
                    self.values.extend_from_slice(&(end - start).to_le_bytes());
                    self.values.extend_from_slice(value);
                }
            }
            match bounds {
                None => *bounds = Some((value, value)),
                Some((least, _)) if value < *least => *least = value,
                Some((_, most)) if value > *most => *most = value,
                Some(_) => {}
            }
        }
        if layout == Layout::DeltaLength {
            self.values.extend_from_slice(column.bytes(from, rows));
        }
    }

    fn push_present(&mut self, word: u64, rows: usize) {
        let filled = self.rows % WORD;
        match self.present.last_mut() {
            Some(last) if filled > 0 => {
                *last |= word << filled;
                if filled + rows > WORD {
                    self.present.push(word >> (WORD - filled));
                }
            }
            _ => self.present.push(word),
        }
        self.rows += rows;
        self.nulls += rows - word.count_ones() as usize;
    }

    fn encode(&self, layout: Layout) -> Vec<u8> {
        let most = self.values.len() + size_of_val(&*self.lengths) + size_of_val(&*self.present) + 64;
        let mut page = Vec::with_capacity(most);
        self.encode_present(&mut page);
        if layout == Layout::DeltaLength {
            pack_differences(&self.lengths, &mut page);
        }
        page.extend_from_slice(&self.values);
        page
    }

    /// Definition levels, after their length: one run if all rows have a value or none has, else a bit for each.
    fn encode_present(&self, page: &mut Vec<u8>) {
        const LENGTH: usize = size_of::<u32>();
        page.extend_from_slice(&[0; LENGTH]);
        if self.nulls == 0 || self.nulls == self.rows {
            push_varint(page, (self.rows as u64) << 1);
            page.push(u8::from(self.nulls == 0));
        } else {
            let bytes = self.rows.div_ceil(8);
            push_varint(page, (bytes as u64) << 1 | 1);
            let end = page.len() + bytes;
            page.extend(self.present.iter().flat_map(|word| word.to_le_bytes()));
            page.truncate(end);
        }
        let length = u32::try_from(page.len() - LENGTH).expect("a page has few rows");
        page[..LENGTH].copy_from_slice(&length.to_le_bytes());
    }

    fn clear(&mut self) {
        self.rows = 0;
        self.nulls = 0;
        self.present.clear();
        self.lengths.clear();
        self.values.clear();
    }
}
