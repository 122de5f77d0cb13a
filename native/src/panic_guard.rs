//! Panics at the border to Python.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A panic is a bug of ours, and becomes an ordinary exception: PyO3's own PanicException passes `except Exception`.
pub fn guarded<T>(work: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        PyRuntimeError::new_err(format!("ndjson_arrow failed inside, please report it: {message}"))
    })
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
