//! Configs nobody would write: public files bent out of shape, and configs grown from the schema.

use zeropilot_config::python::PyValue;
use zeropilot_config::schema::{Field, FieldType, Model, Schema};
use zeropilot_config::syntax::{decode, parse_hjson};

use super::tree::Tree;
use zeropilot_oracle::{ConfigFile, Random};

/// Values as text, so that numbers keep the spelling a person would use.
const SCALARS: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "1",
    "2",
    "3",
    "-1",
    "8",
    "64",
    "1e8",
    "5e8",
    "1e9",
    "1e10",
    "2.5e10",
    "1.5",
    "0.5",
    "2.0",
    "1.0",
    "0.0",
    "-0.0",
    "0.1",
    "0.2",
    "1e-5",
    "123456789012345678901234567890",
    "1e300",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551616.0",
    "\"auto\"",
    "\"auto \"",
    "\"Auto\"",
    "\"\"",
    "\"0\"",
    "\"1\"",
    "\"true\"",
    "\"True\"",
    "\"yes\"",
    "\"off\"",
    "\"TRUE \"",
    "\"2\"",
    "\" 3 \"",
    "\"1_000\"",
    "\"1e8\"",
    "\"1.0\"",
    "\"1.5\"",
    "\"+7\"",
    "\"-3\"",
    "\"nan\"",
    "\"inf\"",
    "\"Infinity\"",
    "\"0.5\"",
    "\"1.\"",
    "\"01\"",
    "\"0x10\"",
    "\"1__0\"",
    "\"٣\"",
    "\"none\"",
    "\"cpu\"",
    "\"nvme\"",
    "\"CPU\"",
    "\"fp16\"",
    "\"BF16\"",
    "\"fp32\"",
    "\"sum\"",
    "\"Mean\"",
    "\"step\"",
    "\"warn\"",
    "\"FAIL\"",
    "\"/local/nvme\"",
    "\"a//b/./c/\"",
    "\"//x\"",
    "\"throughput\"",
    "\"Adam\"",
    "\"AdamW\"",
    "\"enabled\"",
    "[]",
    "{}",
    "[1]",
    "[1, 2]",
    "[\"a\"]",
    "[[]]",
    "[\"ab\"]",
    "{\"enabled\": true}",
    "{\"a\": {}}",
    "[true]",
    "[2, 4, 6]",
    "[\"x\", \"x\"]",
    "[null]",
];

/// Writes configs from a source of randomness.
pub(crate) struct Generator {
    pub(crate) random: Random,
    /// Percentage of fields that get any value at all.
    junk: usize,
    seeds: Vec<PyValue>,
}

impl Generator {
    /// Seeds are the files that parse at all.
    pub(crate) fn new(seed: u64, files: &[ConfigFile]) -> Self {
        let parse = |file: &ConfigFile| {
            let document = parse_hjson(decode(&file.data).ok()?).ok()?;
            let value = PyValue::from(document.root());
            matches!(value, PyValue::Dict(_)).then_some(value)
        };
        Self { junk: 0, random: Random::new(seed), seeds: files.iter().filter_map(parse).collect() }
    }

    /// One config as text.
    pub(crate) fn config(&mut self, schema: &Schema) -> String {
        // Mostly sound configs show resolved values; mostly broken ones show refusals.
        self.junk = *self.random.pick(&[2, 8, 25]);
        let mut tree = if !self.seeds.is_empty() && self.random.chance(45) {
            let index = self.random.below(self.seeds.len());
            Tree::from(&self.seeds[index])
        } else {
            self.grown(schema)
        };
        if self.random.chance(70) {
            self.make_batch_work(&mut tree);
        }
        for _ in 0..self.random.below(3) {
            self.mutate(&mut tree, schema);
        }
        tree.tame_scale_power();
        tree.tame_repetition();
        tree.tame_elasticity();
        tree.text()
    }

    fn make_batch_work(&mut self, tree: &mut Tree) {
        tree.remove("train_batch_size");
        tree.remove("gradient_accumulation_steps");
        tree.set("train_micro_batch_size_per_gpu", Tree::Leaf("2".to_owned()));
        if self.random.chance(30) {
            tree.set("gradient_accumulation_steps", Tree::Leaf("4".to_owned()));
        }
    }

    fn grown(&mut self, schema: &Schema) -> Tree {
        let mut tree = Tree::Object(Vec::new());
        let sections: Vec<(&String, &String)> = schema.sections.iter().collect();
        for _ in 0..self.random.below(5) {
            let (section, model) = *self.random.pick(&sections);
            let model = &schema.models[model];
            let value = self.section(schema, model);
            tree.set_path(section, value);
        }
        for _ in 0..self.random.below(7) {
            let key = self.random.pick(&schema.keys);
            let value = self
                .raw_value(key.choices.as_ref().map(|choices| choices.keys().cloned().collect()));
            tree.set_path(&key.path.replace('*', "g"), value);
        }
        if self.random.chance(6) {
            tree.set("elasticity", self.elasticity());
        }
        if self.random.chance(4) {
            tree.set("compression_training", self.compression(schema));
        }
        if self.random.chance(30) {
            let stage = self.random.below(4).to_string();
            tree.set_path("zero_optimization.stage", Tree::Leaf(stage));
        }
        tree
    }

