//! Words on a terminal from a thread of their own: a terminal that does not read must not keep the supervisor waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

/// How long words may take to be written. Then whoever says them goes on.
const PATIENCE: Duration = Duration::from_secs(1);

type Words = Box<dyn FnOnce() + Send>;

pub(super) struct Speaker {
    words: Sender<(Words, SyncSender<()>)>,
    /// Words that are not written yet.
    behind: Arc<AtomicUsize>,
}

impl Speaker {
    pub(super) fn start() -> Self {
        let (words, said) = channel::<(Words, SyncSender<()>)>();
        let behind = Arc::new(AtomicUsize::new(0));
        let left = behind.clone();
        thread::spawn(move || {
            for (words, done) in said {
                words();
                left.fetch_sub(1, Ordering::SeqCst);
                // Whoever waited may have given up.
                let _ = done.send(());
            }
        });
        Self { words, behind }
    }

    /// Says something, in order. It is written when this returns, unless nobody reads.
    pub(super) fn say(&self, words: impl FnOnce() + Send + 'static) {
        let (done, written) = sync_channel(1);
        let is_late = self.behind.fetch_add(1, Ordering::SeqCst) > 0;
        if self.words.send((Box::new(words), done)).is_ok() && !is_late {
            let _ = written.recv_timeout(PATIENCE);
        }
    }
}

impl Speaker {
    /// Says something that is not worth waiting for: nothing if earlier words are not written yet.
    pub(super) fn mention(&self, words: impl FnOnce() + Send + 'static) {
        if self.behind.load(Ordering::SeqCst) == 0 {
            self.behind.fetch_add(1, Ordering::SeqCst);
            let _ = self.words.send((Box::new(words), sync_channel(1).0));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn words_come_in_order_and_a_reader_that_is_late_keeps_nobody() {
        let speaker = Speaker::start();
        let (free, waits) = channel::<()>();
        let (sender, said) = channel();
        speaker.say(move || {
            let _ = waits.recv();
        });
        for number in 0..3 {
            let sender = sender.clone();
            speaker.say(move || {
                let _ = sender.send(number);
            });
        }
        assert!(said.try_recv().is_err(), "they wait for the first");
        drop(free);
        assert_eq!(said.iter().take(3).collect::<Vec<_>>(), [0, 1, 2]);
    }
}
