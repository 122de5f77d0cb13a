//! A Parquet file of optional string columns, to which columns can be added until it is closed.
//!
//! A column without a value in the whole file is left out, but for the system columns: known columns that a file does not
//! have cost nothing. A row group that ended before the first value of a column gets its chunk of this column, all NULL,
//! at the end of the file.

use crate::column_chunk::ColumnChunk;
use crate::column_values::ColumnValues;
use crate::footer::{WrittenChunk, chunk_metadata, footer_bytes, index_bytes, page_index, schema, serialize};
use crate::names;
use crate::page_format::PageFormat;
use crate::table::Batch;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{FileMetaData, KeyValue, ParquetMetaDataBuilder, RowGroupMetaData};
use parquet::schema::types::SchemaDescriptor;
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

const MAGIC: &[u8] = b"PAR1";
const FORMAT_VERSION: i32 = 2;
/// Bytes of a row group before encoding, as the settings have them by default.
const ROW_GROUP_BYTES: usize = 128 << 20;
const CREATED_BY: &str = concat!("ndjson-arrow version ", env!("CARGO_PKG_VERSION"));

pub struct ParquetFile {
    file: BufWriter<File>,
    format: PageFormat,
    /// The columns of the batches.
    names: Vec<String>,
    /// The open row group: for each column its chunk, or None as long as the file has no value of it; rows, and bytes
    /// before encoding.
    open_chunks: Vec<Option<Box<ColumnChunk>>>,
    open_rows: usize,
    open_bytes: usize,
    row_groups: Vec<WrittenRowGroup>,
    /// Bytes of the finished row groups, and of their metadata in the footer.
    size: u64,
    footer_bytes: u64,
    /// As `index_bytes` says.
    index_bytes: usize,
}

struct WrittenRowGroup {
    rows: usize,
    offset: u64,
    chunks: Vec<WrittenChunk>,
}

impl ParquetFile {
    /// Creates the file, or empties the one that exists.
    pub fn create(path: &Path, format: PageFormat) -> Result<Self> {
        let mut file = File::create(path)?;
        file.write_all(MAGIC)?;
        Ok(Self {
            file: BufWriter::new(file),
            format,
            names: Vec::new(),
            open_chunks: Vec::new(),
            open_rows: 0,
            open_bytes: 0,
            row_groups: Vec::new(),
            size: MAGIC.len() as u64,
            footer_bytes: 0,
            index_bytes: 0,
        })
    }

    /// Bytes of the finished row groups and of their part of the footer.
    pub fn size(&self) -> u64 {
        self.size + self.footer_bytes
    }

    /// Bytes of the open row group before encoding and compression: values and bitmaps.
    pub fn row_group_bytes(&self) -> usize {
        self.open_bytes
    }

    /// Bytes of memory of the open row group: compressed pages, and the open page of each column.
    pub fn held_bytes(&self) -> usize {
        self.open_chunks.iter().flatten().map(|chunk| chunk.held_bytes()).sum()
    }

    /// About the bytes of memory of the page index of the finished row groups, without the first page of each chunk.
    pub fn index_bytes(&self) -> usize {
        self.index_bytes
    }

    /// The numbers of the columns that the file has so far, in order.
    pub fn columns(&self) -> Vec<usize> {
        (0..self.names.len()).filter(|&column| self.open_chunks[column].is_some()).collect()
    }

    /// Moves the columns out of the batch and appends its rows. It must start with the columns of the previous batch.
    /// `more`: batches like this one that are expected to follow.
    pub fn write(&mut self, batch: &mut Batch, more: usize) -> Result<()> {
        if !batch.names.starts_with(&self.names) {
            return Err(ParquetError::General("a batch must start with the columns of the previous batch".into()));
        }
        for name in &batch.names[self.names.len()..] {
            let is_system = names::SYSTEM.contains(&name.as_str());
            self.open_chunks.push(is_system.then(Box::default));
            self.names.push(name.clone());
        }
        self.format.batches_in_group = self.batches_in_group(batch).min(more.saturating_add(1));
        for (index, (chunk, column)) in self.open_chunks.iter_mut().zip(&mut batch.columns).enumerate() {
            let column = column.take();
            let column = column.ok_or_else(|| ParquetError::General(format!("column {index} was already taken")))?;
            if chunk.is_none() && column.plain.is_empty() {
                continue;
            }
            let chunk = chunk.get_or_insert_default();
            let missing_rows = self.open_rows - chunk.rows();
            chunk.write(&ColumnValues::default(), missing_rows, &mut self.format)?;
            chunk.write(&column, batch.rows, &mut self.format)?;
            self.open_bytes += column.plain.len() + (missing_rows + batch.rows).div_ceil(8);
        }
        self.open_rows += batch.rows;
        Ok(())
    }

