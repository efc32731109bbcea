//! Accelerators by the names people type.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::accelerator::Accelerator;
use crate::name::Name;

/// A name that does not mean one accelerator.
#[derive(Debug, Clone, PartialEq)]
pub enum NotFound {
    /// It means none.
    Unknown {
        /// Those that are spelt alike, the nearest first.
        nearest: Vec<&'static Accelerator>,
    },
    /// It means several that are not the same to a plan.
    Ambiguous {
        /// All it can mean.
        choices: Vec<&'static Accelerator>,
    },
}

/// Less alike than this is another word.
const LEAST_ALIKE: f64 = 0.6;

/// Longer names than this are no typing errors.
const LONGEST: usize = 96;

struct Catalogue {
    accelerators: Vec<Accelerator>,
    /// Every name and alias, with the accelerator it belongs to.
    labels: Vec<(Name, usize)>,
    by_key: BTreeMap<String, usize>,
}

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| {
    let lines = const { zeropilot_knowledge::text("accelerators/accelerators.jsonl") }.lines();
    let accelerators: Vec<Accelerator> = lines
        .map(|line| serde_json::from_str(line).expect("a test reads every embedded line"))
        .collect();
    let labels: Vec<(Name, usize)> = accelerators
        .iter()
        .enumerate()
        .flat_map(|(index, accelerator)| {
            let names = accelerator.aliases.iter().chain([&accelerator.name]);
            names.map(move |name| (Name::new(name), index))
        })
        .collect();
    let by_key = labels.iter().map(|(name, index)| (name.key(), *index)).collect();
    Catalogue { accelerators, labels, by_key }
});

/// All accelerators.
pub fn accelerators() -> &'static [Accelerator] {
    &CATALOGUE.accelerators
}

/// The accelerator people mean by this name.
///
/// A full name or an alias wins. Otherwise the name may leave words out: `H100 NVL` is one card, `V100` is four, and
/// cards of different memory are never chosen between.
///
/// # Errors
///
/// If there is none, with those spelt alike; if there are several, with all of them.
pub fn find(name: &str) -> Result<&'static Accelerator, NotFound> {
    let asked = Name::new(name);
    if let Some(index) = CATALOGUE.by_key.get(&asked.key()) {
        return Ok(&CATALOGUE.accelerators[*index]);
    }
    let fitting = fitting(&asked);
    let Some((_, first)) = fitting.first() else {
        return Err(NotFound::Unknown { nearest: nearest(&asked) });
    };
    let same_memory =
        fitting.iter().all(|(_, other)| other.memory_gb_nominal == first.memory_gb_nominal);
    let fewest = fitting.iter().map(|(left_out, _)| *left_out).min();
    let mut closest = fitting.iter().filter(|(left_out, _)| Some(*left_out) == fewest);
    match (closest.next(), closest.next()) {
        (Some((_, only)), None) if same_memory => Ok(only),
        _ => {
            let choices = fitting.into_iter().map(|(_, accelerator)| accelerator).collect();
            Err(NotFound::Ambiguous { choices })
        }
    }
}

/// Whether this is a name or an alias, with no word left out.
pub(crate) fn is_label(name: &str) -> bool {
    CATALOGUE.by_key.contains_key(&Name::new(name).key())
}

/// The accelerators a name does not exclude, each with how many words of its closest label the name leaves out.
fn fitting(asked: &Name) -> Vec<(usize, &'static Accelerator)> {
    let mut fewest: BTreeMap<usize, usize> = BTreeMap::new();
    for (label, index) in &CATALOGUE.labels {
        let memory = CATALOGUE.accelerators[*index].memory_gb_nominal;
        if let Some(left_out) = asked.left_out_of(label, memory) {
            let best = fewest.entry(*index).or_insert(left_out);
            *best = (*best).min(left_out);
        }
    }
    let with_facts = |(index, left_out)| (left_out, &CATALOGUE.accelerators[index]);
    fewest.into_iter().map(with_facts).collect()
}

