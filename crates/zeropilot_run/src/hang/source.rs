//! What stands around a line of a Python file: conditions and loops, told by indentation alone.

use std::fs;
use std::ops::RangeInclusive;

/// Files that are longer are no training programs.
const LONGEST: u64 = 4 << 20;

/// A Python file.
pub(super) struct Source {
    lines: Vec<String>,
}

/// The head of a block that holds a line.
struct Head<'a> {
    number: u32,
    text: &'a str,
}

impl Source {
    pub(super) fn open(path: &str) -> Option<Self> {
        let length = fs::metadata(path).ok().filter(fs::Metadata::is_file)?.len();
        let text = (length <= LONGEST).then(|| fs::read_to_string(path).ok()).flatten()?;
        Some(Self::new(&text))
    }

    fn new(text: &str) -> Self {
        Self { lines: text.lines().map(|line| line.replace('\t', "        ")).collect() }
    }

    fn line(&self, number: u32) -> Option<&str> {
        let line = self.lines.get(usize::try_from(number).ok()?.checked_sub(1)?)?;
        let text = line.trim_start();
        (!text.is_empty() && !text.starts_with('#')).then_some(line)
    }

    /// Heads of the blocks around a line within its function, the innermost first.
    fn heads(&self, number: u32) -> Vec<Head<'_>> {
        let mut heads = Vec::new();
        let Some(mut depth) = self.line(number).map(indentation) else { return heads };
        for above in (1..number).rev() {
            let Some(line) = self.line(above) else { continue };
            let (text, own) = (line.trim(), indentation(line));
            if own >= depth || text.starts_with([')', ']', '}']) {
                continue;
            }
            depth = own;
            if text.starts_with("def ") || text.starts_with("async def ") {
                break;
            }
            heads.push(Head { number: above, text });
        }
        heads
    }

    /// Conditions under which a line runs, with their lines, the innermost first.
    pub(super) fn conditions(&self, number: u32) -> Vec<(u32, String)> {
        let condition = |head: Head<'_>| {
            let text = head.text.strip_prefix("if ").or(head.text.strip_prefix("elif "))?;
            let text = text.split(" #").next().unwrap_or(text).trim_end();
            Some((head.number, text.trim_end_matches(':').to_owned()))
        };
        self.heads(number).into_iter().filter_map(condition).collect()
    }

    /// Loops around a line, the innermost first: from the head to the last line.
    pub(super) fn loops(&self, number: u32) -> Vec<RangeInclusive<u32>> {
        let is_loop = |head: &Head<'_>| {
            ["for ", "while ", "async for "].iter().any(|word| head.text.starts_with(word))
        };
        let heads = self.heads(number).into_iter().filter(is_loop);
        heads.map(|head| head.number..=self.end(head.number)).collect()
    }

    /// The last line of the block that begins at a line.
    fn end(&self, head: u32) -> u32 {
        let depth = self.line(head).map_or(0, indentation);
        let last = u32::try_from(self.lines.len()).unwrap_or(u32::MAX);
        let is_outside = |number: &u32| {
            self.line(*number).is_some_and(|line| {
                indentation(line) <= depth && !line.trim_start().starts_with([')', ']', '}'])
            })
        };
        (head + 1..=last).find(is_outside).map_or(last, |next| next - 1)
    }

    /// The first `continue` within lines that belongs to the loop that begins with them.
    pub(super) fn skip(&self, lines: &RangeInclusive<u32>) -> Option<u32> {
        let is_skip = |number: &u32| {
            self.line(*number).is_some_and(|line| {
                let text = line.split(" #").next().unwrap_or(line).trim();
                text == "continue" || text.ends_with(": continue")
            })
        };
        let is_own = |number: &u32| self.loops(*number).first() == Some(lines);
        lines.clone().filter(is_skip).find(is_own)
    }
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
def main():
    for epoch in range(3):
        for batch in loader:
            if bad(batch):
                continue
            loss = engine(
                batch,
            )
            if step == 5 and rank == 0:  # now
                # save
                engine.save_checkpoint(
                    'out')
        barrier()
    done()
";

    #[test]
    fn conditions_and_loops_around_a_line_are_seen() {
        let source = Source::new(TEXT);
        assert_eq!(source.conditions(11), [(9, "step == 5 and rank == 0".to_owned())]);
        assert_eq!(source.loops(11), [3..=12, 2..=13]);
        assert_eq!(source.loops(7), [3..=12, 2..=13]);
        assert_eq!((source.loops(13), source.loops(14)), (vec![2..=13], Vec::new()));
        assert_eq!((source.skip(&(3..=12)), source.skip(&(2..=13))), (Some(5), None));
        assert!(source.conditions(14).is_empty() && source.conditions(99).is_empty());
    }
}
