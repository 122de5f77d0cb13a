//! A Parquet file of optional string columns, written while columns are still being found.
//!
//! A row group that ended before a column was met gets that column's chunk, nothing but NULL, at the end of the file.

use crate::column_chunk::{ColumnChunk, Summary};
use crate::column_values::Values;
use crate::page_compressor::Codec;
use crate::table::Batch;
use parquet::basic::{Encoding, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataWriter, RowGroupMetaData,
};
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor, Type};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

const MAGIC: &[u8] = b"PAR1";
const FORMAT_VERSION: i32 = 2;
const CREATED_BY: &str = concat!("ndjson-arrow version ", env!("CARGO_PKG_VERSION"));

pub struct ParquetFile {
    file: File,
    codec: Codec,
    names: Vec<String>,
    /// Of the row group under construction.
    chunks: Vec<ColumnChunk>,
    group_rows: usize,
    group_bytes: usize,
    groups: Vec<Group>,
    size: u64,
}

struct Group {
    rows: usize,
    at: u64,
    chunks: Vec<(u64, Summary)>,
}

impl ParquetFile {
    pub fn create(path: &Path, codec: Codec) -> Result<Self> {
        let mut file = File::create(path)?;
        file.write_all(MAGIC)?;
        Ok(Self {
            file,
            codec,
            names: Vec::new(),
            chunks: Vec::new(),
            group_rows: 0,
            group_bytes: 0,
            groups: Vec::new(),
            size: MAGIC.len() as u64,
        })
    }

    /// Bytes on the disk.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes of the columns that the row group under construction was made of.
    pub fn row_group_bytes(&self) -> usize {
        self.group_bytes
    }

    /// Appends the rows; the columns of a batch begin with those of the batch before.
    pub fn write(&mut self, batch: &mut Batch) -> Result<()> {
        if !batch.names.starts_with(&self.names) {
            return Err(ParquetError::General("the columns of a batch begin with those of the batch before".into()));
        }
        self.names.extend_from_slice(&batch.names[self.names.len()..]);
        self.chunks.resize_with(self.names.len(), ColumnChunk::default);
        for (chunk, column) in self.chunks.iter_mut().zip(&mut batch.columns) {
            let column = column.take().ok_or_else(|| ParquetError::General("a column was taken before".into()))?;
            let missing = self.group_rows - chunk.rows();
            chunk.write(&Values::default(), missing, &mut self.codec)?;
            chunk.write(&column, batch.rows, &mut self.codec)?;
        }
        self.group_rows += batch.rows;
        self.group_bytes += batch.bytes;
        Ok(())
    }

    /// Writes the rows since the last row group to the file.
    pub fn end_row_group(&mut self) -> Result<()> {
        if self.group_rows == 0 {
            return Ok(());
        }
        let mut group = Group { rows: self.group_rows, at: self.size, chunks: Vec::new() };
        for chunk in &mut self.chunks {
            let (pages, summary) = chunk.take(&mut self.codec)?;
            if summary.rows != group.rows {
                let message = format!("a column has {} rows in a row group of {}", summary.rows, group.rows);
                return Err(ParquetError::General(message));
            }
            self.file.write_all(&pages)?;
            group.chunks.push((self.size, summary));
            self.size += pages.len() as u64;
        }
        self.groups.push(group);
        (self.group_rows, self.group_bytes) = (0, 0);
        Ok(())
    }

    /// Writes what is left and the footer.
    pub fn close(mut self, metadata: Vec<(String, String)>) -> Result<()> {
        self.end_row_group()?;
        self.write_missing_chunks()?;
        let schema = Arc::new(SchemaDescriptor::new(Arc::new(schema(&self.names)?)));
        let mut rows = 0;
        let mut groups = Vec::new();
        for group in &self.groups {
            rows += group.rows as i64;
            let mut size = 0;
            let mut row_group = RowGroupMetaData::builder(Arc::clone(&schema))
                .set_num_rows(group.rows as i64)
                .set_file_offset(group.at as i64);
            for (column, (at, summary)) in schema.columns().iter().zip(&group.chunks) {
                size += summary.uncompressed as i64;
                row_group = row_group.add_column_metadata(chunk_metadata(column, *at, summary, &self.codec)?);
            }
            groups.push(row_group.set_total_byte_size(size).build()?);
        }
        let metadata = metadata.into_iter().map(|(key, value)| KeyValue::new(key, value)).collect();
        let file = FileMetaData::new(FORMAT_VERSION, rows, Some(CREATED_BY.into()), Some(metadata), schema, None);
        ParquetMetaDataWriter::new(&mut self.file, &ParquetMetaData::new(file, groups)).finish()?;
        Ok(())
    }

