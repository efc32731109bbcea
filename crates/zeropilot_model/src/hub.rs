//! A model by its hub id: from the local cache, else from the endpoint.
//!
//! Nothing is written, and no weight is fetched: the config, and the headers of safetensors files where
//! the config's family is not known or the caller asks for them. The variables `HF_HOME`,
//! `HF_HUB_CACHE`, `HF_ENDPOINT` and `HF_HUB_OFFLINE` mean what they mean to `huggingface_hub`. The
//! `hf-hub` crate brings an asynchronous runtime and the transfer of weights, neither of which is needed.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ureq::http::{Response, StatusCode};
use ureq::{Agent, Body};

use crate::local::{self, CONFIG_FILE, LocalError, LocalErrorKind, LocalModel, MOST_TEXT_BYTES};
use crate::safetensors::{
    Header, HeaderError, INDEX_FILE, IndexError, SINGLE_FILE, ShardIndex, StoredModel,
    header_length, parse_header,
};

/// Where a hub is asked if nothing else is said.
const ENDPOINT: &str = "https://huggingface.co";

/// The newest state of a repository.
const NEWEST: &str = "main";

/// Bytes that hold the length of a safetensors header.
const LENGTH_BYTES: u64 = 8;

/// Why a hub id gives no model.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// The text is no hub id.
    #[error("`{0}` is not a hub id such as `Qwen/Qwen3-8B`")]
    NotAnId(String),
    /// The network is switched off and the cache does not have it.
    #[error("`{0}` is not in the local cache, and `HF_HUB_OFFLINE` is set")]
    NotCached(String),
    /// The endpoint does not have it.
    #[error("`{url}` does not exist")]
    NotFound {
        /// What was asked for.
        url: String,
    },
    /// The endpoint wants to know who asks.
    #[error("`{url}` needs a token: the model is gated or private")]
    NotAllowed {
        /// What was asked for.
        url: String,
    },
    /// The endpoint answers with something else.
    #[error("`{url}` returned HTTP status {status}")]
    Status {
        /// What was asked for.
        url: String,
        /// The answer.
        status: u16,
    },
    /// The endpoint cannot be reached.
    #[error("failed to reach `{url}`")]
    Network {
        /// What was asked for.
        url: String,
        /// The cause.
        #[source]
        cause: Box<ureq::Error>,
    },
    /// The connection broke, or an answer is too large.
    #[error("failed to read `{url}`")]
    Read {
        /// What was asked for.
        url: String,
        /// The cause.
        #[source]
        cause: io::Error,
    },
    /// A cached file is broken.
    #[error(transparent)]
    Local(#[from] LocalError),
    /// What was fetched gives no model.
    #[error("failed to read the model `{id}`")]
    Model {
        /// The id.
        id: String,
        /// The cause.
        #[source]
        cause: LocalErrorKind,
    },
}

/// Where models are looked for.
#[derive(Debug, Clone)]
pub struct Hub {
    /// The directory with `models--org--name`, if one is known.
    pub cache: Option<PathBuf>,
    /// The address of the hub, without a slash at the end.
    pub endpoint: String,
    /// Whether the network is switched off.
    pub offline: bool,
    /// What gated models ask for; it is sent to the endpoint and to nobody else.
    pub token: Option<String>,
}

/// Whether the headers of files are wanted too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Headers {
    /// Only if the config's family is not known.
    #[default]
    IfNeeded,
    /// Always: two requests for each file.
    Always,
}

