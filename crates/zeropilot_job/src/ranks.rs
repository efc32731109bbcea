//! How many ranks a launch starts, where the script settles it.

use crate::hostfile;
use crate::launch::Launch;
use crate::launcher::Launcher;
use crate::script::Files;
use crate::shell::Assignment;

impl Launch {
    /// How many ranks, where every number is written.
    pub(super) fn count(&self, exported: &[Assignment], files: Files<'_>) -> Option<usize> {
        match self.launcher {
            Launcher::DeepSpeed => self.count_deepspeed(files),
            Launcher::Torchrun => {
                let per_node = self.number("nproc_per_node")?;
                let nodes = match self.option("nnodes") {
                    None => 1,
                    Some(_) => self.number("nnodes")?,
                };
                per_node.checked_mul(nodes)
            }
            Launcher::Accelerate => self.number("num_processes"),
            Launcher::LlamaFactory | Launcher::Swift => self.count_by_variables(exported),
            Launcher::Axolotl | Launcher::Python => None,
        }
    }

    /// On how many machines, where the launch itself settles it.
    pub fn nodes(&self) -> Option<usize> {
        let named = |name: &str| self.option(name).map_or(Some(1), |_| self.number(name));
        match self.launcher {
            _ if self.is_repeated => None,
            Launcher::DeepSpeed if self.has_option(&["hostfile", "H", "include", "i"]) => None,
            Launcher::DeepSpeed if self.has_option(&["num_gpus"]) => named("num_nodes"),
            Launcher::Torchrun if self.has_option(&["nproc_per_node"]) => named("nnodes"),
            _ => None,
        }
    }

    /// What front ends that start `torchrun` themselves are told by variables.
    fn count_by_variables(&self, exported: &[Assignment]) -> Option<usize> {
        let set = |name: &str| {
            let mut own = self.variables.iter().rev().chain(exported.iter().rev());
            own.find(|set| set.name == name).map(|set| set.value.text.as_deref())
        };
        let per_node: usize = set("NPROC_PER_NODE")??.parse().ok()?;
        let nodes = set("NNODES").map_or(Some(1), |nodes| nodes?.parse().ok())?;
        per_node.checked_mul(nodes)
    }

    fn count_deepspeed(&self, files: Files<'_>) -> Option<usize> {
        if let Some(include) = self.option("include").or_else(|| self.option("i")) {
            let text = include.text.as_deref()?;
            let hosts = text.split('@').map(|host| host.split_once(':').map(|(_, slots)| slots));
            return hosts.map(|slots| Some(slots?.split(',').count())).sum();
        }
        let hosts = self.option("hostfile").or_else(|| self.option("H"));
        if let Some(hosts) = hosts
            && !self.has_option(&["exclude", "e", "num_gpus", "num_nodes"])
        {
            return hostfile::slots(&files(hosts.text.as_deref()?)?);
        }
        let per_node = self.number("num_gpus")?;
        let nodes = match self.option("num_nodes") {
            None if hosts.is_some() => return None,
            None => 1,
            Some(_) => self.number("num_nodes")?,
        };
        per_node.checked_mul(nodes)
    }
}

#[cfg(test)]
mod tests {
    fn world(text: &str) -> Option<usize> {
        let hosts = |name: &str| (name == "hosts").then(|| "a slots=8\nb slots=8\n".to_owned());
        let job = crate::read(text, &Default::default(), &hosts);
        job.launches.first().expect("a launch").world
    }

    #[test]
    fn machines_are_counted_where_the_launch_settles_it() {
        for (text, nodes) in [
            ("deepspeed --num_gpus 4 t.py", Some(1)),
            ("deepspeed --num_gpus=4 --num_nodes=2 t.py", Some(2)),
            ("deepspeed --num_gpus 4 --hostfile hosts t.py", None),
            ("deepspeed t.py", None),
            ("torchrun --nproc_per_node 8 t.py --deepspeed ds.json", Some(1)),
            ("torchrun --nproc_per_node 8 --nnodes $N t.py --deepspeed ds.json", None),
            ("srun -N 2 torchrun --nproc_per_node 8 t.py --deepspeed ds.json", None),
        ] {
            let job = crate::read(text, &Default::default(), &|_| None);
            assert_eq!(job.launches.first().expect("a launch").nodes(), nodes, "{text}");
        }
    }

    #[test]
    fn ranks_are_counted_where_every_number_is_written() {
        for (text, ranks) in [
            ("deepspeed --num_gpus 4 t.py", Some(4)),
            ("deepspeed --num_gpus=4 --num_nodes=2 t.py", Some(8)),
            ("deepspeed --include localhost:0,2,5 t.py", Some(3)),
            ("deepspeed --include a:0,1@b:0,1,2 t.py", Some(5)),
            ("deepspeed --hostfile hosts t.py", Some(16)),
            ("deepspeed t.py", None),
            ("deepspeed --num_gpus $GPUS t.py", None),
            ("torchrun --nproc_per_node=8 --nnodes 2 t.py --deepspeed ds.json", Some(16)),
            ("torchrun --nproc-per-node gpu t.py --deepspeed ds.json", None),
            (
                "python -m torch.distributed.run --nproc_per_node 2 t.py --deepspeed ds.json",
                Some(2),
            ),
            ("srun --jobid 1 bash x torchrun --nproc_per_node 8 t.py --deepspeed ds.json", Some(8)),
            ("accelerate launch --num_processes 6 --deepspeed_config_file ds.json t.py", Some(6)),
        ] {
            assert_eq!(world(text), ranks, "{text}");
        }
    }
}
