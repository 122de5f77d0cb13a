//! The Python face of a Parquet file.

use crate::page_compressor::Codec;
use crate::panic_guard::guarded;
use crate::parquet_file::ParquetFile;
use crate::py_results::Batch;
use parquet::errors::ParquetError;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::collections::HashMap;
use std::path::PathBuf;

/// None once it is closed, or after an error: what it holds cannot be trusted then.
#[pyclass(name = "ParquetFile", module = "ndjson_arrow")]
pub struct PyParquetFile {
    file: Option<ParquetFile>,
}

#[pymethods]
impl PyParquetFile {
    #[new]
    #[pyo3(signature = (path, *, compression = "zstd"))]
    fn new(path: PathBuf, compression: &str) -> PyResult<Self> {
        let codec = Codec::named(compression)?.ok_or_else(|| {
            let message = format!("compression is {compression:?}: it must be \"none\", \"snappy\" or \"zstd\"");
            PyValueError::new_err(message)
        })?;
        Ok(Self { file: Some(guarded(|| ParquetFile::create(&path, codec))?.map_err(failed)?) })
    }

    #[getter]
    fn size(&self) -> PyResult<u64> {
        Ok(self.file.as_ref().ok_or_else(closed)?.size())
    }

    #[getter]
    fn row_group_bytes(&self) -> PyResult<usize> {
        Ok(self.file.as_ref().ok_or_else(closed)?.row_group_bytes())
    }

    fn write(&mut self, py: Python<'_>, batch: &mut Batch) -> PyResult<()> {
        py.detach(|| self.run(|file| file.write(&mut batch.batch)))
    }

    fn end_row_group(&mut self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.run(ParquetFile::end_row_group))
    }

    #[pyo3(signature = (metadata = None))]
    fn close(&mut self, py: Python<'_>, metadata: Option<HashMap<String, String>>) -> PyResult<()> {
        let file = self.file.take().ok_or_else(closed)?;
        let metadata = metadata.into_iter().flatten().collect();
        py.detach(|| guarded(|| file.close(metadata)))?.map_err(failed)
    }
}

impl PyParquetFile {
    fn run(&mut self, work: impl FnOnce(&mut ParquetFile) -> parquet::errors::Result<()>) -> PyResult<()> {
        let mut file = self.file.take().ok_or_else(closed)?;
        guarded(|| work(&mut file))?.map_err(failed)?;
        self.file = Some(file);
        Ok(())
    }
}

fn closed() -> PyErr {
    PyRuntimeError::new_err("this ParquetFile is closed, or failed before: make a new one")
}

/// What the operating system said as Python's OSError; anything else is a bug or a wrong call.
fn failed(error: ParquetError) -> PyErr {
    match error {
        ParquetError::External(error) => match error.downcast::<std::io::Error>() {
            Ok(error) => (*error).into(),
            Err(error) => PyRuntimeError::new_err(error.to_string()),
        },
        error => PyRuntimeError::new_err(error.to_string()),
    }
}
