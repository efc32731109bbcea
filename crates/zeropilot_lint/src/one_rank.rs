//! What one rank alone reaches in a training script.

use zeropilot_job::{Call, Guard, PythonScript};

/// What frameworks and scripts call a question for the one rank.
const MAIN: [&str; 10] = [
    "is_main_process",
    "is_local_main_process",
    "is_world_process_zero",
    "is_global_zero",
    "is_main",
    "is_master",
    "is_rank0",
    "is_rank_0",
    "is_rank_zero",
    "is_first_worker",
];

/// Whether an expression is the number of a rank: `rank`, `dist.get_rank()`, `int(os.environ["RANK"])`; spaces and
/// quotes are taken out.
fn is_rank(plain: &str) -> bool {
    let plain = plain.trim_end_matches(['(', ')', ']']);
    // `os.environ.get("RANK", 0)`
    let plain = plain.strip_suffix(",0").or(plain.strip_suffix(",-1")).unwrap_or(plain);
    let plain = plain.to_lowercase();
    // The rank of an adapter is no process.
    let is_other =
        plain.contains("lora") || plain.contains(['<', '>', '=', '+', '-', '*', '/', '%']);
    plain.ends_with("rank") && !is_other
}

fn plain(condition: &str) -> String {
    let plain: String = condition.split_whitespace().collect();
    plain.trim_start_matches('(').replace(['"', '\''], "")
}

/// Whether a condition holds on one rank of each node or of all: `rank == 0`, `dist.get_rank() == 0`,
/// `int(os.environ["RANK"]) == 0`, `not rank`, `args.local_rank in (-1, 0)`, `accelerator.is_main_process`.
fn holds_on_one_rank(condition: &str) -> bool {
    if let Some(number) = condition.trim().strip_prefix("not ") {
        return is_rank(&plain(number));
    }
    let is_joined = condition.split_whitespace().any(|word| matches!(word, "and" | "or" | "not"));
    let plain = plain(condition);
    let is_one = match plain.split_once("==") {
        Some((left, zero)) if zero.trim_end_matches(')') == "0" => is_rank(left),
        Some(("0", right)) => is_rank(right),
        Some(_) => false,
        None => {
            let alone = plain.trim_end_matches([')', '(']);
            let one_of = ["in(-1,0)", "in[-1,0]", "in(0,-1)", "in[0,-1]"];
            let in_list = one_of.iter().find_map(|list| plain.strip_suffix(list));
            in_list.is_some_and(is_rank) || MAIN.iter().any(|name| alone.ends_with(name))
        }
    };
    is_one && !is_joined
}

/// Whether a condition, or one that it joins to others by `and`, holds on one rank.
pub fn is_of_one_rank(condition: &str) -> bool {
    !condition.contains(" or ") && condition.split(" and ").any(holds_on_one_rank)
}

/// Whether a condition holds on every rank but one, so that only that one goes on behind it.
fn holds_on_all_others(condition: &str) -> bool {
    let is_it = |part: &str| {
        let part = part.trim();
        let opposite = match part.strip_prefix("not ") {
            Some(rest) => rest.to_owned(),
            None if part.contains("!=") => part.replacen("!=", "==", 1),
            None if part.contains(" not in ") => part.replacen(" not in ", " in ", 1),
            // `if rank: return`
            None => return is_rank(&plain(part)),
        };
        holds_on_one_rank(&opposite)
    };
    !condition.contains(" and ") && condition.split(" or ").any(is_it)
}

/// What a condition asks: itself, or what the one name it consists of is assigned once.
fn meant<'s>(script: &'s PythonScript, condition: &'s str) -> &'s str {
    let mut assigned = script.assignments.iter().filter(|it| it.target == condition);
    match (assigned.next(), assigned.next()) {
        (Some(only), None) if !only.adds => &only.value,
        _ => condition,
    }
}

/// The condition under which one rank alone reaches a place, as it is written.
pub(crate) fn condition(script: &PythonScript, guards: &[Guard]) -> Option<String> {
    guards.iter().find_map(|guard| {
        let text = guard.condition.as_str();
        if guard.holds {
            let mut parts = text.split(" and ").map(|part| meant(script, part.trim()));
            let is_one = !text.contains(" or ") && parts.any(is_of_one_rank);
            return is_one.then(|| text.to_owned());
        }
        holds_on_all_others(meant(script, text)).then(|| shown(guard))
    })
}