    fn raw_value(&mut self, words: Option<Vec<String>>) -> Tree {
        match words {
            Some(words) if self.random.chance(60) => {
                let word = self.random.pick(&words).clone();
                let word = if self.random.chance(20) { word.to_uppercase() } else { word };
                Tree::Leaf(serde_json::Value::from(word).to_string())
            }
            _ => self.any(),
        }
    }

    fn any(&mut self) -> Tree {
        if self.random.chance(30) {
            return Tree::Leaf(self.number());
        }
        Tree::Leaf((*self.random.pick(SCALARS)).to_owned())
    }

    /// A number in one of the many ways to write one, half of them as text.
    fn number(&mut self) -> String {
        let digits = |random: &mut Random, most: usize| -> String {
            (0..=random.below(most)).map(|_| char::from(b'0' + random.below(10) as u8)).collect()
        };
        let pick = |random: &mut Random, words: &[&str]| (*random.pick(words)).to_owned();
        if self.random.chance(50) {
            let sign = pick(&mut self.random, &["", "", "-"]);
            let whole = digits(&mut self.random, 11);
            let whole = whole.trim_start_matches('0');
            let whole = if whole.is_empty() { "0" } else { whole };
            let fraction = match self.random.below(3) {
                0 => format!(".{}", digits(&mut self.random, 3)),
                1 => pick(&mut self.random, &[".0", ".00", ""]),
                _ => String::new(),
            };
            let exponent = pick(&mut self.random, &["", "", "", "e0", "e3", "E+2", "e-3", "e12"]);
            return format!("{sign}{whole}{fraction}{exponent}");
        }
        let space = pick(&mut self.random, &["", "", " ", "\\t", "\u{a0}", "\u{2003}", "\\u001c"]);
        let sign = pick(&mut self.random, &["", "", "+", "-", "--", "+-"]);
        let body = match self.random.below(6) {
            0 => pick(
                &mut self.random,
                &["nan", "NaN", "inf", "-inf", "Infinity", "infinit", "INF", "e5", ".", "0x1F"],
            ),
            1 => format!("{}_{}", digits(&mut self.random, 3), digits(&mut self.random, 3)),
            2 => format!("{}.{}", digits(&mut self.random, 3), digits(&mut self.random, 3)),
            3 => format!("{}e{}", digits(&mut self.random, 2), digits(&mut self.random, 1)),
            4 => format!("{}.", digits(&mut self.random, 3)),
            _ => digits(&mut self.random, 21),
        };
        let end = pick(&mut self.random, &["", "", " ", "_", ".0", ".000", "\\n", "L"]);
        format!("\"{space}{sign}{body}{end}\"")
    }

    fn section(&mut self, schema: &Schema, model: &Model) -> Tree {
        let mut tree = Tree::Object(Vec::new());
        for _ in 0..self.random.below(6) {
            let field = self.random.pick(&model.fields);
            let value = self.field_value(schema, field);
            let key = if self.random.chance(85) { field.key() } else { &field.name };
            tree.set(key, value);
        }
        if self.random.chance(3) {
            let key =
                *self.random.pick(&["strict", "self", "unknown", "stage3_max_live_parameter"]);
            let value = self.any();
            tree.set(key, value);
        }
        tree
    }

    fn field_value(&mut self, schema: &Schema, field: &Field) -> Tree {
        if self.random.chance(self.junk) {
            return self.any();
        }
        self.typed_value(schema, &field.kind)
    }

    fn typed_value(&mut self, schema: &Schema, kind: &FieldType) -> Tree {
        let leaf = |text: &&str| Tree::Leaf((*text).to_owned());
        match kind {
            FieldType::Bool => {
                leaf(self.random.pick(&["true", "false", "1", "0", "\"true\"", "\"auto\""]))
            }
            FieldType::Int if self.random.chance(15) => Tree::Leaf(self.number()),
            FieldType::Float if self.random.chance(25) => Tree::Leaf(self.number()),
            FieldType::Int => leaf(
                self.random.pick(&["1", "1000", "1e8", "5e9", "2e10", "0", "-1", "\"12\"", "7.0"]),
            ),
            FieldType::Float => leaf(
                self.random.pick(&["0.5", "1", "0", "1.0", "-0.1", "1.1", "\"0.25\"", "\"nan\""]),
            ),
            FieldType::IntEnum(values) => Tree::Leaf(self.random.pick(values).to_string()),
            FieldType::StrEnum(values) | FieldType::Literal(values) => {
                Tree::Leaf(serde_json::Value::from(self.random.pick(values).clone()).to_string())
            }
            FieldType::Optional(inner) => self.typed_value(schema, inner),
            FieldType::Union(kinds) => {
                let kind = self.random.pick(kinds).clone();
                self.typed_value(schema, &kind)
            }
            FieldType::Model(name) => self.section(schema, &schema.models[name]),
            FieldType::List(inner) => {
                let items = (0..self.random.below(3))
                    .map(|_| self.typed_value(schema, inner).text())
                    .collect::<Vec<_>>();
                Tree::Leaf(format!("[{}]", items.join(", ")))
            }
            _ => self.any(),
        }
    }

