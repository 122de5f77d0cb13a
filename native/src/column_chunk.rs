//! A column chunk of a Parquet file: plain pages of optional strings, each compressed as soon as it is full.
//!
//! Page headers are the `parquet` crate's. Ours are the inside of a page (which rows have a value, the values) and the
//! smallest and largest value.

use crate::column_values::{Values, split_value};
use crate::page_compressor::Codec;
use parquet::basic::Encoding;
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::errors::{ParquetError, Result};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};

/// A page ends when its values take so many bytes ...
const PAGE_BYTES: usize = 1 << 20;
/// ... or it has so many rows.
const PAGE_ROWS: usize = 1 << 20;
/// Rows that are looked at together: one word of the bitmap.
const WORD: usize = u64::BITS as usize;
/// Before the values of a page, for its definition levels where they are one run: length, two bytes or more.
const ROOM: usize = 16;
/// A chunk whose smallest or largest value is longer tells neither: a footer of many megabytes helps nobody.
const MAX_BOUND: usize = 4096;

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
    /// `ROOM`, then the values, each after its length; empty at first.
    plain: Vec<u8>,
}

/// The smallest and the largest of some values, and their first bytes as numbers, which nearly always tell enough.
struct Bounds<'a> {
    least: (u64, &'a [u8]),
    most: (u64, &'a [u8]),
}

impl ColumnChunk {
    /// Rows so far.
    pub fn rows(&self) -> usize {
        self.summary.rows + self.page.rows
    }

    /// Appends `rows` rows of the column; those it does not have are NULL.
    pub fn write(&mut self, column: &Values, rows: usize, codec: &mut Codec) -> Result<()> {
        let mut bounds = None;
        // Not yet in the page, and not yet looked at.
        let (mut pending, mut rest) = (&*column.plain, &*column.plain);
        for row in (0..rows).step_by(WORD) {
            let count = WORD.min(rows - row);
            let present = column.present(row, count);
            self.page.push_present(present, count);
            for _ in 0..present.count_ones() {
                let (value, behind) = split_value(rest).expect("a value for every bit");
                Bounds::widen(&mut bounds, value);
                rest = behind;
            }
            let looked_at = pending.len() - rest.len();
            if self.page.plain.len() + looked_at >= ROOM + PAGE_BYTES || self.page.rows >= PAGE_ROWS {
                self.page.push_values(&pending[..looked_at]);
                pending = rest;
                self.end_page(codec)?;
            }
        }
        if !rest.is_empty() {
            return Err(ParquetError::General("a column has more values than rows that have one".into()));
        }
        self.page.push_values(pending);
        if let Some(Bounds { least, most }) = bounds {
            self.summary.widen(least.1, most.1);
        }
        Ok(())
    }

    /// Ends the chunk: its pages one after the other, and what the footer is to say of them.
    pub fn take(&mut self, codec: &mut Codec) -> Result<(Vec<u8>, Summary)> {
        if self.page.rows > 0 {
            self.end_page(codec)?;
        }
        let pages = std::mem::take(&mut self.pages);
        let mut summary = std::mem::take(&mut self.summary);
        summary.compressed = pages.len();
        summary.bounds.take_if(|(least, most)| least.len().max(most.len()) > MAX_BOUND);
        Ok((pages, summary))
    }

    fn end_page(&mut self, codec: &mut Codec) -> Result<()> {
        let rows = u32::try_from(self.page.rows).expect("a page has few rows");
        let plain = self.page.encode();
        let page = Page::DataPage {
            buf: codec.compress(plain)?.into(),
            num_values: rows,
            encoding: Encoding::PLAIN,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let page = CompressedPage::new(page, plain.len());
        let mut sink = TrackedWrite::new(&mut self.pages);
        let written = SerializedPageWriter::new(&mut sink).write_page(page)?;
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

impl<'a> Bounds<'a> {
    #[inline]
    fn widen(bounds: &mut Option<Self>, value: &'a [u8]) {
        let next = (first_bytes(value), value);
        match bounds {
            None => *bounds = Some(Bounds { least: next, most: next }),
            Some(bounds) if next < bounds.least => bounds.least = next,
            Some(bounds) if next > bounds.most => bounds.most = next,
            Some(_) => {}
        }
    }
}

/// The first eight bytes as a number that sorts as they do; of a shorter value, as if zeros followed.
#[inline]
fn first_bytes(value: &[u8]) -> u64 {
    match value.first_chunk() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => value.iter().enumerate().fold(0, |number, (at, &byte)| number | u64::from(byte) << (56 - 8 * at)),
    }
}

impl OpenPage {
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

    fn push_values(&mut self, values: &[u8]) {
        if self.plain.is_empty() {
            self.plain.resize(ROOM, 0);
        }
        self.plain.extend_from_slice(values);
    }

    /// The page as it is to be compressed: definition levels after their length, values.
    fn encode(&mut self) -> &[u8] {
        let mut levels = vec![0; size_of::<u32>()];
        if self.nulls == 0 || self.nulls == self.rows {
            push_varint(&mut levels, self.rows << 1);
            levels.push(u8::from(self.nulls == 0));
        } else {
            let bytes = self.rows.div_ceil(8);
            push_varint(&mut levels, bytes << 1 | 1);
            let end = levels.len() + bytes;
            levels.extend(self.present.iter().flat_map(|word| word.to_le_bytes()));
            levels.truncate(end);
        }
        let length = u32::try_from(levels.len() - size_of::<u32>()).expect("a page has few rows");
        levels[..size_of::<u32>()].copy_from_slice(&length.to_le_bytes());
        // Into the room before the values, of which there may be too little.
        let from = ROOM.saturating_sub(levels.len());
        self.plain.splice(from..ROOM, levels);
        &self.plain[from..]
    }

    fn clear(&mut self) {
        self.rows = 0;
        self.nulls = 0;
        self.present.clear();
        self.plain.clear();
    }
}

/// Seven bits in each byte, the lowest first.
fn push_varint(bytes: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}
