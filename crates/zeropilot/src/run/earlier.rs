//! The run that `--continue` goes on with.

use zeropilot_record::{Cause, Verdict};
use zeropilot_run::{Continuation, Record, RunCommand};
use zeropilot_text::Language;
use zeropilot_view::run as words;

use super::arguments::RunArguments;

/// A run in a record, and what is needed to go on with it.
pub(super) struct Earlier {
    pub(super) record: Record,
    pub(super) continuation: Continuation,
}

impl Earlier {
    /// Its verdict, if nothing is left to do.
    pub(super) fn completed(&self) -> Option<&Verdict> {
        self.record.verdict.as_ref().filter(|verdict| verdict.cause == Cause::Completed)
    }
}

impl RunArguments {
    /// The run to go on with, if one is asked for and there is one.
    pub(super) fn earlier(
        &self,
        command: &RunCommand,
        language: Language,
    ) -> Result<Option<Earlier>, String> {
        if !self.is_continued {
            return Ok(None);
        }
        if self.resume_with.is_none() && !command.is_trainer {
            return Err(words::no_way_to_continue(language));
        }
        let found = self.record.as_deref().and_then(|directory| {
            let record = Record::open(directory).ok()?;
            let continuation = Continuation::read(directory)?;
            Some(Earlier { record, continuation })
        });
        Ok(found)
    }
}
