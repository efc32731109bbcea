//! Texts on which two readers might disagree: written after the grammar with every liberty the
//! Hjson reader takes, then damaged.

use zeropilot_oracle::Random;

const SEEDS: &[&str] = &[
    r#"{
  "train_batch_size": 32,
  "gradient_accumulation_steps": 1,
  "optimizer": {"type": "AdamW", "params": {"lr": 3e-5, "betas": [0.9, 0.999], "eps": 1e-8}},
  "fp16": {"enabled": "auto", "loss_scale": 0, "initial_scale_power": 16},
  "zero_optimization": {
    "stage": 3,
    "offload_optimizer": {"device": "cpu", "pin_memory": true},
    "reduce_bucket_size": 5e8,
    "stage3_max_live_parameters": 1e9
  },
  "wall_clock_breakdown": false
}
"#,
    r#"# a config for the engine
{
  // commas are optional here
  train_micro_batch_size_per_gpu: auto
  zero_optimization: {
    stage: 2, /* not 3 */ overlap_comm: true
    "reduce_scatter": true,
  }
  bf16: {enabled: true}
  steps_per_print: 1e2,
}
"#,
    "train_batch_size: 8\nfp16: {\n  enabled: true\n}\nzero_optimization: {stage: 1}\n",
    "note:\n  '''\n  first\n    second\n  '''\nstage: 3\n",
    "{\r\n  \"stage\": 1,\r\n  \"note\": 'single', \"stage\": 2\r\n}\r\n",
    "\u{feff}{\"a\": [1, 2.0, -0.0, 1e-7], \"b\": null}",
    "{a: '''one\n two'''}\n",
    "[\n  1\n  2,\n  three\n  {x: y\n}]",
    "\na: ''' ",
    "a: \"\\u+0x4\\u 0X4\\u+0x_\"",
];

#[rustfmt::skip]
const TOKENS: &[&str] = &[
    "{", "}", "[", "]", ",", ":", "\"", "'", "'''", "''", "#", "//", "/*", "*/", "/", "*", "\\",
    "\\u", "\\u0041", "\\ud83d", "\\ude00", "\\n", "\\'", "\n", "\r", "\r\n", "\t", " ", "  ",
    "\u{b}", "\u{c}", "\u{1c}", "\u{1f}", "\u{85}", "\u{a0}", "\u{2028}", "\u{3000}", "\u{feff}",
    "\u{ef}\u{bb}\u{bf}", "\u{7f}", "\0", "é", "😀", "\u{fffd}", "٣", "１", "𝟗", "²", "null", "true",
    "false", "None", "NaN", "Infinity", "-Infinity", "-", "+", ".", "e", "E", "0", "1", "00", "1.",
    ".5", "1e5", "1e999", "-0.0", "1e400", "1e-400", "10000000000.0", "9999999999.0",
    "123456789012345678901234567890", "9007199254740993.0", "5e-324", "a", "a:", "a: 1", "\"a\":",
    "\"a\": 1", "'a': 1", "key", "_", "0x1",
];

#[rustfmt::skip]
const ESCAPE_PARTS: &[&str] = &[
    "0", "1", "4", "9", "a", "F", "d", "8", "c", "D", "+", "-", "_", "x", "X", " ", "\t", "\n",
    "\u{b}", "\u{1c}", "\u{85}", "\u{a0}", "\u{3000}", "٣", "１", "g", "\"", "\\", "\0", "é",
];

/// Writes texts of one dialect from a source of randomness.
pub(crate) struct Generator<'a> {
    random: &'a mut Random,
    /// Mostly valid JSON rather than free Hjson.
    strict: bool,
    /// Nesting that the reader surely has stack for.
    safe_depth: usize,
    extra_seeds: &'a [String],
}

impl<'a> Generator<'a> {
    pub(crate) fn new(
        random: &'a mut Random,
        strict: bool,
        safe_depth: usize,
        extra_seeds: &'a [String],
    ) -> Self {
        Self { random, strict, safe_depth, extra_seeds }
    }

    pub(crate) fn case(&mut self) -> Vec<u8> {
        if self.random.one_in(400) {
            return self.deep().into_bytes();
        }
        let mut text = self.base();
        if !self.random.one_in(if self.strict { 2 } else { 3 }) {
            for _ in 0..=self.random.below(4) {
                text = self.mutated(&text);
            }
        }
        let mut bytes = text.into_bytes();
        if self.random.one_in(50) && !bytes.is_empty() {
            let at = self.random.below(bytes.len());
            bytes[at] = u8::try_from(self.random.below(256)).expect("below 256");
        }
        bytes
    }