impl Hub {
    /// As the variables of the environment say.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let directory = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = || directory("HOME").or_else(|| directory("USERPROFILE"));
        let caches = || directory("XDG_CACHE_HOME").or_else(|| Some(home()?.join(".cache")));
        let hf_home = || directory("HF_HOME").or_else(|| Some(caches()?.join("huggingface")));
        let is_on = |name| {
            let value = variable(name).filter(|value| !value.is_empty())?;
            Some(["1", "ON", "YES", "TRUE"].contains(&value.to_uppercase().as_str()))
        };
        let endpoint = variable("HF_ENDPOINT").unwrap_or_else(|| ENDPOINT.to_owned());
        Self {
            cache: directory("HF_HUB_CACHE")
                .or_else(|| directory("HUGGINGFACE_HUB_CACHE"))
                .or_else(|| Some(hf_home()?.join("hub"))),
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            offline: is_on("HF_HUB_OFFLINE")
                .or_else(|| is_on("TRANSFORMERS_OFFLINE"))
                .unwrap_or(false),
            token: None,
        }
    }

    /// The model of an id, in its newest state.
    ///
    /// # Errors
    ///
    /// If it is nowhere, cannot be reached, or describes no model.
    pub fn find(&self, id: &str) -> Result<LocalModel, HubError> {
        self.find_at(id, NEWEST, Headers::IfNeeded)
    }

    /// The model of an id at a branch, a tag or a commit.
    ///
    /// # Errors
    ///
    /// As [`Hub::find`].
    pub fn find_at(
        &self,
        id: &str,
        revision: &str,
        headers: Headers,
    ) -> Result<LocalModel, HubError> {
        if !is_id(id) || !is_revision(revision) {
            return Err(HubError::NotAnId(format!("{id}@{revision}").replace("@main", "")));
        }
        if let Some(snapshot) = self.snapshot(id, revision) {
            let cached = open_snapshot(&snapshot)?;
            if self.offline || headers == Headers::IfNeeded || cached.stored.is_some() {
                return Ok(cached);
            }
        }
        if self.offline {
            return Err(HubError::NotCached(id.to_owned()));
        }
        Remote::new(self, id, revision).model(headers)
    }

    /// The directory of a cached state that has a config in it.
    fn snapshot(&self, id: &str, revision: &str) -> Option<PathBuf> {
        let repository = self.cache.as_ref()?.join(format!("models--{}", id.replace('/', "--")));
        let commit = fs::read_to_string(repository.join("refs").join(revision)).ok();
        let commit = commit.as_deref().map_or(revision, str::trim);
        // The file is ours to read, but what it says becomes a path.
        let snapshot = is_revision(commit).then(|| repository.join("snapshots").join(commit))?;
        snapshot.join(CONFIG_FILE).is_file().then_some(snapshot)
    }
}

/// A cached state often has the config and not, or not yet, the weights.
fn open_snapshot(directory: &Path) -> Result<LocalModel, HubError> {
    match local::open(directory) {
        Err(LocalError { kind: LocalErrorKind::Io(error), .. })
            if error.kind() == io::ErrorKind::NotFound =>
        {
            Ok(local::open_config(directory)?)
        }
        other => Ok(other?),
    }
}

/// `name` or `organisation/name`.
fn is_id(id: &str) -> bool {
    let is_part = |part: &str| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        !part.is_empty()
            && part.chars().all(allowed)
            && !part.starts_with('.')
            && !part.contains("..")
    };
    id.len() <= 96 && id.split('/').count() <= 2 && id.split('/').all(is_part)
}

fn is_revision(revision: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    let sound = |part: &str| !part.is_empty() && part.chars().any(|c| c != '.');
    revision.len() <= 128 && revision.chars().all(allowed) && revision.split('/').all(sound)
}

/// One state of one repository on the endpoint.
struct Remote<'a> {
    agent: Agent,
    hub: &'a Hub,
    id: &'a str,
    base: String,
}

impl<'a> Remote<'a> {
    fn new(hub: &'a Hub, id: &'a str, revision: &str) -> Self {
        let config = Agent::config_builder()
            .timeout_connect(Some(Duration::from_secs(10)))
            .timeout_global(Some(Duration::from_secs(60)))
            .http_status_as_error(false)
            // Nobody who listens on the way may send what was asked for in private elsewhere.
            .https_only(hub.endpoint.starts_with("https:"))
            .build();
        let base = format!("{}/{id}/resolve/{revision}", hub.endpoint);
        Self { agent: config.into(), hub, id, base }
    }

    fn model(&self, headers: Headers) -> Result<LocalModel, HubError> {
        let config = self.text(CONFIG_FILE)?;
        if headers == Headers::IfNeeded
            && let Some(config) = &config
            && let Ok(found) = LocalModel::assemble(Some(config), None)
        {
            if found.model.stand_in().is_none() {
                return Ok(found);
            }
            // Its files tell the parameters exactly; without them the stand-in counts.
            return Ok(match self.stored() {
                Ok(Some(stored)) => LocalModel::assemble(Some(config), Some(stored))
                    .map_err(|cause| self.broken(cause))?,
                Ok(None) | Err(_) => found,
            });
        }
        let stored = self.stored()?;
        if config.is_none() && stored.is_none() {
            return Err(HubError::NotFound { url: self.url(CONFIG_FILE) });
        }
        LocalModel::assemble(config.as_deref(), stored).map_err(|cause| self.broken(cause))
    }