    fn write_missing_chunks(&mut self) -> Result<()> {
        let mut bytes = Vec::new();
        for group in &mut self.groups {
            for _ in group.chunks.len()..self.names.len() {
                let mut chunk = ColumnChunk::default();
                chunk.write(&Values::default(), group.rows, &mut self.codec)?;
                let (pages, summary) = chunk.take(&mut self.codec)?;
                group.chunks.push((self.size + bytes.len() as u64, summary));
                bytes.extend(pages);
            }
        }
        self.file.write_all(&bytes)?;
        self.size += bytes.len() as u64;
        Ok(())
    }
}

fn schema(names: &[String]) -> Result<Type> {
    let field = |name: &String| {
        Type::primitive_type_builder(name, PhysicalType::BYTE_ARRAY)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(Some(LogicalType::String))
            .build()
            .map(Arc::new)
    };
    let fields = names.iter().map(field).collect::<Result<_>>()?;
    Type::group_type_builder("schema").with_fields(fields).build()
}

fn chunk_metadata(column: &ColumnDescPtr, at: u64, summary: &Summary, codec: &Codec) -> Result<ColumnChunkMetaData> {
    let (least, most) = summary.bounds.clone().unzip();
    let nulls = Some(summary.nulls as u64);
    let statistics = ValueStatistics::new(least.map(ByteArray::from), most.map(ByteArray::from), None, nulls, false);
    ColumnChunkMetaData::builder(Arc::clone(column))
        .set_encodings(vec![Encoding::PLAIN, Encoding::RLE])
        .set_compression_codec(codec.kind())
        .set_num_values(summary.rows as i64)
        .set_data_page_offset(at as i64)
        .set_total_compressed_size(summary.compressed as i64)
        .set_total_uncompressed_size(summary.uncompressed as i64)
        .set_statistics(Statistics::ByteArray(statistics))
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::column::reader::ColumnReader;
    use parquet::file::reader::{FileReader, SerializedFileReader};

    type Rows = Vec<Option<Vec<u8>>>;

    fn batch(columns: &[Rows]) -> Batch {
        let rows = columns.iter().map(Vec::len).max().unwrap();
        let columns_of_values = columns.iter().map(|values| {
            let mut column = Values::default();
            for (row, value) in values.iter().enumerate() {
                if let Some(value) = value {
                    column.push(row, value, value.len());
                }
            }
            Some(column)
        });
        let names: Vec<String> = (0..columns.len()).map(|column| format!("c{column}")).collect();
        Batch { rows, bytes: rows, keys: names.clone(), names, columns: columns_of_values.collect() }
    }

    fn read_back(path: &Path) -> Vec<Rows> {
        let file = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
        let mut columns = vec![Rows::new(); file.metadata().file_metadata().schema_descr().num_columns()];
        for group in 0..file.num_row_groups() {
            let group = file.get_row_group(group).unwrap();
            let rows = group.metadata().num_rows() as usize;
            for (index, column) in columns.iter_mut().enumerate() {
                let ColumnReader::ByteArrayColumnReader(mut reader) = group.get_column_reader(index).unwrap() else {
                    panic!("no strings")
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

    /// Values of every length, NULL as often as the column number says, that need no random numbers to differ.
    fn rows(column: usize, count: usize) -> Rows {
        let value =
            |row: usize| vec![b'a' + (row * 7 % 26) as u8; (row * (column + 3)) % 41 * (row % 97 / 96 * 900 + 1)];
        (0..count).map(|row| (row * 31 % 17 >= column).then(|| value(row))).collect()
    }

    #[test]
    fn every_value_comes_back_whatever_the_columns_do() {
        let path = std::env::temp_dir().join(format!("parquet-file-{}.parquet", std::process::id()));
        for compression in ["zstd", "snappy", "none"] {
            let codec = Codec::named(compression).unwrap().unwrap();
            let mut file = ParquetFile::create(&path, codec).unwrap();
            let mut expected: Vec<Rows> = Vec::new();
            let mut total = 0;
            for (step, count) in [1, 63, 64, 65, 30_000, 1, 200, 7].into_iter().enumerate() {
                // Column 17 and later ones are nothing but NULL.
                let columns: Vec<Rows> = (0..step * 3 + 1).map(|column| rows(column, count)).collect();
                file.write(&mut batch(&columns)).unwrap();
                expected.resize(columns.len(), vec![None; total]);
                total += count;
                for (all, column) in expected.iter_mut().zip(columns) {
                    all.resize(total - count, None);
                    all.extend(column);
                }
                if step % 3 == 1 {
                    file.end_row_group().unwrap();
                }
            }
            file.close(Vec::new()).unwrap();
            assert!(read_back(&path) == expected, "{compression}");
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn columns_must_only_grow() {
        let mut file = ParquetFile::create(Path::new("/dev/null"), Codec::None).unwrap();
        file.write(&mut batch(&[rows(0, 3), rows(1, 3)])).unwrap();
        assert!(file.write(&mut batch(&[rows(0, 3)])).is_err());
    }
}
