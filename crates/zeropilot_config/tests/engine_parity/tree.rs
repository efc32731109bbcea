//! Configs under construction, and the ways to bend them.

use zeropilot_config::python::PyValue;

/// What to do with the member of this number in its object.
type Change<'a> = dyn FnMut(&mut Vec<(String, Tree)>, usize) + 'a;

/// A config under construction: leaves are JSON text.
#[derive(Debug, Clone)]
pub(crate) enum Tree {
    Leaf(String),
    Object(Vec<(String, Tree)>),
}

impl Tree {
    pub(crate) fn set(&mut self, key: &str, value: Tree) {
        if let Tree::Leaf(_) = self {
            *self = Tree::Object(Vec::new());
        }
        if let Tree::Object(members) = self {
            match members.iter_mut().find(|(name, _)| name == key) {
                Some((_, old)) => *old = value,
                None => members.push((key.to_owned(), value)),
            }
        }
    }

    pub(crate) fn set_path(&mut self, path: &str, value: Tree) {
        match path.split_once('.') {
            None => self.set(path, value),
            Some((first, rest)) => {
                if let Tree::Leaf(_) = self {
                    *self = Tree::Object(Vec::new());
                }
                let Tree::Object(members) = self else { return };
                if !members.iter().any(|(name, _)| name == first) {
                    members.push((first.to_owned(), Tree::Object(Vec::new())));
                }
                if let Some((_, inner)) = members.iter_mut().find(|(name, _)| name == first) {
                    inner.set_path(rest, value);
                }
            }
        }
    }

    pub(crate) fn remove(&mut self, key: &str) {
        if let Tree::Object(members) = self {
            members.retain(|(name, _)| name != key);
        }
    }

    /// Beyond 2^53 old engines overflow NumPy's integers; docs/parity.md lists it.
    pub(crate) fn tame_elasticity(&mut self) {
        let Tree::Object(members) = self else { return };
        for (_, section) in members.iter_mut().filter(|(key, _)| key == "elasticity") {
            let Tree::Object(members) = section else { continue };
            for (_, value) in members {
                if matches!(value, Tree::Leaf(text) if text.parse::<f64>().is_ok_and(|number| number > 9e15))
                {
                    *value = Tree::Leaf("100".to_owned());
                }
            }
        }
    }

    /// `"auto" * 10**9` is a gigabyte of text in Python, and the engine multiplies before it looks.
    pub(crate) fn tame_repetition(&mut self) {
        const FACTORS: [&str; 2] =
            ["train_micro_batch_size_per_gpu", "gradient_accumulation_steps"];
        let Tree::Object(members) = self else { return };
        let mut factors: Vec<&mut String> = members
            .iter_mut()
            .filter(|(key, _)| FACTORS.contains(&key.as_str()))
            .filter_map(|(_, value)| match value {
                Tree::Leaf(text) => Some(text),
                Tree::Object(_) => None,
            })
            .collect();
        if factors.iter().any(|text| text.starts_with(['"', '['])) {
            for text in &mut factors {
                if text.parse::<f64>().is_ok_and(|number| number > 1000.0) {
                    **text = "4".to_owned();
                }
            }
        }
    }

    /// Old engines compute two to this power while loading; with 1e9 that takes them minutes.
    pub(crate) fn tame_scale_power(&mut self) {
        let Tree::Object(members) = self else { return };
        for (_, section) in members.iter_mut().filter(|(key, _)| key == "fp16") {
            if let Tree::Object(members) = section {
                for (_, value) in members.iter_mut().filter(|(key, _)| key == "initial_scale_power")
                {
                    let large = matches!(value, Tree::Leaf(text) if text.parse::<f64>().is_ok_and(|power| power > 4096.0));
                    if large {
                        *value = Tree::Leaf("32".to_owned());
                    }
                }
            }
        }
    }

    /// Number of members in the whole tree.
    pub(crate) fn count(&self) -> usize {
        match self {
            Tree::Leaf(_) => 0,
            Tree::Object(members) => members.iter().map(|(_, value)| 1 + value.count()).sum(),
        }
    }

    pub(crate) fn replace(&mut self, target: usize, value: Tree) {
        self.at(target, &mut |members, index| members[index].1 = value.clone());
    }

    /// Removes the member with this number.
    pub(crate) fn delete(&mut self, target: usize) {
        self.at(target, &mut |members, index| {
            members.remove(index);
        });
    }

    fn at(&mut self, mut target: usize, change: &mut Change<'_>) -> usize {
        if let Tree::Object(members) = self {
            for index in 0..members.len() {
                if target == 0 {
                    change(members, index);
                    return usize::MAX;
                }
                target = members[index].1.at(target - 1, change);
                if target == usize::MAX {
                    return target;
                }
            }
        }
        target
    }

    /// As JSON.
    pub(crate) fn text(&self) -> String {
        match self {
            Tree::Leaf(text) => text.clone(),
            Tree::Object(members) => {
                let members: Vec<String> = members
                    .iter()
                    .map(|(key, value)| {
                        format!("{}: {}", serde_json::Value::from(key.as_str()), value.text())
                    })
                    .collect();
                format!("{{{}}}", members.join(", "))
            }
        }
    }
}

impl From<&PyValue> for Tree {
    fn from(value: &PyValue) -> Self {
        match value {
            PyValue::Dict(items) => {
                Tree::Object(items.iter().map(|(key, value)| (key.clone(), value.into())).collect())
            }
            other => Tree::Leaf(serde_json::to_string(other).expect("JSON")),
        }
    }
}
