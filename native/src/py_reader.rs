//! The Python class `Reader`: it checks arguments and the order of calls, and releases the GIL.

use crate::inflate::InflateLimits;
use crate::input::Chunk;
use crate::names;
use crate::panic_guard::guarded;
use crate::py_results::{PyBatch, PyReject, PySplitCounts};
use crate::reader::{Reader, ReaderOptions};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::collections::HashSet;

/// The largest `max_line_bytes` and `flush_bytes`: the last line that fills a batch must leave its columns below 2 GiB,
/// because the offsets of Arrow's type utf8 have 32 bits.
const MAX_BYTES: usize = i32::MAX as usize / 2;

/// Turns the bytes of one or many splits into string columns.
#[pyclass(name = "Reader", module = "ndjson_arrow")]
pub struct PyReader {
    /// None after a panic, when its state is not known.
    reader: Option<Reader>,
}

#[pymethods]
impl PyReader {
    #[new]
    // 16 MiB, 64 MiB, 4 MiB and 256 GiB as plain numbers: help() shows an expression as "...".
    #[pyo3(signature = (*, known_columns = Vec::new(), column_limit = 1000, max_line_bytes = 16777216,
        concatenated = false, flush_bytes = 67108864, reject_sample_count = 1000, reject_sample_bytes = 4194304, provenance = false,
        max_expansion = 2000, max_inflated_bytes = 274877906944))]
    #[allow(clippy::too_many_arguments)] // Keyword arguments of the Python class.
    fn new(
        known_columns: Vec<String>,
        column_limit: usize,
        max_line_bytes: usize,
        concatenated: bool,
        flush_bytes: usize,
        reject_sample_count: usize,
        reject_sample_bytes: usize,
        provenance: bool,
        max_expansion: u64,
        max_inflated_bytes: u64,
    ) -> PyResult<Self> {
        for (name, value) in [("max_line_bytes", max_line_bytes), ("flush_bytes", flush_bytes)] {
            if value == 0 || value > MAX_BYTES {
                return Err(PyValueError::new_err(format!("{name} is {value}: it must be between 1 and {MAX_BYTES}")));
            }
        }
        let mut seen = HashSet::new();
        for name in &known_columns {
            if !names::is_column_name(name) {
                let message = format!("known column {name:?} is not a valid column name: pass column_name(key)");
                return Err(PyValueError::new_err(message));
            }
            if !seen.insert(name) {
                return Err(PyValueError::new_err(format!("known column {name:?} is passed twice")));
            }
        }
        let options = ReaderOptions {
            known_columns,
            column_limit,
            max_line_bytes,
            concatenated,
            flush_bytes,
            reject_sample_count,
            reject_sample_bytes,
            provenance,
            inflate_limits: InflateLimits { max_expansion, max_inflated_bytes },
        };
        Ok(Self { reader: Some(guarded(|| Reader::new(options))?) })
    }

    #[pyo3(signature = (source, *, start = 0, end = None, arrived_at = None))]
    fn open(&mut self, source: &str, start: u64, end: Option<u64>, arrived_at: Option<String>) -> PyResult<()> {
        self.run(|reader| {
            if let Some(open) = reader.split() {
                return Err(wrong_order(&format!("{} is open: call close() first", open.source)));
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
                return Err(wrong_order("the last bytes are not read yet, or end_of_input() was called: call read()"));
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

    fn read(&mut self, py: Python<'_>) -> PyResult<Option<PyBatch>> {
        let batch = py.detach(|| {
            self.run(|reader| {
                reader.split().ok_or_else(no_split)?;
                Ok::<_, PyErr>(reader.read())
            })
        })??;
        Ok(batch.map(|batch| PyBatch { batch }))
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

    fn close(&mut self) -> PyResult<PySplitCounts> {
        let split = self.run(|reader| reader.close().ok_or_else(no_split))??;
        Ok(PySplitCounts::new(split))
    }

    fn flush(&mut self) -> PyResult<Option<PyBatch>> {
        Ok(self.run(Reader::flush)?.map(|batch| PyBatch { batch }))
    }

    fn take_rejects(&mut self) -> PyResult<Vec<PyReject>> {
        let rejects = self.run(Reader::take_rejects)?;
        Ok(rejects.into_iter().map(|(source, reject)| PyReject::new(&source, reject)).collect())
    }
}

impl PyReader {
    fn run<T>(&mut self, work: impl FnOnce(&mut Reader) -> T) -> PyResult<T> {
        let reader = self.reader.as_mut().ok_or_else(|| {
            PyRuntimeError::new_err("this Reader cannot be used after an internal error: create a new one")
        })?;
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