    fn base(&mut self) -> String {
        match self.random.below(20) {
            0 => SEEDS[self.random.below(SEEDS.len())].to_owned(),
            1 if !self.extra_seeds.is_empty() => {
                let seed = self.random.below(self.extra_seeds.len());
                self.window(seed)
            }
            2 => (0..self.random.below(12)).map(|_| self.random.word(TOKENS)).collect(),
            _ => self.document(),
        }
    }

    /// Part of a long seed; whole files would only slow Python down.
    fn window(&mut self, seed: usize) -> String {
        let characters: Vec<char> = self.extra_seeds[seed].chars().collect();
        let start = self.random.below(characters.len());
        let start = if self.random.one_in(2) { 0 } else { start };
        characters.into_iter().skip(start).take(600).collect()
    }

    /// Far from either side of the limits, which depend on the caller's stack.
    fn deep(&mut self) -> String {
        let levels = if self.random.one_in(3) {
            1100 + self.random.below(3000)
        } else {
            self.random.below(self.safe_depth)
        };
        let (open, close) = if self.random.one_in(2) { ("[", "]") } else { ("{\"a\":", "}") };
        let closed = if self.random.one_in(4) { levels / 2 } else { levels };
        let key = self.random.word(&["", "a: "]);
        format!("{key}{}1{}", open.repeat(levels), close.repeat(closed))
    }

    fn document(&mut self) -> String {
        let mut out = String::new();
        if self.random.one_in(25) {
            out.push_str(self.random.word(&["\u{feff}", "\u{ef}\u{bb}\u{bf}"]));
        }
        self.blank(&mut out);
        match self.random.below(20) {
            0..=8 => self.object(&mut out, 0),
            9..=13 if !self.strict => self.members(&mut out, 0),
            14..=17 => self.array(&mut out, 0),
            _ => self.value(&mut out, 0),
        }
        self.blank(&mut out);
        out
    }

    fn blank(&mut self, out: &mut String) {
        while self.random.one_in(3) {
            if self.strict {
                out.push_str(self.random.word(&[" ", "\n", "\t", "\r\n", "\r"]));
                continue;
            }
            match self.random.below(16) {
                0..=4 => out.push(' '),
                5..=7 => out.push('\n'),
                8 => out.push_str("\r\n"),
                9 => out.push('\r'),
                10 => out.push('\t'),
                11 => out.push_str("# note, {\n"),
                12 => out.push_str("// note ]\n"),
                13 => out.push_str("/* note\n' */"),
                14 => out.push_str("/**/"),
                _ => out.push_str(self.random.word(&["\u{a0}", "\u{85}", "\u{1c}", "\u{b}"])),
            }
        }
    }

    fn object(&mut self, out: &mut String, depth: usize) {
        out.push('{');
        self.blank(out);
        self.members(out, depth);
        out.push('}');
    }

    fn members(&mut self, out: &mut String, depth: usize) {
        let count = self.random.below(5);
        for at in 0..count {
            self.key(out);
            self.blank(out);
            out.push(':');
            self.blank(out);
            self.value(out, depth + 1);
            self.blank(out);
            self.separator(out, at + 1 == count);
        }
    }

    fn separator(&mut self, out: &mut String, last: bool) {
        if self.strict {
            if !last || self.random.one_in(30) {
                out.push(',');
            }
        } else if !(last && self.random.one_in(2)) {
            out.push_str(self.random.word(&[",", "\n", ",\n", "\r\n", ", ", " ", ""]));
        }
        self.blank(out);
    }

    fn key(&mut self, out: &mut String) {
        let name = self.random.word(&[
            "a",
            "b",
            "stage",
            "train_batch_size",
            "",
            "é",
            "a b",
            "a#b",
            "a//b",
            "null",
            "1",
            "a'",
        ]);
        let quote = if self.strict { "\"" } else { self.random.word(&["", "", "'", "\""]) };
        out.push_str(quote);
        out.push_str(name);
        out.push_str(quote);
    }

    fn array(&mut self, out: &mut String, depth: usize) {
        out.push('[');
        self.blank(out);
        let count = self.random.below(5);
        for at in 0..count {
            self.value(out, depth + 1);
            self.blank(out);
            self.separator(out, at + 1 == count);
        }
        out.push(']');
    }