    fn elasticity(&mut self) -> Tree {
        let mut tree = Tree::Object(Vec::new());
        tree.set("enabled", Tree::Leaf("true".to_owned()));
        let max =
            *self.random.pick(&["8", "64", "100", "2000", "2001", "10000", "5e4", "1500.5", "3"]);
        tree.set("max_train_batch_size", Tree::Leaf(max.to_owned()));
        let sizes =
            *self.random.pick(&["[2, 4, 6]", "[1]", "[8, 12]", "[3, 5, 7]", "[16]", "[64, 2]"]);
        tree.set("micro_batch_sizes", Tree::Leaf(sizes.to_owned()));
        if self.random.chance(80) {
            tree.set("ignore_non_elastic_batch_info", Tree::Leaf("true".to_owned()));
        }
        let options: [(&str, &[&str]); 7] = [
            ("version", &["0.1", "0.2", "\"0.1\"", "0.3", "0"]),
            ("min_gpus", &["1", "2", "8", "0", "0.5"]),
            ("max_gpus", &["1", "8", "64", "100", "1e4"]),
            ("num_gpus_per_node", &["1", "2", "4", "8", "3"]),
            ("model_parallel_size", &["1", "2", "4"]),
            ("prefer_larger_batch", &["true", "false", "null"]),
            ("min_time", &["0", "20", "-1"]),
        ];
        for (key, values) in options {
            if self.random.chance(45) {
                tree.set(key, Tree::Leaf((*self.random.pick(values)).to_owned()));
            }
        }
        if self.random.chance(10) {
            let key = self.random.pick(&[
                "version",
                "min_gpus",
                "max_train_batch_size",
                "micro_batch_sizes",
            ]);
            let value = self.any();
            tree.set(key, value);
        }
        tree
    }

    fn compression(&mut self, schema: &Schema) -> Tree {
        let mut tree = Tree::Object(Vec::new());
        let techniques = [
            "weight_quantization",
            "activation_quantization",
            "sparse_pruning",
            "row_pruning",
            "head_pruning",
            "channel_pruning",
        ];
        for _ in 0..=self.random.below(2) {
            let technique = *self.random.pick(&techniques);
            let mut section = Tree::Object(Vec::new());
            let prefix = format!("compression_training.{technique}.shared_parameters.");
            let keys: Vec<_> =
                schema.keys.iter().filter(|key| key.path.starts_with(&prefix)).collect();
            for _ in 0..self.random.below(4) {
                if keys.is_empty() {
                    break;
                }
                let key = *self.random.pick(&keys);
                let value = self.raw_value(
                    key.choices.as_ref().map(|choices| choices.keys().cloned().collect()),
                );
                section
                    .set_path(&format!("shared_parameters.{}", &key.path[prefix.len()..]), value);
            }
            if self.random.chance(80) {
                section.set("different_groups", Tree::Object(Vec::new()));
            }
            if self.random.chance(40) {
                let params =
                    "{\"start_bits\": 8, \"target_bits\": 4, \"bits\": 8, \"dense_ratio\": 0.5}";
                section.set_path("different_groups.g.params", Tree::Leaf(params.to_owned()));
            }
            tree.set(technique, section);
        }
        tree
    }

    fn mutate(&mut self, tree: &mut Tree, schema: &Schema) {
        let count = tree.count();
        let target = self.random.below(count);
        match self.random.below(10) {
            0..=5 => {
                let value = self.any();
                tree.replace(target, value);
            }
            6 => {
                let key = self.random.pick(&schema.keys).path.replace('*', "g");
                let value = self.any();
                tree.set_path(&key, value);
            }
            7 => {
                let sections: Vec<(&String, &String)> = schema.sections.iter().collect();
                let (section, model) = *self.random.pick(&sections);
                let field = self.random.pick(&schema.models[model].fields);
                let value = self.field_value(schema, field);
                tree.set_path(&format!("{section}.{}", field.key()), value);
            }
            8 => tree.delete(target),
            _ => {
                let key = *self.random.pick(&[
                    "zero_optimisation",
                    "sequence_parallel_size",
                    "train_batch_size",
                    "vocabulary_size",
                ]);
                let value = self.any();
                tree.set(key, value);
            }
        }
    }
}
