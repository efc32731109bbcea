//! A job of several nodes in words: how each node stands, and which failed first.

use serde_json::{Value, json};
use zeropilot_record::{Cause, FailedFirst};
use zeropilot_text::{Language, tr};

use super::cause_words;
use crate::escaped;

/// A node of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeLook {
    /// Its run.
    pub id: String,
    /// Its number, if it is known.
    pub node: Option<u32>,
    /// The name of the machine.
    pub host: Option<String>,
    /// Why it ended.
    pub cause: Option<Cause>,
    /// Whether its supervisor lives.
    pub is_running: bool,
}

/// A job of several nodes, as far as their records are here.
#[derive(Debug, Clone, PartialEq)]
pub struct JobLook {
    /// What its nodes share.
    pub job: String,
    /// How many there are.
    pub nodes: u32,
    /// Those that have a record here.
    pub members: Vec<NodeLook>,
    /// Which of these failed first, if one did.
    pub failed_first: Option<FailedFirst>,
}

impl NodeLook {
    fn name(&self, language: Language) -> String {
        let host = self.host.as_deref().map(escaped);
        match (self.node, host) {
            (Some(node), Some(host)) => {
                tr!(language, "node {node} ({host})", "节点 {node}（{host}）")
            }
            (Some(node), None) => tr!(language, "node {node}", "节点 {node}"),
            (None, Some(host)) => tr!(language, "node {host}", "节点 {host}"),
            (None, None) => tr!(language, "a node", "某个节点"),
        }
    }

    fn state(&self, language: Language) -> String {
        match &self.cause {
            Some(cause) => cause_words(cause, language),
            None if self.is_running => tr!(language, "running", "运行中"),
            None => {
                tr!(
                    language,
                    "lost: the supervising process is no longer running",
                    "已丢失：监督进程已退出"
                )
            }
        }
    }
}

/// The job in a line: which node failed first, if one did.
pub fn head(job: &JobLook, language: Language) -> String {
    let (name, nodes, known) = (escaped(&job.job), job.nodes, job.members.len());
    let failed = match job.failed_first {
        None => String::new(),
        Some(FailedFirst::Node(index)) => job.members.get(index).map_or(String::new(), |node| {
            let node = node.name(language);
            tr!(language, "; {node} failed first", "；最先失败的是{node}")
        }),
        Some(FailedFirst::None) => tr!(
            language,
            "; no node failed by itself: check the network between the nodes, and the nodes that have no record here",
            "；没有节点自身出错：请检查节点之间的网络，以及这里没有记录的节点"
        ),
    };
    tr!(
        language,
        "job {name}: {known} of {nodes} nodes{failed}",
        "作业 {name}：{known}/{nodes} 个节点{failed}"
    )
}

/// A line for each node.
pub fn members(job: &JobLook, language: Language) -> Vec<String> {
    let line = |node: &NodeLook| {
        let (name, state) = (node.name(language), node.state(language));
        tr!(language, "{name}: {state}", "{name}：{state}")
    };
    job.members.iter().map(line).collect()
}

/// The job for machines.
pub fn json(job: &JobLook) -> Value {
    let is_first = |index: usize| match job.failed_first {
        None | Some(FailedFirst::None) => false,
        Some(FailedFirst::Node(first)) => first == index,
    };
    let member = |(index, node): (usize, &NodeLook)| {
        json!({
            "id": node.id,
            "node": node.node,
            "host": node.host,
            "cause": node.cause.as_ref().map(Cause::name),
            "is_running": node.is_running,
            "failed_first": is_first(index),
        })
    };
    json!({
        "job": job.job,
        "nodes": job.nodes,
        "members": job.members.iter().enumerate().map(member).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(failed_first: Option<FailedFirst>) -> JobLook {
        let node = |node, cause: Option<Cause>| NodeLook {
            id: format!("run-{node}"),
            node: Some(node),
            host: Some(format!("gpu{node}")),
            is_running: cause.is_none(),
            cause,
        };
        let killed = Cause::RankKilled { rank: Some(9), signal: 9 };
        let members = vec![node(0, Some(Cause::PeerLost)), node(1, Some(killed)), node(2, None)];
        JobLook { job: "10.0.0.1:29500".to_owned(), nodes: 4, members, failed_first }
    }

    #[test]
    fn the_node_that_failed_first_is_named_in_both_languages() {
        let one = job(Some(FailedFirst::Node(1)));
        let english = "job 10.0.0.1:29500: 3 of 4 nodes; node 1 (gpu1) failed first";
        assert_eq!(head(&one, Language::English), english);
        let chinese = "作业 10.0.0.1:29500：3/4 个节点；最先失败的是节点 1（gpu1）";
        assert_eq!(head(&one, Language::Chinese), chinese);
        assert_eq!(members(&one, Language::English)[2], "node 2 (gpu2): running");
        assert_eq!(json(&one)["members"][1]["failed_first"], true);
        assert!(head(&job(Some(FailedFirst::None)), Language::English).contains("network"));
        assert_eq!(head(&job(None), Language::English), "job 10.0.0.1:29500: 3 of 4 nodes");
    }
}
