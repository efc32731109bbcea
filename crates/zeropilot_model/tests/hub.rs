//! Hub ids against a server on this machine and a cache directory.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use zeropilot_model::hub::{Headers, Hub, HubError};
use zeropilot_model::safetensors::Difference;
use zeropilot_model::{ConfigError, Names};

const CONFIG: &str = r#"{"model_type": "qwen2", "hidden_size": 8, "intermediate_size": 4,
    "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 10,
    "tie_word_embeddings": true, "torch_dtype": "bfloat16"}"#;

fn safetensors(tensors: &[(&str, &[u64])]) -> Vec<u8> {
    let mut offset = 0;
    let members: Vec<String> = tensors
        .iter()
        .map(|(name, shape)| {
            let begin = offset;
            offset += 2 * shape.iter().product::<u64>();
            format!(
                r#""{name}":{{"dtype":"BF16","shape":{shape:?},"data_offsets":[{begin},{offset}]}}"#
            )
        })
        .collect();
    let json = format!("{{{}}}", members.join(","));
    let data = vec![0; usize::try_from(offset).expect("small")];
    [&(json.len() as u64).to_le_bytes(), json.as_bytes(), &data].concat()
}

/// Answers requests with files, and remembers them.
struct Server {
    address: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(files: Vec<(&'static str, Vec<u8>)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming() {
                answer(stream.expect("a connection"), &files, &seen);
            }
        });
        Self { address, requests }
    }

    fn hub(&self, cache: Option<&Path>) -> Hub {
        Hub {
            cache: cache.map(Path::to_owned),
            endpoint: self.address.clone(),
            offline: false,
            token: None,
        }
    }

    fn requests(&self) -> usize {
        self.requests.lock().expect("a list").len()
    }
}

fn answer(stream: TcpStream, files: &[(&str, Vec<u8>)], seen: &Mutex<Vec<String>>) {
    let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
    let path = lines.next().and_then(|line| line.split(' ').nth(1).map(str::to_owned));
    let path = path.unwrap_or_default();
    let mut end = None;
    for line in lines.take_while(|line| !line.is_empty()) {
        if let Some(range) = line.to_lowercase().strip_prefix("range: bytes=0-") {
            end = range.parse::<usize>().ok();
        }
    }
    seen.lock().expect("a list").push(path.clone());
    let (status, body): (&str, &[u8]) = match files.iter().find(|(name, _)| path.ends_with(name)) {
        _ if path.starts_with("/gated/") => ("401 Unauthorized", b""),
        None => ("404 Not Found", b""),
        Some((_, body)) => match end {
            Some(end) => ("206 Partial Content", &body[..body.len().min(end + 1)]),
            None => ("200 OK", body),
        },
    };
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    let mut stream = &stream;
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
}

fn cached(cache: &Path, files: &[(&str, &[u8])]) {
    let repository = cache.join("models--org--name");
    let snapshot = repository.join("snapshots/0123abc");
    fs::create_dir_all(&snapshot).expect("a directory");
    fs::create_dir_all(repository.join("refs")).expect("a directory");
    fs::write(repository.join("refs/main"), "0123abc").expect("a file");
    for (name, content) in files {
        fs::write(snapshot.join(name), content).expect("a file");
    }
}

#[test]
fn the_cache_is_asked_before_the_network() {
    let directory = tempfile::tempdir().expect("a directory");
    cached(directory.path(), &[("config.json", CONFIG.as_bytes())]);
    let server = Server::start(Vec::new());
    let found = server.hub(Some(directory.path())).find("org/name").expect("a model");
    assert_eq!(found.model.class(), "Qwen2ForCausalLM");
    assert_eq!(server.requests(), 0);
}

#[test]
fn a_cached_index_without_its_shards_is_no_obstacle() {
    let directory = tempfile::tempdir().expect("a directory");
    let index = br#"{"weight_map": {"a": "model-1.safetensors"}}"#;
    cached(
        directory.path(),
        &[("config.json", CONFIG.as_bytes()), ("model.safetensors.index.json", index)],
    );
    let server = Server::start(Vec::new());
    let found = server.hub(Some(directory.path())).find("org/name").expect("a model");
    assert_eq!(found.stored, None);
}

#[test]
fn what_is_not_cached_comes_from_the_endpoint() {
    let server =
        Server::start(vec![("/org/name/resolve/main/config.json", CONFIG.as_bytes().to_vec())]);
    let found = server.hub(None).find("org/name").expect("a model");
    assert_eq!(found.model.parameters().count(), 14);
    assert_eq!(server.requests(), 1);
}

#[test]
fn only_the_beginnings_of_files_are_fetched() {
    let shard =
        safetensors(&[("model.embed_tokens.weight", &[10, 8]), ("lm_head.weight", &[10, 8])]);
    let index = r#"{"weight_map": {"model.embed_tokens.weight": "m-1.safetensors", "lm_head.weight": "m-1.safetensors"}}"#;
    let server = Server::start(vec![
        ("config.json", CONFIG.as_bytes().to_vec()),
        ("model.safetensors.index.json", index.as_bytes().to_vec()),
        ("m-1.safetensors", shard),
    ]);
    let found = server.hub(None).find_at("org/name", "main", Headers::Always).expect("a model");
    let comparison = found.comparison.expect("both are there");
    let twice = |difference: &&Difference| matches!(difference, Difference::StoredTwice { name, .. } if name == "lm_head.weight");
    assert_eq!(comparison.differences.iter().filter(twice).count(), 1);
}

#[test]
fn an_unknown_family_is_read_from_its_headers() {
    let server = Server::start(vec![
        ("config.json", br#"{"model_type": "brand_new"}"#.to_vec()),
        ("/model.safetensors", safetensors(&[("a.0.weight", &[3, 4]), ("a.1.weight", &[5])])),
    ]);
    let found = server.hub(None).find("org/name").expect("a model");
    assert_eq!(found.model.elements().0, 17);
    assert_eq!(*found.model.names(), Names::Stored);
    assert!(matches!(found.config_error, Some(ConfigError::UnknownFamily { .. })));
}

#[test]
fn every_way_to_fail_has_its_own_error() {
    let server = Server::start(Vec::new());
    let hub = server.hub(None);
    assert!(matches!(hub.find("org/name"), Err(HubError::NotFound { .. })));
    assert!(matches!(hub.find("gated/name"), Err(HubError::NotAllowed { .. })));
    assert!(matches!(hub.find("../name"), Err(HubError::NotAnId(_))));
    let offline = Hub { offline: true, ..server.hub(None) };
    assert!(matches!(offline.find("org/name"), Err(HubError::NotCached(_))));
    let nobody = Hub { endpoint: "http://127.0.0.1:1".to_owned(), ..server.hub(None) };
    assert!(matches!(nobody.find("org/name"), Err(HubError::Network { .. })));
}