    /// Batches like this one, with it, that fill the open row group. Groups that end early, as they take too much memory,
    /// do so one after the other.
    fn batches_in_group(&self, batch: &Batch) -> usize {
        let bytes: usize = batch.columns.iter().flatten().map(|column| column.plain.len()).sum();
        match self.row_groups.last() {
            Some(group) => group.rows.saturating_sub(self.open_rows) / batch.rows.max(1),
            None => ROW_GROUP_BYTES.saturating_sub(self.open_bytes) / bytes.max(1),
        }
        .max(1)
    }

    /// Writes the open row group to the file; does nothing if it has no rows.
    pub fn end_row_group(&mut self) -> Result<()> {
        if self.open_rows == 0 {
            return Ok(());
        }
        let mut group = WrittenRowGroup { rows: self.open_rows, offset: self.size, chunks: Vec::new() };
        for (column, chunk) in self.open_chunks.iter_mut().enumerate() {
            let Some(chunk) = chunk else { continue };
            let (pages, summary) = chunk.take(&mut self.format)?;
            if summary.rows != group.rows {
                let message = format!("a column has {} rows in a row group of {}", summary.rows, group.rows);
                return Err(ParquetError::General(message));
            }
            pages.iter().try_for_each(|page| self.file.write_all(page))?;
            self.footer_bytes += footer_bytes(&self.names[column], &summary);
            self.index_bytes += index_bytes(&summary);
            let offset = self.size;
            self.size += summary.compressed_bytes as u64;
            group.chunks.push(WrittenChunk { column, offset, summary });
        }
        self.row_groups.push(group);
        (self.open_rows, self.open_bytes) = (0, 0);
        Ok(())
    }

    /// Writes the open row group, the missing chunks and the footer with `metadata` as its key-value pairs.
    /// `field_ids`: of each column of the file, or empty.
    pub fn close(mut self, metadata: Vec<(String, String)>, field_ids: &[i32]) -> Result<()> {
        self.end_row_group()?;
        self.write_missing_chunks()?;
        let columns = self.columns();
        if !field_ids.is_empty() && field_ids.len() != columns.len() {
            let message = format!("{} field ids for {} columns", field_ids.len(), columns.len());
            return Err(ParquetError::General(message));
        }
        let field_ids = field_ids.iter().copied().map(Some).chain(std::iter::repeat(None));
        let schema = schema(columns.iter().map(|&column| &self.names[column]).zip(field_ids))?;
        let schema = Arc::new(SchemaDescriptor::new(Arc::new(schema)));
        for group in &mut self.row_groups {
            group.chunks.sort_unstable_by_key(|chunk| chunk.column);
        }
        let page_index = page_index(self.row_groups.iter().map(|group| &*group.chunks), columns.len())?;
        let mut rows = 0;
        let mut row_groups = Vec::new();
        for group in std::mem::take(&mut self.row_groups) {
            rows += group.rows as i64;
            let mut uncompressed_bytes = 0;
            let mut row_group = RowGroupMetaData::builder(Arc::clone(&schema))
                .set_num_rows(group.rows as i64)
                .set_file_offset(group.offset as i64);
            for (column, chunk) in schema.columns().iter().zip(&group.chunks) {
                uncompressed_bytes += chunk.summary.uncompressed_bytes as i64;
                row_group = row_group.add_column_metadata(chunk_metadata(column, chunk, &self.format)?);
            }
            row_groups.push(row_group.set_total_byte_size(uncompressed_bytes).build()?);
        }
        let metadata = metadata.into_iter().map(|(key, value)| KeyValue::new(key, value)).collect();
        let file = FileMetaData::new(FORMAT_VERSION, rows, Some(CREATED_BY.into()), Some(metadata), schema, None);
        let metadata = ParquetMetaDataBuilder::new(file).set_row_groups(row_groups);
        let metadata = metadata.set_page_index(Some(Arc::new(page_index))).build();
        self.file.write_all(&serialize(&metadata, self.size as usize)?)?;
        Ok(self.file.flush()?)
    }

