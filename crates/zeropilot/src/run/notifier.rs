//! Messages to wherever people look while a run is far away: a command or a webhook that is told what happens.
//!
//! They are sent by a thread of their own, so that a slow receiver keeps no run waiting.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use zeropilot_record::{Cause, Event, RunEvent, RunInfo, SHAPE};
use zeropilot_run::environment::masked;
use zeropilot_run::now;
use zeropilot_text::{Language, Text, tr};
use zeropilot_view::run as words;

/// How long one message may take.
const LIMIT: Duration = Duration::from_secs(20);
/// How long the end of a run waits for messages that are under way.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where messages go.
#[derive(Debug, Clone)]
enum Target {
    /// A shell command, which gets the message on its standard input.
    Command(String),
    /// A URL that it is posted to.
    Webhook(String),
}

/// A message.
struct Notice {
    event: String,
    text: String,
    body: String,
}

/// Sends messages.
pub(super) struct Notifier {
    notices: Mutex<Option<Sender<Notice>>>,
    /// Why a message could not be sent, each one.
    failures: Mutex<Receiver<String>>,
    run: String,
    host: Option<String>,
    language: Language,
    /// Why the last attempt ended, until it is told.
    ended: Mutex<Option<Cause>>,
}

impl Notifier {
    /// To everywhere that is named; nothing happens if that is nowhere.
    pub(super) fn start(targets: &[String], info: &RunInfo, language: Language) -> Self {
        let targets: Vec<Target> = targets.iter().map(|target| Target::read(target)).collect();
        let (notices, to_send) = channel::<Notice>();
        let (failed, failures) = channel();
        let run = info.id.clone();
        let sender = (!targets.is_empty()).then_some(notices);
        thread::spawn(move || {
            for notice in to_send {
                for target in &targets {
                    if let Err(why) = target.send(&notice, &run) {
                        let _ = failed.send(why);
                    }
                }
            }
        });
        Self {
            notices: Mutex::new(sender),
            failures: Mutex::new(failures),
            run: info.id.clone(),
            host: info.host.clone(),
            language,
            ended: Mutex::default(),
        }
    }

    /// Sends what happened, if it is worth a message.
    pub(super) fn saw(&self, happening: &RunEvent) {
        if let (RunEvent::AttemptEnded { cause, .. }, Ok(mut ended)) =
            (happening, self.ended.lock())
        {
            *ended = Some(cause.clone());
        }
        let Some(text) = self.text(happening) else { return };
        let (run, language) = (&self.run, self.language);
        let host = self.host.as_ref().map_or(String::new(), |host| format!(" ({host})"));
        let text = tr!(language, "run {run}{host}: {text}", "运行 {run}{host}：{text}");
        let event = serde_json::to_value(Event::new(now(), happening.clone())).unwrap_or_default();
        let name = event["event"].as_str().unwrap_or_default().to_owned();
        let body = json!({
            "shape": SHAPE,
            "run": self.run,
            "host": self.host,
            "text": text,
            "event": event,
        });
        let notice = Notice { event: name, text, body: masked(&body.to_string()).into_owned() };
        if let Ok(notices) = self.notices.lock()
            && let Some(notices) = notices.as_ref()
        {
            let _ = notices.send(notice);
        }
    }

    fn text(&self, happening: &RunEvent) -> Option<String> {
        let language = self.language;
        match happening {
            RunEvent::RunEnded { cause, exit_code } => Some(tr!(
                language,
                "{} (exit code {exit_code})",
                "{}（退出码 {exit_code}）",
                words::cause_words(cause, language)
            )),
            RunEvent::Restarting { .. } | RunEvent::FallbackTaken { .. } => {
                let ended = self.ended.lock().ok().and_then(|mut ended| ended.take());
                let ended = ended.map(|cause| words::cause_words(&cause, language));
                let next = words::happening(happening, language);
                let separator = Text::new("; ", "；").get(language);
                Some(ended.into_iter().chain(next).collect::<Vec<_>>().join(separator))
            }
            RunEvent::Hang { .. }
            | RunEvent::NotFinite { .. }
            | RunEvent::Spike { .. }
            | RunEvent::Slower { .. }
            | RunEvent::Straggler { .. }
            | RunEvent::NotStartedAgain { .. }
            | RunEvent::ScratchNotAllowed { .. }
            | RunEvent::NormNotFinite { .. }
            | RunEvent::CheckpointsShared { .. }
            | RunEvent::NoRanksYet { .. } => words::happening(happening, language),
            _ => None,
        }
    }

    /// Why messages could not be sent since the last time.
    pub(super) fn failures(&self) -> Vec<String> {
        self.failures.lock().map(|failures| failures.try_iter().collect()).unwrap_or_default()
    }

    /// Waits for what is under way, but not for ever. Gives what could not be sent.
    pub(super) fn finish(&self) -> Vec<String> {
        if let Ok(mut notices) = self.notices.lock() {
            *notices = None;
        }
        let Ok(failures) = self.failures.lock() else { return Vec::new() };
        let end = Instant::now() + PATIENCE;
        let mut all = Vec::new();
        // It is closed once everything is sent.
        while let Ok(why) = failures.recv_timeout(end.saturating_duration_since(Instant::now())) {
            all.push(why);
        }
        all
    }
}

impl Target {
    fn read(text: &str) -> Self {
        let is_url = ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme));
        if is_url { Self::Webhook(text.to_owned()) } else { Self::Command(text.to_owned()) }
    }

    fn send(&self, notice: &Notice, run: &str) -> Result<(), String> {
        match self {
            Self::Command(command) => tell(command, notice, run),
            Self::Webhook(url) => post(url, notice),
        }
    }
}

fn tell(command: &str, notice: &Notice, run: &str) -> Result<(), String> {
    let mut child = Command::new("sh")
        .args(["-c", command])
        .env("ZEROPILOT_RUN", run)
        .env("ZEROPILOT_EVENT", &notice.event)
        .env("ZEROPILOT_TEXT", &notice.text)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    if let Some(mut input) = child.stdin.take() {
        // It need not read.
        let _ = writeln!(input, "{}", notice.body);
    }
    let end = Instant::now() + LIMIT;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("`{command}`: {status}")),
            Ok(None) if Instant::now() < end => thread::sleep(Duration::from_millis(50)),
            Ok(None) => break,
            Err(error) => return Err(format!("`{command}`: {error}")),
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    Err(format!("`{command}`: > {} s", LIMIT.as_secs()))
}

fn post(url: &str, notice: &Notice) -> Result<(), String> {
    let agent = ureq::Agent::config_builder().timeout_global(Some(LIMIT)).build().new_agent();
    let sent = agent.post(url).header("Content-Type", "application/json").send(&notice.body);
    // The path of a webhook is its password.
    let host = url.split('/').take(3).collect::<Vec<_>>().join("/");
    sent.map(drop).map_err(|error| {
        let error = error.to_string().replace(url, &host);
        format!("{}: {error}", masked(&host))
    })
}
