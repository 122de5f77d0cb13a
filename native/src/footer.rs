//! The metadata of columns and chunks in the footer of a Parquet file.

use crate::bounds::Bounds;
use crate::column_chunk::{ChunkSummary, PageSummary};
use crate::page_format::PageFormat;
use parquet::basic::{BoundaryOrder, Encoding, LogicalType, PageType, Repetition, Type as PhysicalType};
use parquet::data_type::ByteArray;
use parquet::errors::Result;
use parquet::file::metadata::page_index::{PageIndex, PageIndexBuilder};
use parquet::file::metadata::{
    ColumnChunkMetaData, ColumnIndexBuilder, OffsetIndexBuilder, PageEncodingStats, ParquetMetaData,
    ParquetMetaDataWriter,
};
use parquet::file::page_index::offset_index::OffsetIndexMetaData;
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::file::writer::TrackedWrite;
use parquet::schema::types::{ColumnDescPtr, Type};
use std::io::Write;
use std::sync::Arc;

/// Approximate bytes of a chunk's metadata without its name and bounds.
const CHUNK_METADATA_BYTES: usize = 64;
/// Approximate bytes of a page in the page index, without its bounds.
const PAGE_LOCATION_BYTES: usize = 12;
/// Approximate bytes of memory of a page in a summary and in the page index, without its bounds.
const PAGE_MEMORY: usize = 192;
/// Copies in the summary, in the page index, and in the footer, whose buffer can have twice the needed size.
const BOUND_COPIES: usize = 4;
const SKIPPED_AT_ONCE: usize = 1 << 20;

/// A chunk that is in the file.
pub struct WrittenChunk {
    /// The number of the column in the batches.
    pub column: usize,
    pub offset: u64,
    pub summary: ChunkSummary,
}

/// Approximate bytes of a chunk's metadata in the footer, and of its page index.
pub fn footer_bytes(name: &str, summary: &ChunkSummary) -> u64 {
    let pages: usize = summary.pages.iter().map(|page| PAGE_LOCATION_BYTES + bounds_length(&page.bounds)).sum();
    (CHUNK_METADATA_BYTES + name.len() + bounds_length(&summary.bounds) + pages) as u64
}

fn bounds_length(bounds: &Bounds) -> usize {
    bounds.as_ref().map_or(0, |(min, max)| min.lower_bound().bytes.len() + max.lower_bound().bytes.len())
}

/// Approximate bytes of memory for all pages of a chunk but the first, until the footer is written; the page index is
/// then in memory three times.
pub fn index_bytes(summary: &ChunkSummary) -> usize {
    let later = summary.pages.iter().skip(1);
    later.map(|page| PAGE_MEMORY + BOUND_COPIES * bounds_length(&page.bounds)).sum()
}

/// The page index of the chunks of all row groups, in the order of the columns: where each page is, and the bounds of the
/// pages of a chunk that has several. A single page has the bounds of its chunk.
pub fn page_index<'a>(
    row_groups: impl ExactSizeIterator<Item = &'a [WrittenChunk]>,
    columns: usize,
) -> Result<PageIndex> {
    let mut index = PageIndexBuilder::new(row_groups.len(), columns);
    for (group, chunks) in row_groups.enumerate() {
        for (column, chunk) in chunks.iter().enumerate() {
            index.put_offset_index(offset_index(chunk), group, column);
            if chunk.summary.pages.len() > 1
                && let Some(bounds) = column_index(&chunk.summary.pages)
            {
                index.put_column_index(bounds.build()?, group, column);
            }
        }
    }
    Ok(index.build())
}

fn offset_index(chunk: &WrittenChunk) -> OffsetIndexMetaData {
    let mut index = OffsetIndexBuilder::new();
    let mut offset = chunk.offset as usize + chunk.summary.dictionary_bytes;
    for page in &chunk.summary.pages {
        index.append_offset_and_size(offset as i64, page.compressed_bytes as i32);
        index.append_row_count(page.rows as i64);
        offset += page.compressed_bytes;
    }
    index.build()
}

