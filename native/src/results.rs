//! What Python gets to see: counts, rejects and batches.

use crate::inflate::Codec;
use crate::{reject, split, table};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;

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
    pub fn new(source: &str, reject: reject::Reject) -> Self {
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
    pub fn new(mut split: split::Split) -> Self {
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
    pub batch: table::Batch,
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
