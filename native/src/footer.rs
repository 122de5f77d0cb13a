//! What the footer of a Parquet file says about columns and chunks.

use crate::column_chunk::ChunkSummary;
use crate::page_format::PageFormat;
use parquet::basic::{Encoding, LogicalType, PageType, Repetition, Type as PhysicalType};
use parquet::data_type::ByteArray;
use parquet::errors::Result;
use parquet::file::metadata::{ColumnChunkMetaData, PageEncodingStats};
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::schema::types::{ColumnDescPtr, Type};
use std::sync::Arc;

/// About the bytes of a chunk's metadata without its name and its bounds.
const CHUNK_METADATA_BYTES: usize = 64;

/// A chunk that is in the file.
pub struct WrittenChunk {
    /// The number of the column in the batches.
    pub column: usize,
    pub offset: u64,
    pub summary: ChunkSummary,
}

/// About the bytes of a chunk's metadata in the footer.
pub fn footer_bytes(name: &str, summary: &ChunkSummary) -> u64 {
    let bounds =
        summary.bounds.as_ref().map_or(0, |(min, max)| min.lower_bound().bytes.len() + max.lower_bound().bytes.len());
    (CHUNK_METADATA_BYTES + name.len() + bounds) as u64
}

pub fn schema<'a>(names: impl Iterator<Item = &'a String>) -> Result<Type> {
    let field = |name: &String| {
        Type::primitive_type_builder(name, PhysicalType::BYTE_ARRAY)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(Some(LogicalType::String))
            .build()
            .map(Arc::new)
    };
    let fields = names.map(field).collect::<Result<_>>()?;
    Type::group_type_builder("schema").with_fields(fields).build()
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
