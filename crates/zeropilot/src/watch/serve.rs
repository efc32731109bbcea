//! OpenMetrics over HTTP, on this machine alone.
//!
//! One page, asked for by one program every few seconds: the standard library's sockets do, and no server has to be
//! kept up to date. Who speaks slowly or not at all is left.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use zeropilot_run::signals;
use zeropilot_text::{Language, tr};
use zeropilot_view::run::watch::metrics;
use zeropilot_view::{escaped, system};

use super::source::Source;

/// What a request gets.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest request that is read.
const LONGEST: u64 = 8192;
const TICK: Duration = Duration::from_millis(50);

/// Serves until a signal.
pub(super) fn serve(address: &str, source: &mut Source, language: Language) -> Result<(), String> {
    let address = loopback(address, language)?;
    let unusable = |error: io::Error| unusable(address, &error, language);
    let listener = TcpListener::bind(address).map_err(unusable)?;
    listener.set_nonblocking(true).map_err(unusable)?;
    let signals = signals::catch().map_err(unusable)?;
    let address = listener.local_addr().map_err(unusable)?;
    let _ = writeln!(io::stderr().lock(), "zeropilot: http://{address}/metrics");
    while signals.try_recv().is_err() {
        match listener.accept() {
            // Whoever asked may be gone; the next will not.
            Ok((stream, _)) => {
                let _ = answer(stream, || {
                    let (run, machine) = source.look_at_both();
                    metrics::page(run.as_ref(), &machine, language)
                });
            }
            Err(_) => thread::sleep(TICK),
        }
    }
    Ok(())
}

/// What a run does is nobody's business elsewhere: there is no password here.
fn loopback(text: &str, language: Language) -> Result<SocketAddr, String> {
    let shown = escaped(text);
    let address: SocketAddr = text.parse().map_err(|_| {
        tr!(
            language,
            "error: --openmetrics {shown}: not an address\n  help: write an address such as 127.0.0.1:9400",
            "错误：--openmetrics {shown}：不是有效地址\n  建议：写成 127.0.0.1:9400 的形式"
        )
    })?;
    if address.ip().is_loopback() {
        return Ok(address);
    }
    Err(tr!(
        language,
        "error: --openmetrics {shown}: only loopback addresses are allowed\n  why: The metrics have no password and no encryption, so other machines could read the names of runs and processes.\n  help: use 127.0.0.1:{port}, and forward the port with an agent on this machine or `ssh -L {port}:127.0.0.1:{port}`",
        "错误：--openmetrics {shown}：只允许监听本机回环地址\n  原因：指标没有密码也不加密，其他机器可以读到运行和进程的名称。\n  建议：使用 127.0.0.1:{port}，由本机的采集程序或 `ssh -L {port}:127.0.0.1:{port}` 转发",
        port = address.port()
    ))
}

fn unusable(address: SocketAddr, error: &io::Error, language: Language) -> String {
    let error = system::failure(error, language);
    tr!(
        language,
        "error: cannot listen on {address}: {error}\n  help: choose another port; another program may be using this one",
        "错误：无法监听 {address}：{error}\n  建议：换一个端口，这个端口可能已被占用"
    )
}

/// Reads one request and answers it.
fn answer(mut stream: TcpStream, page: impl FnOnce() -> String) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new((&stream).take(LONGEST)).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    // The rest of the head is read so that the other side is not cut off while it still speaks.
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let words: Vec<&str> = request.split_ascii_whitespace().collect();
    let (status, kind, body) = match words.as_slice() {
        ["GET" | "HEAD", "/metrics", _] => ("200 OK", metrics::CONTENT_TYPE, page()),
        ["GET" | "HEAD", _, _] => {
            ("404 Not Found", "text/plain; charset=utf-8", "/metrics\n".to_owned())
        }
        _ => ("405 Method Not Allowed", "text/plain; charset=utf-8", "GET /metrics\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    if words.first() != Some(&"HEAD") {
        stream.write_all(body.as_bytes())?;
    }
    stream.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_served() {
        for open in ["0.0.0.0:9400", "192.168.1.2:9400", "[::]:9400"] {
            for language in [Language::English, Language::Chinese] {
                let problem = loopback(open, language).expect_err("refused");
                assert!(problem.contains("127.0.0.1:9400"), "{problem}");
            }
        }
        assert!(loopback("127.0.0.1:9400", Language::English).is_ok());
        assert!(loopback("[::1]:0", Language::English).is_ok());
        assert!(loopback("9400", Language::English).is_err());
    }
}
