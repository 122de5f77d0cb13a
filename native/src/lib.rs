//! NDJSON bytes in; string columns, rejects and counts out, and the columns into Parquet. It knows nothing of S3 or Spark.
#![forbid(unsafe_code)]

pub mod codec;
pub mod column;
pub mod column_chunk;
pub mod inflate;
pub mod input;
pub mod names;
pub mod parquet_file;
pub mod python;
pub mod reader;
pub mod reason;
pub mod reject;
pub mod results;
pub mod row;
pub mod scan;
pub mod split;
pub mod strict;
pub mod table;

#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::python::{PyParquetFile, PyReader};
    #[pymodule_export]
    use crate::results::{Batch, Reject, SplitCounts, StringColumn};
    use crate::{inflate::Codec, names, python::guarded, reason::Reason};
    use pyo3::{prelude::*, types::PyTuple};

    #[pyfunction]
    fn column_name(key: &str) -> PyResult<String> {
        guarded(|| names::column_name(key))
    }

    #[pyfunction]
    fn original_key(column: &str) -> PyResult<Option<String>> {
        guarded(|| names::original_key(column))
    }

    #[pyfunction]
    fn detect_codec(head: &[u8]) -> Option<&'static str> {
        Codec::detect(head).map(Codec::name)
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let reasons = Reason::ALL.map(Reason::text);
        module.add("REASONS", PyTuple::new(module.py(), reasons)?)
    }
}
