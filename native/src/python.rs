//! The Python face of reader and Parquet file: arguments checked, order of calls, panics caught. Nothing is decided here.

use crate::codec::Codec;
use crate::inflate::Limits;
use crate::input::Chunk;
use crate::names;
use crate::parquet_file::ParquetFile;
use crate::reader::{Options, Reader};
use crate::results::{Batch, Reject, SplitCounts};
use parquet::errors::ParquetError;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

/// A panic is a bug of ours, and becomes an ordinary exception: PyO3's own PanicException passes `except Exception`.
pub fn guarded<T>(work: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        PyRuntimeError::new_err(format!("ndjson_arrow failed inside, please report it: {message}"))
    })
}

#[pyclass(name = "Reader", module = "ndjson_arrow")]
pub struct PyReader {
    /// None after a panic: what it holds cannot be trusted.
    reader: Option<Reader>,
}

#[pymethods]
impl PyReader {
    #[new]
    #[pyo3(signature = (*, known_columns = Vec::new(), column_limit = 1000, max_line_bytes = 16 << 20,
        flush_bytes = 64 << 20, reject_sample_count = 1000, reject_sample_bytes = 4 << 20, provenance = false,
        max_expansion = 200, max_inflated_bytes = 256 << 30))]
    #[allow(clippy::too_many_arguments)] // Keyword arguments of the Python class.
    fn new(
        known_columns: Vec<String>,
        column_limit: usize,
        max_line_bytes: usize,
        flush_bytes: usize,
        reject_sample_count: usize,
        reject_sample_bytes: usize,
        provenance: bool,
        max_expansion: u64,
        max_inflated_bytes: u64,
    ) -> PyResult<Self> {
        let most = i32::MAX as usize / 2;
        for (name, value) in [("max_line_bytes", max_line_bytes), ("flush_bytes", flush_bytes)] {
            if value == 0 || value > most {
                return Err(PyValueError::new_err(format!("{name} is {value}: it must lie between 1 and {most}")));
            }
        }
        let mut seen = HashSet::new();
        for name in &known_columns {
            if !names::is_column_name(name) || !seen.insert(name) {
                let message =
                    format!("known column {name:?} is no name that column_name() gives, or stands there twice");
                return Err(PyValueError::new_err(message));
            }
        }
        let options = Options {
            known_columns,
            column_limit,
            max_line_bytes,
            flush_bytes,
            sample_lines: reject_sample_count,
            sample_bytes: reject_sample_bytes,
            provenance,
            limits: Limits { expansion: max_expansion, inflated: max_inflated_bytes },
        };
        Ok(Self { reader: Some(guarded(|| Reader::new(options))?) })
    }

    #[pyo3(signature = (source, *, start = 0, end = None, arrived_at = None))]
    fn open(&mut self, source: &str, start: u64, end: Option<u64>, arrived_at: Option<String>) -> PyResult<()> {
        self.run(|reader| {
            if let Some(open) = reader.split() {
                return Err(wrong_order(&format!("{} is open: close() it first", open.source)));
            }
            reader.open(source, arrived_at, (start, end));
            Ok(())
        })?
    }

    fn feed(&mut self, py: Python<'_>, chunk: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes: Chunk = match chunk.cast::<PyBytes>() {
            Ok(bytes) => Box::new(PyBackedBytes::from(bytes.clone())),
            Err(_) => Box::new(PyBuffer::<u8>::get(chunk)?.to_vec(py)?),
        };
        self.run(|reader| {
            let split = reader.split().ok_or_else(no_split)?;
            if !split.done && !split.input.needs_input() {
                return Err(wrong_order("the bytes fed before are not read yet, or end_of_input() was called: read()"));
            }
            reader.feed(bytes);
            Ok(())
        })?
    }

    fn end_of_input(&mut self) -> PyResult<()> {
        self.run(|reader| {
            reader.split().ok_or_else(no_split)?.input.end();
            Ok(())
        })?
    }

    fn read(&mut self, py: Python<'_>) -> PyResult<Option<Batch>> {
        let batch = py.detach(|| {
            self.run(|reader| {
                reader.split().ok_or_else(no_split)?;
                Ok::<_, PyErr>(reader.read())
            })
        })??;
        Ok(batch.map(|batch| Batch { batch }))
    }

    #[getter]
    fn done(&mut self) -> PyResult<bool> {
        self.run(|reader| reader.split().map(|split| split.done).ok_or_else(no_split))?
    }

    #[getter]
    fn needs_input(&mut self) -> PyResult<bool> {
        self.run(|reader| {
            let split = reader.split().ok_or_else(no_split)?;
            Ok(!split.done && split.input.needs_input())
        })?
    }

    fn close(&mut self) -> PyResult<SplitCounts> {
        let split = self.run(|reader| reader.close().ok_or_else(no_split))??;
        Ok(SplitCounts::new(split))
    }

    fn flush(&mut self) -> PyResult<Option<Batch>> {
        Ok(self.run(Reader::flush)?.map(|batch| Batch { batch }))
    }

    fn take_rejects(&mut self) -> PyResult<Vec<Reject>> {
        let rejects = self.run(Reader::take_rejects)?;
        Ok(rejects.into_iter().map(|(source, reject)| Reject::new(&source, reject)).collect())
    }
}

impl PyReader {
    fn run<T>(&mut self, work: impl FnOnce(&mut Reader) -> T) -> PyResult<T> {
        let reader = self.reader.as_mut();
        let reader =
            reader.ok_or_else(|| PyRuntimeError::new_err("this Reader failed inside before: make a new one"))?;
        let outcome = guarded(|| work(reader));
        if outcome.is_err() {
            self.reader = None;
        }
        outcome
    }
}

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

fn wrong_order(message: &str) -> PyErr {
    PyRuntimeError::new_err(message.to_owned())
}

fn no_split() -> PyErr {
    wrong_order("no split is open: call open() first")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_ordinary_error() {
        assert!(guarded(|| panic!("a bug")).is_err());
        assert_eq!(guarded(|| 1).ok(), Some(1));
    }
}