    fn value(&mut self, out: &mut String, depth: usize) {
        match self.random.below(if depth > 4 { 12 } else { 16 }) {
            0..=1 => out.push_str(self.random.word(&["null", "true", "false"])),
            2..=5 => self.number(out),
            6..=8 => self.quoted(out),
            9 if !self.strict => self.multiline(out),
            10 if !self.strict => self.unquoted(out),
            9..=11 => {
                out.push_str(self.random.word(&["NaN", "Infinity", "-Infinity", "0", "\"\""]))
            }
            12..=13 => self.array(out, depth),
            _ => self.object(out, depth),
        }
    }

    fn number(&mut self, out: &mut String) {
        if self.random.one_in(200) {
            let digits = 4295 + self.random.below(10);
            out.push_str(&"7".repeat(digits));
            return;
        }
        if self.random.one_in(3) {
            out.push('-');
        }
        let usual = [1, 2, 5, 12, 19, 25][self.random.below(6)];
        let length = if self.random.one_in(100) { 400 } else { usual };
        self.digits(out, length);
        if self.random.one_in(3) {
            out.push('.');
            self.digits(out, length);
        }
        if self.random.one_in(3) {
            out.push_str(self.random.word(&["e", "E"]));
            out.push_str(self.random.word(&["", "+", "-"]));
            self.digits(out, 3);
        }
    }

    fn digits(&mut self, out: &mut String, length: usize) {
        for _ in 0..=self.random.below(length) {
            let exotic = self.random.one_in(150);
            let digits: &[&str] = if exotic {
                &["٣", "１", "𝟗", "०", "²"]
            } else {
                &["0", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "9"]
            };
            out.push_str(self.random.word(digits));
        }
    }

    fn quoted(&mut self, out: &mut String) {
        let quote = if self.strict { "\"" } else { self.random.word(&["\"", "'"]) };
        out.push_str(quote);
        for _ in 0..self.random.below(5) {
            match self.random.below(if self.strict { 40 } else { 8 }) {
                0 => {
                    out.push_str("\\u");
                    for _ in 0..4 {
                        out.push_str(self.random.word(ESCAPE_PARTS));
                    }
                }
                1 => out.push_str(self.random.word(&[
                    "\\ud83d\\ude00",
                    "\\ud83d",
                    "\\udc00",
                    "\\ud800\\u0041",
                    "\\ud800\\u-001",
                    "\\ud800\\u0x41",
                    "\\ud800\\u",
                    "\\u0041",
                    "\\u-000",
                    "\\ud800\\ud800\\udc00",
                ])),
                2 => out.push_str(self.random.word(&["\\n", "\\\"", "\\'", "\\/", "\\q", "\\b"])),
                3 => {
                    out.push_str(self.random.word(&["'", "\"", "\t", "\u{1}", "\u{7f}", "#", "é"]))
                }
                _ => out.push_str(self.random.word(&["abc", " ", "auto", "😀", ",", "}"])),
            }
        }
        out.push_str(quote);
    }

    fn multiline(&mut self, out: &mut String) {
        out.push_str("'''");
        for _ in 0..self.random.below(8) {
            out.push_str(self.random.word(&[
                "\n", "\n  ", "\n\t ", "\n      ", "\r\n", "\r", " ", "'", "''", "text", "é",
                "# x", "\u{a0}", "\\n",
            ]));
        }
        out.push_str("'''");
    }

    fn unquoted(&mut self, out: &mut String) {
        for _ in 0..=self.random.below(4) {
            out.push_str(self.random.word(&[
                "auto", "text", " ", "null", "true", "1", ",", "}", "]", "#", "//", "'", "\"", ":",
                "\u{a0}", "\u{1c}", "é", "-", "/",
            ]));
        }
        out.push_str(self.random.word(&["\n", "\r\n", "\r", "\n", ""]));
    }

    fn mutated(&mut self, text: &str) -> String {
        let characters: Vec<char> = text.chars().collect();
        let from = self.random.below(characters.len() + 1);
        let longest = if self.random.one_in(2) { 2 } else { 20 };
        let to = (from + self.random.below(longest)).min(characters.len());
        let (head, middle, tail) = (&characters[..from], &characters[from..to], &characters[to..]);
        let between: String = match self.random.below(8) {
            0..=1 => String::new(),
            2 => middle.iter().chain(middle).collect(),
            3..=5 => self.random.word(TOKENS).to_owned(),
            6 => middle.iter().collect::<String>() + self.random.word(TOKENS),
            _ => {
                let other: Vec<char> = self.document().chars().collect();
                let start = self.random.below(other.len());
                other.into_iter().skip(start).take(30).collect()
            }
        };
        let tail = if self.random.one_in(25) { &[] } else { tail };
        head.iter().copied().chain(between.chars()).chain(tail.iter().copied()).collect()
    }
}