/// None if a page has no upper bound.
fn column_index(pages: &[PageSummary]) -> Option<ColumnIndexBuilder> {
    let mut index = ColumnIndexBuilder::new(PhysicalType::BYTE_ARRAY);
    let mut previous: Option<(Vec<u8>, Vec<u8>)> = None;
    let (mut ascending, mut descending) = (true, true);
    for page in pages {
        let Some((min, max)) = &page.bounds else {
            index.append(true, Vec::new(), Vec::new(), page.nulls as i64, None);
            continue;
        };
        let (min, max) = (min.lower_bound().bytes, max.upper_bound()?.bytes);
        if let Some((previous_min, previous_max)) = &previous {
            ascending &= *previous_min <= min && *previous_max <= max;
            descending &= *previous_min >= min && *previous_max >= max;
        }
        index.append(false, min.clone(), max.clone(), page.nulls as i64, None);
        previous = Some((min, max));
    }
    index.set_boundary_order(match (ascending, descending) {
        (true, _) => BoundaryOrder::ASCENDING,
        (_, true) => BoundaryOrder::DESCENDING,
        _ => BoundaryOrder::UNORDERED,
    });
    Some(index)
}

/// The schema of columns, given by name and field id, if they have one.
pub fn schema<'a>(columns: impl Iterator<Item = (&'a String, Option<i32>)>) -> Result<Type> {
    let field = |(name, id): (&String, Option<i32>)| {
        Type::primitive_type_builder(name, PhysicalType::BYTE_ARRAY)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(Some(LogicalType::String))
            .with_id(id)
            .build()
            .map(Arc::new)
    };
    let fields = columns.map(field).collect::<Result<_>>()?;
    Type::group_type_builder("schema").with_fields(fields).build()
}

/// The page index and the footer of a file whose row groups end at `offset`.
pub fn serialize(metadata: &ParquetMetaData, offset: usize) -> Result<Vec<u8>> {
    let mut after_offset = AfterOffset { offset, bytes: Vec::new() };
    let mut sink = TrackedWrite::new(&mut after_offset);
    let zeros = vec![0; SKIPPED_AT_ONCE];
    while sink.bytes_written() < offset {
        let more = zeros.len().min(offset - sink.bytes_written());
        sink.write_all(&zeros[..more])?;
    }
    ParquetMetaDataWriter::new_with_tracked(sink, metadata).finish()?;
    Ok(after_offset.bytes)
}

/// Keeps the bytes after the first `offset` bytes. The crate counts the bytes from the start of the file, and drops its
/// last buffer without reporting an error, so it must not write to the file itself.
struct AfterOffset {
    offset: usize,
    bytes: Vec<u8>,
}

impl Write for AfterOffset {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let skipped = self.offset.min(bytes.len());
        self.offset -= skipped;
        self.bytes.extend_from_slice(&bytes[skipped..]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub fn chunk_metadata(
    column: &ColumnDescPtr,
    chunk: &WrittenChunk,
    format: &PageFormat,
) -> Result<ColumnChunkMetaData> {
    let WrittenChunk { offset, summary, .. } = chunk;
    let (min, max) = summary.bounds.as_ref().map(|(min, max)| (min.lower_bound(), max.upper_bound())).unzip();
    let max = max.flatten();
    let (min_is_exact, max_is_exact) = (min.as_ref().is_some_and(|b| b.exact), max.as_ref().is_some_and(|b| b.exact));
    let (min, max) = (min.map(|bound| ByteArray::from(bound.bytes)), max.map(|bound| ByteArray::from(bound.bytes)));
    let statistics = ValueStatistics::new(min, max, None, Some(summary.nulls as u64), false)
        .with_min_is_exact(min_is_exact)
        .with_max_is_exact(max_is_exact);
    let has_dictionary = summary.dictionary_bytes > 0;
    let dictionary = has_dictionary.then_some((PageType::DICTIONARY_PAGE, Encoding::PLAIN, 1));
    let data = summary.encodings.iter().map(|(encoding, pages)| (PageType::DATA_PAGE, encoding.in_parquet(), *pages));
    let pages: Vec<_> = dictionary.into_iter().chain(data).collect();
    ColumnChunkMetaData::builder(Arc::clone(column))
        .set_encodings(pages.iter().map(|(_, encoding, _)| *encoding).chain([Encoding::RLE]).collect())
        .set_page_encoding_stats(
            pages
                .into_iter()
                .map(|(page_type, encoding, count)| PageEncodingStats { page_type, encoding, count })
                .collect(),
        )
        .set_dictionary_page_offset(has_dictionary.then_some(*offset as i64))
        .set_compression_codec(format.compressor.codec())
        .set_num_values(summary.rows as i64)
        .set_data_page_offset((*offset + summary.dictionary_bytes as u64) as i64)
        .set_total_compressed_size(summary.compressed_bytes as i64)
        .set_total_uncompressed_size(summary.uncompressed_bytes as i64)
        .set_statistics(Statistics::ByteArray(statistics))
        .build()
}
