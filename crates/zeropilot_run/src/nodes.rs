//! Runs on several nodes that are one job: which records belong together, and which node failed first.

use std::collections::BTreeMap;

use zeropilot_record::{Cause, FailedFirst, NodeEnd, NodeOf, RunEvent, failed_first};

use crate::command::RunCommand;
use crate::store::{Record, Standing, now};

/// How launchers name the number of nodes, which of them this is, and where the ranks meet.
const NODES: [&str; 4] = ["--nnodes", "--nnode", "--num_machines", "--num-machines"];
const NODE: [&str; 4] = ["--node-rank", "--node_rank", "--machine_rank", "--machine-rank"];
const ENDPOINT: [&str; 2] = ["--rdzv-endpoint", "--rdzv_endpoint"];
const ADDRESS: [&str; 4] =
    ["--master-addr", "--master_addr", "--main_process_ip", "--main-process-ip"];
const PORT: [&str; 4] =
    ["--master-port", "--master_port", "--main_process_port", "--main-process-port"];

/// The job of several nodes that a command starts a part of: by the scheduler's number, else by where its ranks meet.
pub fn node_of(command: &RunCommand, variable: impl Fn(&str) -> Option<String>) -> Option<NodeOf> {
    let option = |names: &[&str]| {
        let found = names.iter().find_map(|name| command.option(name));
        // A script's variables are not known here.
        found.filter(|value| !value.contains('$'))
    };
    // `--nnodes 2:4` starts with at least two.
    let count = |text: String| text.rsplit(':').next()?.parse().ok();
    let asked = option(&NODES).and_then(count);
    let allotted = || variable("SLURM_NNODES")?.parse().ok();
    let nodes: u32 = asked.or_else(allotted).filter(|nodes| *nodes > 1)?;
    let met = || {
        option(&ENDPOINT).or_else(|| {
            let port = option(&PORT).map(|port| format!(":{port}")).unwrap_or_default();
            Some(format!("{}{port}", option(&ADDRESS)?))
        })
    };
    let scheduled = variable("SLURM_JOB_ID").map(|id| format!("slurm {id}"));
    let node = option(&NODE).or_else(|| variable("SLURM_NODEID"));
    Some(NodeOf {
        job: scheduled.or_else(met)?,
        node: node.and_then(|node| node.parse().ok()),
        nodes,
    })
}

/// Records of one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRecords {
    /// What its nodes share.
    pub job: String,
    /// How many nodes it has.
    pub nodes: u32,
    /// Its records, by their place in the list, ordered by node.
    pub members: Vec<usize>,
    /// Which of the members failed first in the last attempt that failed; nothing if none did.
    pub failed_first: Option<FailedFirst>,
}

/// The jobs in a list of records. Records belong together if they share the job, are not of the same node, and ran at the same
/// time.
pub fn jobs(records: &[Record]) -> Vec<JobRecords> {
    let mut by_start: Vec<usize> = (0..records.len()).collect();
    by_start.sort_by(|a, b| records[*a].info.started_at.total_cmp(&records[*b].info.started_at));
    let mut jobs: Vec<JobRecords> = Vec::new();
    for index in by_start {
        let Some(of) = &records[index].info.node else { continue };
        let belongs = |job: &&mut JobRecords| {
            let mut members = job.members.iter().map(|member| &records[*member]);
            job.job == of.job && members.all(|member| runs_beside(member, &records[index]))
        };
        match jobs.iter_mut().rev().find(belongs) {
            Some(job) => job.members.push(index),
            None => jobs.push(JobRecords {
                job: of.job.clone(),
                nodes: of.nodes,
                members: vec![index],
                failed_first: None,
            }),
        }
    }
    for job in &mut jobs {
        job.members.sort_by_key(|index| {
            records[*index].info.node.as_ref().and_then(|of| of.node).unwrap_or(u32::MAX)
        });
        job.failed_first = first_of(job, records);
    }
    jobs
}

/// Whether two records are of different nodes that ran at the same time. The first began earlier.
fn runs_beside(first: &Record, later: &Record) -> bool {
    let node = |record: &Record| record.info.node.as_ref().and_then(|of| of.node);
    let is_other = match (node(first), node(later)) {
        (Some(one), Some(other)) => one != other,
        _ => first.info.host != later.info.host,
    };
    let until = first.verdict.as_ref().map_or_else(now, |verdict| verdict.ended_at);
    is_other && later.info.started_at <= until
}

/// Which member failed first, in the last attempt that failed on two nodes, else on one.
fn first_of(job: &JobRecords, records: &[Record]) -> Option<FailedFirst> {
    let ends: Vec<BTreeMap<u32, NodeEnd>> =
        job.members.iter().map(|index| ends(&records[*index])).collect();
    let failed = |attempt: &u32| {
        let of = ends.iter().filter_map(|ends| ends.get(attempt));
        of.filter(|end| end.cause != Some(Cause::Completed)).count()
    };
    let mut attempts: Vec<u32> = ends.iter().flat_map(BTreeMap::keys).copied().collect();
    attempts.sort_unstable_by(|a, b| b.cmp(a));
    let with = |least: usize| attempts.iter().find(|attempt| failed(attempt) >= least);
    let attempt = with(2).or_else(|| with(1))?;
    let took_part: Vec<(usize, NodeEnd)> = ends
        .iter()
        .enumerate()
        .filter_map(|(index, ends)| Some((index, ends.get(attempt)?.clone())))
        .collect();
    let ends: Vec<NodeEnd> = took_part.iter().map(|(_, end)| end.clone()).collect();
    Some(match failed_first(&ends) {
        FailedFirst::Node(index) => FailedFirst::Node(took_part[index].0),
        FailedFirst::None => FailedFirst::None,
    })
}

