//! Reads NDJSON bytes into string columns, rejects and counts, and writes the columns to Parquet.
//!
//! It does not depend on S3 or Spark.
#![forbid(unsafe_code)]

mod bounds;
mod column_chunk;
mod column_values;
mod columns;
mod decompressor;
mod dictionary;
mod digest;
mod elements;
mod footer;
pub mod inflate;
mod inflate_thread;
mod input;
mod names;
mod next_line;
mod page_format;
mod panic_guard;
mod parquet_file;
mod py_parquet_file;
mod py_reader;
mod py_results;
pub mod reader;
mod reason;
mod reject;
mod row;
mod scan;
mod split;
mod strict;
mod table;
mod unescape;
mod varint;

#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::py_parquet_file::PyParquetFile;
    #[pymodule_export]
    use crate::py_reader::PyReader;
    #[pymodule_export]
    use crate::py_results::{PyBatch, PyReject, PySplitCounts, PyStringColumn};
    use crate::{decompressor::Codec, names, panic_guard::guarded, reason::Reason, split};
    use pyo3::{prelude::*, types::PyTuple};

    /// The column name of a JSON key.
    #[pyfunction]
    fn column_name(key: &str) -> PyResult<String> {
        guarded(|| names::column_name(key))
    }

    /// The JSON key of a column name.
    #[pyfunction]
    fn original_key(column: &str) -> PyResult<Option<String>> {
        guarded(|| names::original_key(column))
    }

    /// The codec of a file by its first bytes.
    #[pyfunction]
    fn detect_codec(head: &[u8]) -> Option<&'static str> {
        Codec::detect(head).map(Codec::name)
    }

    /// Whether a file that begins with these bytes can be read in parts.
    #[pyfunction]
    fn can_split(head: &[u8]) -> bool {
        Codec::detect(head).is_none() && split::begins_with_lines(head)
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let reasons = Reason::ALL.map(Reason::text);
        module.add("REASONS", PyTuple::new(module.py(), reasons)?)
    }
}
