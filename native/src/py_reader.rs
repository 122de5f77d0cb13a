//! The Python face of the reader: arguments checked, order of calls, panics caught. Nothing is decided here.

use crate::inflate::Limits;
use crate::input::Chunk;
use crate::names;
use crate::panic_guard::guarded;
use crate::py_results::{Batch, Reject, SplitCounts};
use crate::reader::{Options, Reader};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::collections::HashSet;

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

fn wrong_order(message: &str) -> PyErr {
    PyRuntimeError::new_err(message.to_owned())
}

fn no_split() -> PyErr {
    wrong_order("no split is open: call open() first")
}