fn nearest(asked: &Name) -> Vec<&'static Accelerator> {
    let key = asked.key();
    if asked.is_empty() || key.len() > LONGEST {
        return Vec::new();
    }
    let mut found: Vec<(f64, usize)> = CATALOGUE
        .by_key
        .iter()
        .map(|(label, index)| (strsim::normalized_damerau_levenshtein(&key, label), *index))
        .filter(|(alike, _)| *alike >= LEAST_ALIKE)
        .collect();
    found.sort_by(|(a, left), (b, right)| b.total_cmp(a).then_with(|| left.cmp(right)));
    let mut nearest: Vec<usize> = Vec::new();
    for (_, index) in found {
        if !nearest.contains(&index) && nearest.len() < 3 {
            nearest.push(index);
        }
    }
    nearest.into_iter().map(|index| &CATALOGUE.accelerators[index]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Result<&'static str, NotFound> {
        find(text).map(|accelerator| accelerator.name.as_str())
    }

    fn names(accelerators: &[&'static Accelerator]) -> Vec<&'static str> {
        accelerators.iter().map(|accelerator| accelerator.name.as_str()).collect()
    }

    #[test]
    fn people_find_accelerators_by_the_names_they_type() {
        let cases = [
            ("A100-80G", "A100 SXM4 80GB"),
            ("a100 80gb", "A100 SXM4 80GB"),
            ("A100-SXM4-80GB", "A100 SXM4 80GB"),
            ("NVIDIA A100-PCIE-40GB", "A100 PCIe 40GB"),
            ("NVIDIA A100 80GB PCIe", "A100 PCIe 80GB"),
            ("A100-40GB", "A100 SXM4 40GB"),
            ("H800", "H800 SXM5 80GB"),
            ("h100", "H100 SXM5 80GB"),
            ("NVIDIA H100 80GB HBM3", "H100 SXM5 80GB"),
            ("H100SXM", "H100 SXM5 80GB"),
            ("H100 NVL", "H100 NVL 94GB"),
            ("H20", "H20 96GB"),
            ("4090", "RTX 4090"),
            ("RTX4090D", "RTX 4090 D"),
            ("3090 24GB", "RTX 3090"),
            ("910B", "Ascend 910B 64GB"),
            ("Ascend 910B3", "Ascend 910B 64GB"),
            ("V100-32GB", "V100 SXM2 32GB"),
            ("V100 SXM 16G", "V100 SXM2 16GB"),
            ("MI300X", "MI300X"),
            ("A6000", "RTX A6000"),
            ("L40s", "L40S"),
        ];
        for (typed, meant) in cases {
            assert_eq!(name(typed), Ok(meant), "{typed}");
        }
    }

    #[test]
    fn a_name_of_cards_with_different_memory_is_asked_back() {
        let Err(NotFound::Ambiguous { choices }) = find("A100") else { panic!("A100 is one card") };
        assert_eq!(
            names(&choices),
            ["A100 SXM4 40GB", "A100 PCIe 40GB", "A100 SXM4 80GB", "A100 PCIe 80GB"]
        );
        for text in ["V100", "A100 PCIe", "GH200", "RTX 6000"] {
            assert!(matches!(find(text), Err(NotFound::Ambiguous { .. })), "{text}");
        }
    }

    #[test]
    fn a_slip_of_the_finger_is_answered_with_what_was_meant() {
        let nearest = |text| match find(text) {
            Err(NotFound::Unknown { nearest }) => names(&nearest),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(nearest("MI300").first(), Some(&"MI300X"));
        assert_eq!(nearest("H1000").first(), Some(&"H100 SXM5 80GB"));
        assert_eq!(nearest("a horse with no name"), Vec::<&str>::new());
        assert_eq!(nearest(""), Vec::<&str>::new());
    }

    #[test]
    fn a_label_means_one_accelerator_and_the_slug_leads_back() {
        for (label, index) in &CATALOGUE.labels {
            let owner = CATALOGUE.by_key.get(&label.key());
            assert_eq!(owner, Some(index), "{label:?} is said of two");
        }
        for accelerator in accelerators() {
            assert_eq!(find(&accelerator.slug()), Ok(accelerator));
        }
    }
}
