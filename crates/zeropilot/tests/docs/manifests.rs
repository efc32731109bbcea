//! The manifests in the chapters about schedulers: what they are, and that their exit codes and options are the program's.

use std::collections::BTreeSet;
use std::process::Command;

use saphyr::{LoadableYamlNode as _, MarkedYaml, Scalar, YamlData};
use serde_json::{Map, Value};
use zeropilot_record::{Cause, ExitCode};

use crate::pages::Page;
use crate::reference::causes;

/// A manifest of a chapter.
pub(crate) struct Manifest(pub(crate) Value);

/// Every YAML block of a page that is for Kubernetes.
pub(crate) fn of(page: &Page) -> Vec<Manifest> {
    let blocks = page.text.split("\n```yaml\n").skip(1);
    let blocks = blocks.filter_map(|rest| rest.split_once("\n```")).map(|(block, _)| block);
    let read = |block: &str| {
        let documents = MarkedYaml::load_from_str(block);
        let documents = documents.unwrap_or_else(|error| panic!("{}: {error}", page.path));
        assert_eq!(documents.len(), 1, "{}: one document in a block", page.path);
        Manifest(json(&documents[0]))
    };
    let all = blocks.map(read);
    all.filter(|manifest| manifest.0.get("apiVersion").is_some()).collect()
}

fn json(node: &MarkedYaml<'_>) -> Value {
    match &node.data {
        YamlData::Mapping(members) => {
            let member = |(key, value): (&MarkedYaml<'_>, &MarkedYaml<'_>)| match json(key) {
                Value::String(key) => (key, json(value)),
                key => panic!("a key that is no text: {key}"),
            };
            let read: Map<String, Value> = members.iter().map(member).collect();
            assert_eq!(read.len(), members.len(), "a key stands twice: {read:?}");
            Value::Object(read)
        }
        YamlData::Sequence(items) => items.iter().map(json).collect(),
        YamlData::Value(Scalar::Null) => Value::Null,
        YamlData::Value(Scalar::Boolean(value)) => (*value).into(),
        YamlData::Value(Scalar::Integer(value)) => (*value).into(),
        YamlData::Value(Scalar::String(value)) => value.to_string().into(),
        other => panic!("not for a manifest: {other:?}"),
    }
}

/// Every object below a value that has this key, and what the key has.
fn below<'a>(value: &'a Value, key: &str) -> Vec<&'a Value> {
    let inner: Vec<&Value> = match value {
        Value::Object(members) => members.values().collect(),
        Value::Array(items) => items.iter().collect(),
        _ => Vec::new(),
    };
    let deeper = inner.into_iter().flat_map(|inner| below(inner, key));
    value.get(key).into_iter().chain(deeper).collect()
}

/// Exit codes after which another start ends in the same way.
fn hopeless() -> BTreeSet<u64> {
    let causes = causes().into_iter().filter(|cause| !cause.restart_may_help());
    let causes = causes
        .filter(|cause| !matches!(cause, Cause::Completed | Cause::Interrupted { .. }))
        .map(|cause| u64::from(ExitCode::from(&cause).0));
    causes.collect()
}

impl Manifest {
    pub(crate) fn kind(&self) -> (&str, &str) {
        let text = |key: &str| self.0[key].as_str().unwrap_or_default();
        (text("apiVersion"), text("kind"))
    }

    /// The words of the container: of its command, or of the shell's.
    fn words(&self) -> Vec<String> {
        let list = |value: &Value| -> Vec<String> {
            let items = value.as_array().expect("a list").iter();
            items.map(|word| word.as_str().expect("a text").to_owned()).collect()
        };
        let command = below(&self.0, "command");
        assert_eq!(command.len(), 1, "one container");
        let holder = below(&self.0, "args");
        let (command, args) = (list(command[0]), list(holder[0]));
        if command == ["bash", "-c"] {
            let words = shlex::split(&args[0]).expect("words of a shell");
            assert_eq!(words[0], "exec", "zeropilot gets the signals, and not a shell");
            return words[1..].to_vec();
        }
        [command, args].concat()
    }

    /// What is wrong with it.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut must = |holds: bool, what: String| {
            if !holds {
                faults.push(format!("{}: {what}", self.kind().1));
            }
        };
        let words = self.words();
        let end = words.iter().position(|word| word == "--").expect("-- before the launch");
        let (own, launch) = (&words[..end], &words[end + 1..]);
        must(own[..2] == ["zeropilot", "run"], format!("starts {own:?}"));
        must(launch[0] == "torchrun", format!("launches {launch:?}"));
        let help = Command::new(env!("CARGO_BIN_EXE_zeropilot")).args(["run", "--help"]).output();
        let help = String::from_utf8_lossy(&help.expect("zeropilot runs").stdout).into_owned();
        for option in own.iter().filter(|word| word.starts_with("--") && !word.contains(' ')) {
            must(help.contains(option.as_str()), format!("{option} is no option of `run`"));
        }
        let value = |name: &str| {
            let at = own.iter().position(|word| word == name)?;
            own.get(at + 1).cloned()
        };
        let seconds = |text: String| text.trim_end_matches('s').parse::<u64>().expect("seconds");
        let grace = value("--grace").map(seconds).expect("a grace");
        for period in below(&self.0, "terminationGracePeriodSeconds") {
            let is_longer = period.as_u64() > Some(grace);
            must(is_longer, format!("killed after {period} s, within the {grace} s of --grace"));
        }
        for policy in below(&self.0, "podFailurePolicy").into_iter().filter(|one| one.is_object()) {
            for rule in policy["rules"].as_array().expect("rules") {
                let codes = below(rule, "values");
                let codes = codes.iter().flat_map(|codes| codes.as_array().expect("codes"));
                let codes: BTreeSet<u64> = codes.map(|code| code.as_u64().expect("one")).collect();
                let by_pod = rule.get("onPodConditions").is_some();
                let wanted = match rule["action"].as_str() {
                    Some("FailJob") => hopeless(),
                    Some("Ignore") if by_pod => BTreeSet::new(),
                    Some("Ignore") => {
                        let code = value("--requeue-exit-code").and_then(|code| code.parse().ok());
                        code.into_iter().collect()
                    }
                    _ => panic!("an action that Kubernetes does not have: {rule}"),
                };
                must(codes == wanted, format!("exit codes {codes:?} instead of {wanted:?}"));
            }
        }
        // Kubernetes takes a policy only with pods that it does not restart itself.
        for policy in below(&self.0, "restartPolicy") {
            must(policy == "Never", format!("restartPolicy: {policy}"));
        }
        faults
    }
}