/// A guard as a condition that holds where it lets pass.
pub(crate) fn shown(guard: &Guard) -> String {
    if guard.holds { guard.condition.clone() } else { format!("not ({})", guard.condition) }
}

/// A call that one rank alone reaches.
pub(crate) struct Alone<'s> {
    /// Where the others do not go along: the call itself, or that of the function it is in.
    pub(crate) site: &'s Call,
    /// The condition there.
    pub(crate) condition: String,
    /// The call.
    pub(crate) call: &'s Call,
    /// What an object of the script is called around it.
    pub(crate) object: &'s str,
}

/// Whether the other branch of a condition makes the same call.
fn is_called_on_others(script: &PythonScript, site: &Call) -> bool {
    let is_opposite = |guard: &Guard| {
        site.guards.iter().any(|own| own.condition == guard.condition && own.holds != guard.holds)
    };
    let mut same = script.calls.iter().filter(|call| call.callee == site.callee);
    same.any(|call| call.scope == site.scope && call.guards.iter().any(is_opposite))
}

/// Calls that one rank alone reaches, directly or through a function of the script that is handed an object or finds
/// it by its name.
pub(crate) fn alone<'s>(script: &'s PythonScript, object: &'s str) -> Vec<Alone<'s>> {
    let mut found = Vec::new();
    for site in &script.calls {
        let Some(condition) = condition(script, &site.guards) else { continue };
        if is_called_on_others(script, site) {
            continue;
        }
        if let Some(function) = script.function(&site.callee) {
            let mut parameters = function.parameters.iter().enumerate();
            let handed = parameters.find(|(index, name)| site.handed(*index, name) == Some(object));
            let is_hidden = function.parameters.iter().any(|name| name == object);
            let name = match handed {
                Some((_, name)) => Some(name.as_str()),
                None => (!is_hidden).then_some(object),
            };
            let inside = script.calls.iter().filter(|call| call.scope == function.scope);
            found.extend(name.into_iter().flat_map(|object| {
                let condition = condition.clone();
                inside.clone().map(move |call| Alone {
                    site,
                    condition: condition.clone(),
                    call,
                    object,
                })
            }));
        }
        found.push(Alone { site, condition, call: site, object });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_of_one_rank_are_known_in_the_ways_people_write_them() {
        for one in [
            "rank == 0",
            "args.local_rank == 0",
            "dist.get_rank() == 0",
            "torch.distributed.get_rank()==0",
            "deepspeed.comm.get_rank() == 0",
            "engine.global_rank == 0",
            "0 == rank",
            "(rank == 0)",
            "os.environ[\"RANK\"] == \"0\"",
            "int(os.environ['LOCAL_RANK']) == 0",
            "int(os.environ.get('RANK', 0)) == 0",
            "local_rank in (-1, 0)",
            "args.local_rank in [-1, 0]",
            "accelerator.is_main_process",
            "is_main_process()",
            "trainer.is_world_process_zero()",
            "is_main()",
            "self.strategy.is_rank_0()",
            "not rank",
            "not dist.get_rank()",
            "dist.get_local_rank() == 0",
            "not int(os.environ['RANK'])",
        ] {
            assert!(holds_on_one_rank(one), "{one}");
        }
        for more in [
            "step == 0",
            "rank == 0 or True",
            "rank != 0",
            "rank == 1",
            "not accelerator.is_main_process",
            "not done",
            "not args.lora_rank",
            "lora_rank == 0",
            "not rank or step == 0",
            "step % 100 == 0",
            "count() == 0",
            "world_size == 1",
        ] {
            assert!(!holds_on_one_rank(more), "{more}");
        }
    }

    #[test]
    fn joined_and_opposite_conditions_are_seen_through() {
        for one in ["step % 10 == 0 and rank == 0", "rank == 0 and not done"] {
            assert!(is_of_one_rank(one), "{one}");
        }
        assert!(!is_of_one_rank("rank == 0 or step == 0"));
        for others in [
            "rank != 0",
            "not accelerator.is_main_process",
            "local_rank not in (-1, 0)",
            "dist.get_rank() != 0",
            "dist.get_rank()",
            "not is_main()",
        ] {
            assert!(holds_on_all_others(others), "{others}");
        }
        for some in [
            "rank != 0 and step > 3",
            "rank != 1",
            "rank == 0",
            "not done",
            "",
            "lora_rank",
            "i < rank",
            "not rank",
        ] {
            assert!(!holds_on_all_others(some), "{some}");
        }
    }
}
