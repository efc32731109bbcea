//! A hub that lies about lengths, never ends, or sends elsewhere: an error or a model, soon, and no secret told.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use zeropilot_model::hub::{Hub, HubError};

const CONFIG: &str = r#"{"model_type": "qwen2", "hidden_size": 8, "intermediate_size": 4,
    "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 10}"#;

/// A server that does what it is told with every connection, and remembers what it was sent.
struct Server {
    address: String,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(behave: impl Fn(&str, &mut TcpStream) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hearing = Arc::clone(&heard);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                let lines = BufReader::new(&stream).lines().map_while(Result::ok);
                let lines: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
                let path =
                    lines.first().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
                let path = path.to_owned();
                hearing.lock().expect("a list").extend(lines);
                behave(&path, &mut stream);
            }
        });
        Self { address, heard }
    }

    fn hub(&self) -> Hub {
        let token = Some("a-secret".to_owned());
        Hub { cache: None, endpoint: self.address.clone(), offline: false, token }
    }

    fn heard(&self, word: &str) -> bool {
        self.heard.lock().expect("a list").iter().any(|line| line.contains(word))
    }
}

fn say(stream: &mut TcpStream, head: &str, body: &[u8]) {
    let head = format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n");
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
}

fn file(stream: &mut TcpStream, body: &[u8]) {
    say(stream, &format!("200 OK\r\nContent-Length: {}", body.len()), body);
}

#[test]
fn a_body_shorter_than_its_length_is_an_error() {
    let server = Server::start(|_, stream| {
        say(stream, "200 OK\r\nContent-Length: 9223372036854775807", CONFIG.as_bytes());
    });
    assert!(matches!(server.hub().find("org/name"), Err(HubError::Network { .. })));
}

#[test]
fn a_config_that_never_ends_is_given_up() {
    let server = Server::start(|_, stream| {
        say(stream, "200 OK", b"{");
        while stream.write_all(&[b' '; 1 << 16]).is_ok() {}
    });
    let began = Instant::now();
    assert!(matches!(server.hub().find("org/name"), Err(HubError::Network { .. })));
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

#[test]
fn a_header_that_claims_too_much_is_not_fetched() {
    let server = Server::start(|path, stream| match path {
        path if path.ends_with("model.safetensors") => {
            let mut bytes = (1_u64 << 63).to_le_bytes().to_vec();
            bytes.extend([b' '; 100]);
            file(stream, &bytes);
        }
        path if path.ends_with("config.json") => file(stream, br#"{"model_type": "made-up"}"#),
        _ => say(stream, "404 Not Found\r\nContent-Length: 0", b""),
    });
    let error = server.hub().find("org/name").expect_err("no such header");
    assert!(matches!(error, HubError::Model { .. }), "{error:?}");
    assert!(!server.heard("bytes=0-92233720368547758"), "the claim was believed");
}

#[test]
fn the_token_stays_with_the_hub_when_it_sends_elsewhere() {
    let elsewhere = Server::start(|_, stream| file(stream, CONFIG.as_bytes()));
    let target = elsewhere.address.clone();
    let server = Server::start(move |_, stream| {
        say(stream, &format!("302 Found\r\nLocation: {target}/any\r\nContent-Length: 0"), b"");
    });
    server.hub().find("org/name").expect("files may lie on another host");
    assert!(server.heard("a-secret"));
    assert!(!elsewhere.heard("a-secret"), "the token went to another host");
}

#[test]
fn going_round_in_circles_ends() {
    let server = Server::start(|path, stream| {
        say(stream, &format!("302 Found\r\nLocation: {path}x\r\nContent-Length: 0"), b"");
    });
    assert!(matches!(server.hub().find("org/name"), Err(HubError::Network { .. })));
}

#[test]
fn what_is_no_http_is_an_error() {
    let server = Server::start(|_, stream| {
        let _ = stream.write_all(&[0xff; 4096]);
    });
    assert!(matches!(server.hub().find("org/name"), Err(HubError::Network { .. })));
}