    fn stored(&self) -> Result<Option<StoredModel>, HubError> {
        let Some(index) = self.text(INDEX_FILE)? else {
            let header = self.header(SINGLE_FILE)?;
            return Ok(header.map(|header| StoredModel::new([header])));
        };
        let index =
            ShardIndex::parse(&index).map_err(|error: IndexError| self.broken(error.into()))?;
        let mut headers = Vec::new();
        for shard in index.shards() {
            let missing = || HubError::NotFound { url: self.url(shard) };
            headers.push(self.header(shard)?.ok_or_else(missing)?);
        }
        Ok(Some(StoredModel::new(headers)))
    }

    fn broken(&self, cause: LocalErrorKind) -> HubError {
        HubError::Model { id: self.id.to_owned(), cause }
    }

    fn url(&self, file: &str) -> String {
        format!("{}/{file}", self.base)
    }

    /// The beginning of a file, up to `end`; `None` if there is no such file.
    fn get(&self, file: &str, end: Option<u64>) -> Result<Option<Response<Body>>, HubError> {
        let url = self.url(file);
        let mut request = self.agent.get(&url);
        if let Some(end) = end {
            request = request.header("Range", format!("bytes=0-{}", end.saturating_sub(1)));
        }
        if let Some(token) = &self.hub.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let response = request
            .call()
            .map_err(|cause| HubError::Network { url: url.clone(), cause: Box::new(cause) })?;
        match response.status() {
            StatusCode::OK | StatusCode::PARTIAL_CONTENT => Ok(Some(response)),
            StatusCode::NOT_FOUND => Ok(None),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(HubError::NotAllowed { url }),
            status => Err(HubError::Status { url, status: status.as_u16() }),
        }
    }

    fn text(&self, file: &str) -> Result<Option<String>, HubError> {
        let Some(mut response) = self.get(file, None)? else { return Ok(None) };
        let text = response.body_mut().with_config().limit(MOST_TEXT_BYTES).read_to_string();
        let failed =
            |cause: ureq::Error| HubError::Network { url: self.url(file), cause: Box::new(cause) };
        text.map(Some).map_err(failed)
    }

    /// A server may ignore the range and send the whole file: no more than the beginning is read.
    fn beginning(&self, file: &str, length: u64) -> Result<Option<Vec<u8>>, HubError> {
        let Some(mut response) = self.get(file, Some(length))? else { return Ok(None) };
        let mut bytes = Vec::new();
        let read = response.body_mut().as_reader().take(length).read_to_end(&mut bytes);
        read.map_err(|cause| HubError::Read { url: self.url(file), cause })?;
        Ok(Some(bytes))
    }

    fn header(&self, file: &str) -> Result<Option<Header>, HubError> {
        let broken = |error: HeaderError| self.broken(error.into());
        let Some(first) = self.beginning(file, LENGTH_BYTES)? else { return Ok(None) };
        let length = header_length(&first).map_err(broken)?;
        let Some(bytes) = self.beginning(file, LENGTH_BYTES + length)? else { return Ok(None) };
        parse_header(&bytes).map(Some).map_err(broken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_means_what_it_means_to_the_python_library() {
        let hub = |pairs: &'static [(&str, &str)]| {
            Hub::from_environment(|name| {
                pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            })
        };
        let plain = hub(&[("HOME", "/u")]);
        assert_eq!(plain.cache.as_deref(), Some(Path::new("/u/.cache/huggingface/hub")));
        assert_eq!((plain.endpoint.as_str(), plain.offline), (ENDPOINT, false));
        let set =
            hub(&[("HF_HOME", "/h"), ("HF_ENDPOINT", "http://mirror/"), ("HF_HUB_OFFLINE", "yes")]);
        assert_eq!(set.cache.as_deref(), Some(Path::new("/h/hub")));
        assert_eq!((set.endpoint.as_str(), set.offline), ("http://mirror", true));
        assert_eq!(
            hub(&[("HF_HUB_CACHE", "/c"), ("HF_HOME", "/h")]).cache.as_deref(),
            Some(Path::new("/c"))
        );
        assert!(!hub(&[("HF_HUB_OFFLINE", "0")]).offline);
    }

    #[test]
    fn ids_lead_nowhere_else() {
        for id in ["gpt2", "Qwen/Qwen3-8B", "meta-llama/Llama-3.1-8B"] {
            assert!(is_id(id), "{id}");
        }
        for id in ["", "a/b/c", "../x", "a/..", "/x", "a b", "a?b", "a/b#c", "x/.git", "a..b"] {
            assert!(!is_id(id), "{id}");
        }
        assert!(
            is_revision("main")
                && is_revision("refs/pr/1")
                && !is_revision("../x")
                && !is_revision("")
        );
    }
}
