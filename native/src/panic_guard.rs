//! Panics become Python exceptions.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `work`; a panic, which is always a bug, becomes a RuntimeError.
///
/// PyO3 would raise PanicException, which `except Exception` does not catch.
pub fn guarded<T>(work: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        PyRuntimeError::new_err(format!("internal error in ndjson_arrow, please report it: {message}"))
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