    fn write_missing_chunks(&mut self) -> Result<()> {
        let columns = self.columns();
        for group in &mut self.row_groups {
            let written: HashSet<usize> = group.chunks.iter().map(|chunk| chunk.column).collect();
            for &column in columns.iter().filter(|column| !written.contains(column)) {
                let mut chunk = ColumnChunk::default();
                chunk.write(&ColumnValues::default(), group.rows, &mut self.format)?;
                let (pages, summary) = chunk.take(&mut self.format)?;
                pages.iter().try_for_each(|page| self.file.write_all(page))?;
                let offset = self.size;
                self.size += summary.compressed_bytes as u64;
                group.chunks.push(WrittenChunk { column, offset, summary });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page_format::PageCompressor;
    use parquet::basic::BoundaryOrder;
    use parquet::column::reader::ColumnReader;
    use parquet::file::metadata::{PageIndexPolicy, ParquetMetaDataReader};
    use parquet::file::page_index::column_index::ColumnIndexMetaData;
    use parquet::file::reader::{FileReader, SerializedFileReader};

    type Rows = Vec<Option<Vec<u8>>>;

    fn format(compression: &str) -> PageFormat {
        PageFormat::new(PageCompressor::named(compression, 1).unwrap().unwrap())
    }

    fn batch(columns: &[Rows]) -> Batch {
        let rows = columns.iter().map(Vec::len).max().unwrap();
        let values_of_columns = columns.iter().map(|values| {
            let mut column = ColumnValues::default();
            for (row, value) in values.iter().enumerate() {
                if let Some(value) = value {
                    column.push(row, value, value.len());
                }
            }
            Some(column)
        });
        let names: Vec<String> = (0..columns.len()).map(|column| format!("c{column}")).collect();
        Batch { rows, keys: names.clone(), names, columns: values_of_columns.collect() }
    }

    fn read_back(path: &Path) -> Vec<Rows> {
        let file = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
        let mut columns = vec![Rows::new(); file.metadata().file_metadata().schema_descr().num_columns()];
        for group in 0..file.num_row_groups() {
            let group = file.get_row_group(group).unwrap();
            let rows = group.metadata().num_rows() as usize;
            for (index, column) in columns.iter_mut().enumerate() {
                let ColumnReader::ByteArrayColumnReader(mut reader) = group.get_column_reader(index).unwrap() else {
                    panic!("column {index} is not a string column")
                };
                let (mut values, mut levels) = (Vec::new(), Vec::new());
                let (records, ..) = reader.read_records(rows + 1, Some(&mut levels), None, &mut values).unwrap();
                assert_eq!(records, rows);
                let mut values = values.into_iter();
                column.extend(levels.iter().map(|&level| (level == 1).then(|| values.next().unwrap().data().to_vec())));
            }
        }
        columns
    }

    /// Different values of many lengths without random numbers; the higher the column number, the more are NULL.
    fn rows(column: usize, count: usize) -> Rows {
        let value =
            |row: usize| vec![b'a' + (row * 7 % 26) as u8; (row * (column + 3)) % 41 * (row % 97 / 96 * 900 + 1)];
        (0..count).map(|row| (row * 31 % 17 >= column).then(|| value(row))).collect()
    }

    #[test]
    fn every_value_is_read_back_while_columns_are_added() {
        let path = std::env::temp_dir().join(format!("parquet-file-{}.parquet", std::process::id()));
        for compression in ["zstd", "snappy", "none"] {
            let mut file = ParquetFile::create(&path, format(compression)).unwrap();
            let mut expected: Vec<Rows> = Vec::new();
            let mut total = 0;
            for (step, count) in [1, 63, 64, 65, 30_000, 1, 200, 7].into_iter().enumerate() {
                // Column 17 and the later ones are all NULL: the file does not have them.
                let columns: Vec<Rows> = (0..step * 3 + 1).map(|column| rows(column, count)).collect();
                file.write(&mut batch(&columns), usize::MAX).unwrap();
                expected.resize(columns.len(), vec![None; total]);
                total += count;
                for (expected_rows, column) in expected.iter_mut().zip(columns) {
                    expected_rows.resize(total - count, None);
                    expected_rows.extend(column);
                }
                if step % 3 == 1 {
                    file.end_row_group().unwrap();
                }
            }
            file.close(Vec::new(), &[]).unwrap();
            expected.retain(|rows| rows.iter().any(Option::is_some));
            assert!(read_back(&path) == expected, "{compression}");
        }
        std::fs::remove_file(path).unwrap();
    }

    /// Columns for which a dictionary is begun, and what becomes of it.
    fn dictionary_rows(count: usize) -> Vec<Rows> {
        let text = |number: usize| Some(format!("value {number}").into_bytes());
        let values: [&dyn Fn(usize) -> Option<Vec<u8>>; 12] = [
            &|_| text(1),
            &|_| Some(Vec::new()),
            &|row| text(row % 2),
            &|row| (row % 3 > 0).then(|| format!("{}", row % 5).into_bytes()),
            &|row| text(row * 7919 % 1500),
            &|row| text(row * 7919 % 1501),
            &|row| text(if row < 200_000 { row % 100 } else { row }),
            &|row| text(row),
            &|row| (row > 150_000).then(|| vec![b'x'; row % 3]),
            &|row| (row % 100_003 == 5).then(|| vec![b'y'; row % 7]),
            &|row| Some(vec![b'z'; if row == 140_000 { 70_000 } else { row % 9 }]),
            &|row| text(if row % 1000 == 999 { row / 100 } else { 3 }),
        ];
        values.iter().map(|value| (0..count).map(value).collect()).collect()
    }

    #[test]
    fn a_dictionary_that_overflows_or_grows_is_read_back() {
        let path = std::env::temp_dir().join(format!("parquet-dictionary-{}.parquet", std::process::id()));
        for (compression, batch_rows, group_rows) in
            [("zstd", 300_000, 300_000), ("none", 77_777, 150_000), ("zstd", 1000, 299_999)]
        {
            let columns = dictionary_rows(300_000);
            let mut file = ParquetFile::create(&path, format(compression)).unwrap();
            let mut start = 0;
            let mut in_group = 0;
            while start < 300_000 {
                let end = (start + batch_rows).min(300_000);
                let part: Vec<Rows> = columns.iter().map(|rows| rows[start..end].to_vec()).collect();
                let mut part = batch(&part);
                part.rows = end - start;
                file.write(&mut part, usize::MAX).unwrap();
                in_group += end - start;
                if in_group >= group_rows {
                    file.end_row_group().unwrap();
                    in_group = 0;
                }
                start = end;
            }
            file.close(Vec::new(), &[]).unwrap();
            assert!(read_back(&path) == columns, "{compression}");
            // The columns that overflow have pages of both kinds, and the footer says so.
            let file = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
            for (number, column) in file.metadata().row_group(0).columns().iter().enumerate() {
                let min = columns[number][..file.metadata().row_group(0).num_rows() as usize].iter().flatten().min();
                let told = column.statistics().and_then(|statistics| statistics.min_bytes_opt());
                assert_eq!(told, min.map(|value| &value[..]), "{number}");
            }
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn the_page_index_bounds_the_values_of_every_page() {
        let path = std::env::temp_dir().join(format!("parquet-index-{}.parquet", std::process::id()));
        let mut columns = dictionary_rows(200_000);
        columns.push((0..200_000).map(|row| Some(format!("{:07}", row / 3).into_bytes())).collect());
        columns.push((0..200_000).map(|row| Some("\u{10ffff}".repeat(17 + row % 5).into_bytes())).collect());
        let mut file = ParquetFile::create(&path, format("zstd")).unwrap();
        for rows in [0..150_000, 150_000..200_000] {
            let part: Vec<Rows> = columns.iter().map(|column| column[rows.clone()].to_vec()).collect();
            file.write(&mut batch(&part), usize::MAX).unwrap();
            file.end_row_group().unwrap();
        }
        file.close(Vec::new(), &[]).unwrap();
        let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Required);
        let metadata = reader.parse_and_finish(&File::open(&path).unwrap()).unwrap();
        let mut first_row = 0;
        let mut orders = HashSet::new();
        for (number, group) in metadata.row_groups().iter().enumerate() {
            let index = metadata.page_index_for_row_group(number);
            let group_rows = group.num_rows() as usize;
            for (column, chunk) in group.columns().iter().enumerate() {
                let locations = index.page_locations(column).unwrap();
                assert_eq!(locations[0].offset, chunk.data_page_offset());
                let (start, bytes) = chunk.byte_range();
                let last = locations.last().unwrap();
                assert_eq!(last.offset + i64::from(last.compressed_page_size), (start + bytes) as i64);
                let ends = locations.iter().skip(1).map(|page| page.first_row_index as usize).chain([group_rows]);
                let pages: Vec<_> = locations.iter().map(|page| page.first_row_index as usize).zip(ends).collect();
                let Some(bounds) = index.column_index(column) else {
                    // Values whose bound would be longer than all others, or a single page
                    assert!(column == 13 || pages.len() == 1, "{column}");
                    continue;
                };
                let order = bounds.get_boundary_order();
                let ColumnIndexMetaData::BYTE_ARRAY(bounds) = bounds else { panic!("{column} is not text") };
                let (mut mins, mut maxes) = (Vec::new(), Vec::new());
                for (page, (from, to)) in pages.into_iter().enumerate() {
                    let values = &columns[column][first_row + from..first_row + to];
                    let present: Vec<&[u8]> = values.iter().flatten().map(Vec::as_slice).collect();
                    assert_eq!(bounds.null_count(page), Some((values.len() - present.len()) as i64));
                    assert_eq!(bounds.is_null_page(page), present.is_empty());
                    let (min, max) = (present.iter().min(), present.iter().max());
                    assert_eq!(bounds.min_value(page), min.map(|min| &min[..min.len().min(64)]), "{column} {page}");
                    assert!(bounds.max_value(page) >= max.map(|max| &max[..max.len().min(64)]), "{column} {page}");
                    mins.extend(bounds.min_value(page));
                    maxes.extend(bounds.max_value(page));
                }
                let sorted = mins.is_sorted() && maxes.is_sorted();
                assert_eq!(order == Some(BoundaryOrder::ASCENDING), sorted, "{column}");
                orders.insert(sorted);
            }
            first_row += group_rows;
        }
        assert_eq!(orders.len(), 2);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn pages_end_where_a_reader_of_2048_rows_ends() {
        let path = std::env::temp_dir().join(format!("parquet-pages-{}.parquet", std::process::id()));
        let mut columns = dictionary_rows(220_000);
        // Pages that are full of bytes, and a column that begins late and has both kinds of values
        columns.push((0..220_000).map(|row| Some(format!("{row:0100}").into_bytes())).collect());
        columns.push((0..220_000).map(|row| (row > 30_001).then(|| vec![b'x'; row % 700])).collect());
        let mut file = ParquetFile::create(&path, format("zstd")).unwrap();
        for start in (0..220_000).step_by(777) {
            let rows = start..(start + 777).min(220_000);
            let part: Vec<Rows> = columns.iter().map(|column| column[rows.clone()].to_vec()).collect();
            let mut part = batch(&part);
            part.rows = rows.len();
            file.write(&mut part, usize::MAX).unwrap();
        }
        file.close(Vec::new(), &[]).unwrap();
        assert!(read_back(&path) == columns);
        let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Required);
        let metadata = reader.parse_and_finish(&File::open(&path).unwrap()).unwrap();
        let index = metadata.page_index_for_row_group(0);
        for column in 0..columns.len() {
            let starts: Vec<_> =
                index.page_locations(column).unwrap().iter().map(|page| page.first_row_index).collect();
            // A dictionary that is full ends a page at any row, and the next page ends where it would have ended.
            let odd = starts.iter().filter(|&start| start % 2048 != 0).count();
            let overflows = metadata.row_group(0).column(column).page_encoding_stats().is_some_and(|stats| {
                stats.iter().filter(|page| page.page_type == parquet::basic::PageType::DATA_PAGE).count() > 1
            });
            assert!(odd <= usize::from(overflows), "{column}: {starts:?}");
            assert!(starts.len() >= 3, "{column}: {starts:?}");
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_dictionary_that_is_full_at_any_row_of_a_word_is_read_back() {
        let path = std::env::temp_dir().join(format!("parquet-full-{}.parquet", std::process::id()));
        let few = 300;
        let full_after = (1 << 15) - few;
        // Around a word of 64 rows, around the end of a page, and at the last row
        for full_at in [40_000, 40_960].into_iter().flat_map(|row| [row - 1, row, row + 1, row + 31, row + 63]) {
            let first_new = full_at - full_after;
            let value = |row: usize| Some(if row < first_new { row % few } else { row }.to_string().into_bytes());
            let rows: Rows = (0..=full_at.max(40_961)).map(value).collect();
            let mut file = ParquetFile::create(&path, format("none")).unwrap();
            file.write(&mut batch(std::slice::from_ref(&rows)), usize::MAX).unwrap();
            file.close(Vec::new(), &[]).unwrap();
            assert!(read_back(&path) == [rows], "{full_at}");
            let written = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
            let chunk = written.metadata().row_group(0).column(0);
            assert!(chunk.dictionary_page_offset().is_some());
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_batch_must_start_with_the_previous_columns() {
        let mut file = ParquetFile::create(Path::new("/dev/null"), format("none")).unwrap();
        file.write(&mut batch(&[rows(0, 3), rows(1, 3)]), 0).unwrap();
        assert!(file.write(&mut batch(&[rows(0, 3)]), 0).is_err());
    }
}
