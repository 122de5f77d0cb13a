//! The Python class `ParquetFile`: it checks arguments and the order of calls, and turns errors into exceptions.

use crate::page_format::{PageCompressor, PageFormat};
use crate::panic_guard::guarded;
use crate::parquet_file::ParquetFile;
use crate::py_results::PyBatch;
use parquet::errors::ParquetError;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Above them zstd needs more memory than a task has.
const ZSTD_LEVELS: RangeInclusive<i32> = 1..=19;

/// Writes batches to one Parquet file of optional strings, to which columns can be added until it is closed.
#[pyclass(name = "ParquetFile", module = "ndjson_arrow")]
pub struct PyParquetFile {
    /// None after `close` and after an error, when the state of the file is not known.
    file: Option<ParquetFile>,
}

#[pymethods]
impl PyParquetFile {
    #[new]
    #[pyo3(signature = (path, *, compression = "zstd", zstd_level = 1))]
    fn new(path: PathBuf, compression: &str, zstd_level: i32) -> PyResult<Self> {
        if !ZSTD_LEVELS.contains(&zstd_level) {
            return Err(PyValueError::new_err(format!("zstd_level is {zstd_level}: it must be 1 to 19")));
        }
        let compressor = PageCompressor::named(compression, zstd_level)?.ok_or_else(|| {
            let message = format!("compression is {compression:?}: it must be \"none\", \"snappy\" or \"zstd\"");
            PyValueError::new_err(message)
        })?;
        let format = PageFormat::new(compressor);
        Ok(Self { file: Some(guarded(|| ParquetFile::create(&path, format))?.map_err(to_exception)?) })
    }

    #[getter]
    fn size(&self) -> PyResult<u64> {
        Ok(self.file.as_ref().ok_or_else(not_open)?.size())
    }

    #[getter]
    fn row_group_bytes(&self) -> PyResult<usize> {
        Ok(self.file.as_ref().ok_or_else(not_open)?.row_group_bytes())
    }

    #[getter]
    fn held_bytes(&self) -> PyResult<usize> {
        Ok(self.file.as_ref().ok_or_else(not_open)?.held_bytes())
    }

    #[getter]
    fn index_bytes(&self) -> PyResult<usize> {
        Ok(self.file.as_ref().ok_or_else(not_open)?.index_bytes())
    }

    #[getter]
    fn columns(&self) -> PyResult<Vec<usize>> {
        Ok(self.file.as_ref().ok_or_else(not_open)?.columns())
    }

    #[pyo3(signature = (batch, more = usize::MAX))]
    fn write(&mut self, py: Python<'_>, batch: &mut PyBatch, more: usize) -> PyResult<()> {
        py.detach(|| self.run(|file| file.write(&mut batch.batch, more)))
    }

    fn end_row_group(&mut self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.run(ParquetFile::end_row_group))
    }

    #[pyo3(signature = (metadata = None, field_ids = None))]
    fn close(
        &mut self,
        py: Python<'_>,
        metadata: Option<HashMap<String, String>>,
        field_ids: Option<Vec<i32>>,
    ) -> PyResult<()> {
        let file = self.file.take().ok_or_else(not_open)?;
        let metadata = metadata.into_iter().flatten().collect();
        py.detach(|| guarded(|| file.close(metadata, &field_ids.unwrap_or_default())))?.map_err(to_exception)
    }
}

impl PyParquetFile {
    fn run(&mut self, work: impl FnOnce(&mut ParquetFile) -> parquet::errors::Result<()>) -> PyResult<()> {
        let mut file = self.file.take().ok_or_else(not_open)?;
        guarded(|| work(&mut file))?.map_err(to_exception)?;
        self.file = Some(file);
        Ok(())
    }
}

fn not_open() -> PyErr {
    PyRuntimeError::new_err("this ParquetFile is closed or failed before: create a new one")
}

/// An error of the operating system as OSError with its `errno`; any other is a bug or a wrong call.
fn to_exception(error: ParquetError) -> PyErr {
    match error {
        ParquetError::External(error) => match error.downcast::<std::io::Error>() {
            Ok(error) => match error.raw_os_error() {
                Some(number) => PyOSError::new_err((number, error.to_string())),
                None => (*error).into(),
            },
            Err(error) => PyRuntimeError::new_err(error.to_string()),
        },
        error => PyRuntimeError::new_err(error.to_string()),
    }
}
