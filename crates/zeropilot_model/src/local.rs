//! A model in a directory: its config and the headers of its files.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::architecture::TooManyElements;
use crate::config::ConfigError;
use crate::likeness::TensorNames;
use crate::model::{Model, Weights};
use crate::safetensors::{
    Comparison, Header, HeaderError, INDEX_FILE, IndexError, SINGLE_FILE, ShardIndex, StoredModel,
    compare, header_length, parse_header,
};

/// The name of the config.
pub(crate) const CONFIG_FILE: &str = "config.json";

/// No config and no index of a real model is larger.
pub(crate) const MOST_TEXT_BYTES: u64 = 64 << 20;

/// Why a directory gives no model.
#[derive(Debug, thiserror::Error)]
#[error("failed to read `{path}`")]
pub struct LocalError {
    /// The file or directory.
    pub path: PathBuf,
    /// The cause.
    #[source]
    pub kind: LocalErrorKind,
}

/// Causes of a [`LocalError`].
#[derive(Debug, thiserror::Error)]
pub enum LocalErrorKind {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is larger than such a file can be.
    #[error("the file is too large to be a config or an index")]
    TooLarge,
    /// It is not UTF-8.
    #[error("the file is not UTF-8 text")]
    NotText,
    /// There is neither a config nor a safetensors file.
    #[error("the directory has neither `{CONFIG_FILE}` nor a safetensors file")]
    NoModel,
    /// The config describes no model.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The index is broken.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A header is broken.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The tensors cannot be counted.
    #[error(transparent)]
    TooManyElements(#[from] TooManyElements),
}

/// What a directory says about a model.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalModel {
    /// The model: of the config if its family is known, else with the parameters of the headers and, as far as the
    /// config tells, the structure of a similar one.
    pub model: Model,
    /// Why the config was not used, if there is one and its family is not known.
    pub config_error: Option<ConfigError>,
    /// The tensors in the files, if there are any.
    pub stored: Option<StoredModel>,
    /// The config against the files, if both are there.
    pub comparison: Option<Comparison>,
}

impl LocalModel {
    /// From a config and tensors, at least one of which is there.
    pub(crate) fn assemble(
        config: Option<&str>,
        stored: Option<StoredModel>,
    ) -> Result<Self, LocalErrorKind> {
        let names = stored.as_ref().map(TensorNames::of).unwrap_or_default();
        let built = config
            .map(|text| Model::from_config_and_names(text, &names, Weights::Checkpoint))
            .transpose();
        let (built, config_error) = match built {
            Ok(built) => (built, None),
            Err(error) if stored.is_none() => return Err(error.into()),
            Err(error) => (None, Some(error)),
        };
        let comparison = match (&built, &stored) {
            // A stand-in has other names, so every one would differ.
            (Some(model), Some(_)) if model.stand_in().is_some() => None,
            (Some(model), Some(stored)) => Some(compare(stored, model)),
            _ => None,
        };
        let model = match (built, &stored) {
            (Some(model), Some(stored)) => model.with_tensors_of(stored).unwrap_or(model),
            (Some(model), None) => model,
            (None, Some(stored)) => stored.model()?,
            (None, None) => return Err(LocalErrorKind::NoModel),
        };
        Ok(Self { model, config_error, stored, comparison })
    }
}

/// Reads the model in a directory.
///
/// # Errors
///
/// If there is none in it, or one of its files is broken.
pub fn open(directory: &Path) -> Result<LocalModel, LocalError> {
    let config = read_text(&directory.join(CONFIG_FILE))?;
    let stored = stored(directory)?;
    LocalModel::assemble(config.as_deref(), stored)
        .map_err(|kind| LocalError { path: directory.to_owned(), kind })
}

/// Reads the config in a directory, whatever files are beside it.
#[cfg(feature = "hub")]
pub(crate) fn open_config(directory: &Path) -> Result<LocalModel, LocalError> {
    let config = read_text(&directory.join(CONFIG_FILE))?;
    LocalModel::assemble(config.as_deref(), None)
        .map_err(|kind| LocalError { path: directory.to_owned(), kind })
}

fn stored(directory: &Path) -> Result<Option<StoredModel>, LocalError> {
    let index_path = directory.join(INDEX_FILE);
    let shards: Vec<String> = match read_text(&index_path)? {
        Some(text) => {
            let index = ShardIndex::parse(&text)
                .map_err(|error| LocalError { path: index_path, kind: error.into() })?;
            index.shards().into_iter().map(str::to_owned).collect()
        }
        None if directory.join(SINGLE_FILE).is_file() => vec![SINGLE_FILE.to_owned()],
        None => return Ok(None),
    };
    let headers = shards.iter().map(|shard| read_header(&directory.join(shard)));
    let headers: Vec<Header> = headers.collect::<Result<_, _>>()?;
    Ok(Some(StoredModel::new(headers)))
}

/// The text of a file; `None` if there is no such file.
fn read_text(path: &Path) -> Result<Option<String>, LocalError> {
    let fail = |kind| LocalError { path: path.to_owned(), kind };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fail(error.into())),
    };
    let mut bytes = Vec::new();
    file.take(MOST_TEXT_BYTES + 1).read_to_end(&mut bytes).map_err(|error| fail(error.into()))?;
    if bytes.len() as u64 > MOST_TEXT_BYTES {
        return Err(fail(LocalErrorKind::TooLarge));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| fail(LocalErrorKind::NotText))
}

/// Reads the header of a safetensors file, and nothing behind it.
///
/// # Errors
///
/// If the file cannot be read or has no sound header.
pub fn read_header(path: &Path) -> Result<Header, LocalError> {
    let read = || -> Result<Header, LocalErrorKind> {
        let mut file = File::open(path)?;
        let mut bytes = vec![0; 8];
        file.read_exact(&mut bytes)?;
        let length = header_length(&bytes)?;
        file.take(length).read_to_end(&mut bytes)?;
        Ok(parse_header(&bytes)?)
    };
    read().map_err(|kind| LocalError { path: path.to_owned(), kind })
}
