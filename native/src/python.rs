//! The Python face of the reader. Nothing is decided here.

use crate::inflate::{Codec, Limits};
use crate::input::Chunk;
use crate::names;
use crate::reader::{Options, Reader};
use crate::{reject, split, table};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::collections::{BTreeMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A panic is a bug of ours, and becomes an ordinary exception: PyO3's own PanicException passes `except Exception`.
pub fn guarded<T>(work: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        PyRuntimeError::new_err(format!("ndjson_arrow failed inside, please report it: {message}"))
    })
}

#[pyclass(frozen, get_all, module = "ndjson_arrow")]
#[derive(Clone)]
pub struct Reject {
    source: String,
    offset: u64,
    length: u64,
    reason: &'static str,
    line: Option<Vec<u8>>,
}

#[pymethods]
impl Reject {
    fn __repr__(&self) -> String {
        format!("Reject({:?}, offset={}, length={}, reason={:?})", self.source, self.offset, self.length, self.reason)
    }
}

impl Reject {
    fn new(source: &str, reject: reject::Reject) -> Self {
        let reject::Reject { offset, length, reason, line } = reject;
        Self { source: source.to_owned(), offset, length, reason: reason.text(), line }
    }
}

#[pyclass(frozen, get_all, module = "ndjson_arrow")]
pub struct SplitCounts {
    source: String,
    lines: u64,
    rows: u64,
    blank_lines: u64,
    rejects: BTreeMap<&'static str, u64>,
    bytes: u64,
    inflated: Option<&'static str>,
    error: Option<String>,
    first_reject: Option<Reject>,
}

#[pymethods]
impl SplitCounts {
    fn __repr__(&self) -> String {
        let Self { source, lines, rows, blank_lines, rejects, bytes, error, .. } = self;
        format!(
            "SplitCounts({source:?}, lines={lines}, rows={rows}, blank_lines={blank_lines}, rejects={rejects:?}, \
             bytes={bytes}, error={error:?})"
        )
    }
}

impl SplitCounts {
    fn new(mut split: split::Split) -> Self {
        if !split.done {
            split.error = Some(format!("not read to its end: closed at byte {}", split.offset()));
        }
        let split::Counts { lines, rows, blank_lines, rejects, bytes } = split.counts;
        Self {
            lines,
            rows,
            blank_lines,
            rejects: rejects.into_iter().map(|(reason, count)| (reason.text(), count)).collect(),
            bytes,
            inflated: split.input.codec().map(Codec::name),
            error: split.error,
            first_reject: split.first_reject.map(|reject| Reject::new(&split.source, reject)),
            source: split.source,
        }
    }
}

#[pyclass(module = "ndjson_arrow")]
pub struct Batch {
    batch: table::Batch,
}

type PyColumn<'py> = (Option<Bound<'py, PyBytes>>, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

#[pymethods]
impl Batch {
    #[getter]
    fn rows(&self) -> usize {
        self.batch.rows
    }

    #[getter]
    fn names(&self) -> Vec<String> {
        self.batch.names.clone()
    }

    #[getter]
    fn keys(&self) -> Vec<String> {
        self.batch.keys.clone()
    }

    fn column<'py>(&mut self, py: Python<'py>, index: usize) -> PyResult<PyColumn<'py>> {
        let slot = self.batch.columns.get_mut(index).ok_or_else(|| {
            PyIndexError::new_err(format!("no column {index}: the batch has {}", self.batch.names.len()))
        })?;
        let column = slot.take().ok_or_else(|| PyValueError::new_err(format!("column {index} was taken already")))?;
        let validity = (!column.validity.is_empty()).then(|| PyBytes::new(py, &column.validity));
        let offsets = PyBytes::new_with(py, column.offsets.len() * 4, |bytes| {
            for (target, offset) in bytes.chunks_exact_mut(4).zip(&column.offsets) {
                target.copy_from_slice(&offset.to_le_bytes());
            }
            Ok(())
        })?;
        Ok((validity, offsets, PyBytes::new(py, &column.data)))
    }

    fn __repr__(&self) -> String {
        format!("Batch(rows={}, columns={})", self.batch.rows, self.batch.names.len())
    }
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

    #[pyo3(signature = (source, *, start = 0, end = None))]
    fn open(&mut self, source: &str, start: u64, end: Option<u64>) -> PyResult<()> {
        self.run(|reader| {
            if let Some(open) = reader.split() {
                return Err(wrong_order(&format!("{} is open: close() it first", open.source)));
            }
            reader.open(source, start, end);
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
