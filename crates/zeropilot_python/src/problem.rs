//! Problems as exceptions, with the words of the command line.

use std::io;
use std::path::Path;

use pyo3::create_exception;
use pyo3::exceptions::{PyFileNotFoundError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pythonize::Depythonizer;
use serde::de::DeserializeOwned;
use zeropilot_text::Language;
use zeropilot_view::talk::InputProblem;

create_exception!(
    zeropilot,
    ZeropilotError,
    PyValueError,
    "An error that prevents an answer; its text gives the problem, the reason and the fix."
);

/// An exception with these words.
pub(crate) fn problem(words: impl AsRef<str>) -> PyErr {
    ZeropilotError::new_err(words.as_ref().trim_end().to_owned())
}

/// The language with this name, or that of the locale.
pub(crate) fn language(name: Option<&str>) -> PyResult<Language> {
    match name {
        None => Ok(Language::from_locale(|variable| std::env::var(variable).ok())),
        Some(name) => Language::from_name(name).ok_or_else(|| {
            PyValueError::new_err(format!("lang must be `en` or `zh`, not `{name}`"))
        }),
    }
}

/// Arguments as what they mean; what does not fit is named with its place.
pub(crate) fn read<T: DeserializeOwned>(arguments: &Bound<'_, PyAny>) -> PyResult<T> {
    serde_path_to_error::deserialize(&mut Depythonizer::from_object(arguments)).map_err(|error| {
        let place = error.path().to_string();
        PyValueError::new_err(format!("{place}: {}", error.into_inner()))
    })
}

/// The content of a config file.
pub(crate) fn content(path: &str, language: Language) -> PyResult<Vec<u8>> {
    let input = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => {
            PyFileNotFoundError::new_err(InputProblem::NotFound.words(path, language))
        }
        _ => PyOSError::new_err(InputProblem::Unreadable(error).words(path, language)),
    };
    let metadata = std::fs::metadata(Path::new(path)).map_err(input)?;
    if !metadata.is_file() {
        return Err(PyOSError::new_err(InputProblem::NotAFile.words(path, language)));
    }
    std::fs::read(path).map_err(input)
}