/// How each attempt of a run ended.
fn ends(record: &Record) -> BTreeMap<u32, NodeEnd> {
    let mut ends = BTreeMap::new();
    let Ok(events) = record.events() else { return ends };
    let mut last = None;
    for event in events {
        match event.happening {
            RunEvent::AttemptStarted { attempt, .. } => last = Some((attempt, event.at)),
            RunEvent::AttemptEnded { attempt, cause, .. } => {
                ends.insert(attempt, NodeEnd { cause: Some(cause), at: event.at });
            }
            _ => last = last.map(|(attempt, _)| (attempt, event.at)),
        }
    }
    if let Some((attempt, at)) = last.filter(|_| record.standing() == Standing::Lost) {
        ends.entry(attempt).or_insert(NodeEnd { cause: None, at });
    }
    ends
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use zeropilot_record::{Ending, RunInfo, Setup, Verdict};

    use super::*;
    use crate::store::Recorder;

    fn read(line: &str, variables: &[(&str, &str)]) -> Option<NodeOf> {
        let words = line.split(' ').map(Into::into).collect();
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        node_of(&RunCommand::read(words), variable)
    }

    #[test]
    fn a_job_is_known_by_its_scheduler_or_by_where_its_ranks_meet() {
        let torchrun = "torchrun --nnodes 2 --node-rank 1 --nproc-per-node 4 --master-addr 10.0.0.1 --master-port 29500 t.py";
        let of = |job: &str, node, nodes| Some(NodeOf { job: job.to_owned(), node, nodes });
        assert_eq!(read(torchrun, &[]), of("10.0.0.1:29500", Some(1), 2));
        let elastic = "torchrun --nnodes=2:4 --rdzv-endpoint=head:29400 --rdzv-id=7 t.py";
        assert_eq!(read(elastic, &[]), of("head:29400", None, 4));
        let accelerate = "accelerate launch --num_machines 2 --machine_rank 0 --main_process_ip head --main_process_port 1 t.py";
        assert_eq!(read(accelerate, &[]), of("head:1", Some(0), 2));
        let slurm = [("SLURM_JOB_ID", "4711"), ("SLURM_NNODES", "2"), ("SLURM_NODEID", "0")];
        assert_eq!(read("torchrun --nproc-per-node 4 t.py", &slurm), of("slurm 4711", Some(0), 2));
        assert_eq!(read("torchrun --nproc-per-node 4 t.py", &[]), None);
    }

    /// A record of a node that started at a time and ended with a cause.
    fn record(home: &Path, id: &str, node: u32, times: (f64, f64), cause: Cause) -> Record {
        let directory = home.join(id);
        let recorder = Recorder::create(&directory, None).expect("a record");
        let of = NodeOf { job: "head:1".to_owned(), node: Some(node), nodes: 2 };
        let (started_at, ended_at) = times;
        let info = RunInfo { id: id.to_owned(), started_at, node: Some(of), ..RunInfo::default() };
        let write = |name: &str, text: serde_json::Result<String>| {
            recorder.write(name, &text.expect("JSON")).expect("written");
        };
        write("run.json", serde_json::to_string(&info));
        recorder.add(RunEvent::AttemptStarted { attempt: 1, strategy: Setup::AsGiven, pid: 1 });
        let ending = Ending::Exited(1);
        recorder.add(RunEvent::AttemptEnded { attempt: 1, ending, cause: cause.clone() });
        write(
            "verdict.json",
            serde_json::to_string(&Verdict::new(id, cause, Vec::new(), ended_at)),
        );
        Record::open(&directory).expect("a record")
    }

    #[test]
    fn records_of_one_job_are_one_and_a_later_job_at_the_same_place_is_another() {
        let home = tempfile::tempdir().expect("a directory");
        let killed = Cause::RankKilled { rank: Some(1), signal: 9 };
        let records = [
            record(home.path(), "d", 0, (50.0, 60.0), Cause::Completed),
            record(home.path(), "b", 1, (2.0, 9.0), killed),
            record(home.path(), "a", 0, (1.0, 10.0), Cause::PeerLost),
            record(home.path(), "e", 1, (51.0, 60.0), Cause::Completed),
        ];
        let found = jobs(&records);
        let seen: Vec<_> =
            found.iter().map(|job| (job.members.clone(), job.failed_first)).collect();
        // By node: the first job has a (0) and b (1), which failed first.
        assert_eq!(seen, [(vec![2, 1], Some(FailedFirst::Node(1))), (vec![0, 3], None)]);
    }
}
