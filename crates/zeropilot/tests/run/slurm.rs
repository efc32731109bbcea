//! A real Slurm of one node, started for the test: a job that is warned, and one that another preempts, saves, is requeued and
//! continues.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::job::{Job, free_port, here, program};
use crate::supervised::{is_installed, marked, or_skipped};

/// What the controller and the node are told.
const CONFIG: &str = "\
ClusterName=test
SlurmctldHost=@HOST@(127.0.0.1)
SlurmctldPort=@CONTROLLER@
SlurmdPort=@NODE@
AuthType=auth/munge
AuthInfo=socket=@ROOT@/munge.socket,cred_expire=10
SlurmUser=root
SlurmdUser=root
StateSaveLocation=@ROOT@/state
SlurmdSpoolDir=@ROOT@/spool
SlurmctldPidFile=@ROOT@/slurmctld.pid
SlurmdPidFile=@ROOT@/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerParameters=sched_interval=2,batch_sched_delay=1,requeue_delay=1
MpiDefault=none
NodeName=@HOST@ NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=all Nodes=@HOST@ Default=YES PriorityTier=1 GraceTime=60 State=UP
PartitionName=urgent Nodes=@HOST@ PriorityTier=2 State=UP
";

/// Without systemd to ask, as in a container.
const CGROUPS: &str = "CgroupPlugin=autodetect\nIgnoreSystemd=yes\n";

/// The daemons, which end with their value, and with them whatever they started.
struct Slurm {
    root: PathBuf,
    mark: String,
    daemons: Vec<Child>,
}

impl Slurm {
    /// # Errors
    /// What this machine lacks.
    fn start(root: &Path, mark: &str) -> Result<Self, String> {
        let needed = ["munged", "slurmctld", "slurmd", "sbatch", "srun", "scancel"];
        if let Some(missing) = needed.iter().find(|name| !is_installed(name)) {
            return Err(format!("{missing} is not installed"));
        }
        let user = Command::new("id").arg("-u").output().map(|user| user.stdout);
        if user.ok().as_deref() != Some(b"0\n") {
            return Err("slurmd needs root".to_owned());
        }
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let config = CONFIG
            .replace("@HOST@", host.trim().split('.').next().unwrap_or_default())
            .replace("@CONTROLLER@", &free_port().to_string())
            .replace("@NODE@", &free_port().to_string())
            .replace("@ROOT@", &root.display().to_string());
        for directory in ["state", "spool"] {
            fs::create_dir_all(root.join(directory)).map_err(|error| error.to_string())?;
        }
        fs::write(root.join("slurm.conf"), config).map_err(|error| error.to_string())?;
        fs::write(root.join("cgroup.conf"), CGROUPS).map_err(|error| error.to_string())?;
        let mut slurm = Self { root: root.to_owned(), mark: mark.to_owned(), daemons: Vec::new() };
        slurm.authenticate()?;
        slurm.daemon("slurmctld", &["-D", "-i"])?;
        slurm.daemon("slurmd", &["-D"])?;
        let end = Instant::now() + Duration::from_secs(60);
        while !slurm.ask("sinfo", &["--noheader", "--format=%t"]).contains("idle") {
            if Instant::now() > end {
                return Err(format!("the node does not come up: {}", slurm.ask("sinfo", &[])));
            }
            std::thread::sleep(Duration::from_millis(500));
        }
        Ok(slurm)
    }

    fn authenticate(&mut self) -> Result<(), String> {
        use std::os::unix::fs::PermissionsExt as _;
        let key = self.root.join("munge.key");
        let random: Vec<u8> =
            (0_u32..64).flat_map(|one| one.wrapping_mul(0x9E37_79B9).to_le_bytes()).collect();
        fs::write(&key, random).map_err(|error| error.to_string())?;
        let _ = fs::set_permissions(&key, fs::Permissions::from_mode(0o600));
        let file = |name: &str, path: &str| format!("--{name}={}/{path}", self.root.display());
        let arguments = [
            "--foreground".to_owned(),
            "--force".to_owned(),
            file("key-file", "munge.key"),
            file("socket", "munge.socket"),
            file("pid-file", "munged.pid"),
            file("log-file", "munged.log"),
            file("seed-file", "munge.seed"),
        ];
        self.daemon("munged", &arguments.each_ref().map(String::as_str))?;
        let end = Instant::now() + Duration::from_secs(30);
        while !self.root.join("munge.socket").exists() {
            if Instant::now() > end {
                return Err("munged does not start".to_owned());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    fn daemon(&mut self, name: &str, arguments: &[&str]) -> Result<(), String> {
        let log =
            fs::File::create(self.root.join(format!("{name}.out"))).map_err(|e| e.to_string())?;
        let child = self.command(name).args(arguments).stdout(Stdio::null()).stderr(log).spawn();
        self.daemons.push(child.map_err(|error| format!("{name}: {error}"))?);
        Ok(())
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command.env("SLURM_CONF", self.root.join("slurm.conf"));
        command.env("ZEROPILOT_TEST_MARK", &self.mark);
        command
    }

    fn ask(&self, name: &str, arguments: &[&str]) -> String {
        let output = self.command(name).args(arguments).output();
        output
            .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
            .unwrap_or_default()
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        // The node's daemon leaves one for each step of a job, which survives it.
        for (pid, _) in marked(&self.mark) {
            let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
        }
    }
}

#[test]
fn a_job_that_slurm_warns_and_preempts_is_requeued_and_continues() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 2);
    let slurm = Slurm::start(&job.path("slurm"), &job.mark);
    let Some(slurm) = or_skipped("no Slurm here", slurm) else { return };
    let script = format!(
        "#!/bin/bash\n#SBATCH --requeue --exclusive --time=20 --open-mode=append --output=job.log\n\
         srun {zeropilot} run --record record --continue --resume-with '--resume {{}}' --requeue-exit-code 75 --grace 25s -- \
         torchrun --nproc-per-node 2 --master-port {port} {program} --deepspeed ds.json --steps 200 --pause 0.2 --save ckpt \
         --save-every 1000 --preemptible\n\
         code=$?\necho \"start $((${{SLURM_RESTART_COUNT:-0}} + 1)) exited with $code\"\n\
         [ $code -eq 75 ] && scontrol requeue $SLURM_JOB_ID\nexit $code\n",
        zeropilot = env!("CARGO_BIN_EXE_zeropilot"),
        port = free_port(),
        program = program().display(),
    );
    fs::write(job.path("job.sbatch"), script).expect("a script");
    let submitted = slurm
        .command("sbatch")
        .args(["--parsable", "job.sbatch"])
        .current_dir(job.directory.path())
        .envs(zeropilot_oracle::surroundings(&home))
        .env("PYTHONPATH", here("../../python"))
        .env("ZEROPILOT_RUNS", job.path("runs"))
        .output()
        .expect("sbatch runs");
    let id = String::from_utf8_lossy(&submitted.stdout).trim().to_owned();
    assert!(!id.is_empty(), "{}", String::from_utf8_lossy(&submitted.stderr));
    let log = || fs::read_to_string(job.path("job.log")).unwrap_or_default();
    let end = Instant::now() + Duration::from_secs(600);
    let wait_for = |what: &str, is_so: &dyn Fn() -> bool| {
        while !is_so() {
            assert!(Instant::now() < end, "not in time: {what}\n{}", log());
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    wait_for("a step", &|| log().contains("step 3 loss"));
    // Like `--signal=USR1@…`, it reaches every process of the step.
    slurm.ask("scancel", &["--signal=USR1", &id]);
    wait_for("a step of the second start", &|| {
        log().lines().last().is_some_and(|line| line.starts_with("step "))
            && log().contains("start 1 exited with")
    });
    let urgent = [
        "--parsable",
        "--partition=urgent",
        "--exclusive",
        "--output=urgent.log",
        "--wrap=echo done",
    ];
    slurm
        .command("sbatch")
        .args(urgent)
        .current_dir(job.directory.path())
        .output()
        .expect("sbatch runs");
    wait_for("the end", &|| log().contains("start 3 exited with"));
    wait_for("an empty queue", &|| slurm.ask("squeue", &["--noheader"]).trim().is_empty());
    drop(slurm);
    assert_eq!(marked(&job.mark), []);
    let log = log();
    assert!(
        log.contains("start 1 exited with 75")
            && log.contains("start 2 exited with 75")
            && log.contains("start 3 exited with 0"),
        "{log}"
    );
    let urgent = fs::read_to_string(job.path("urgent.log")).unwrap_or_default();
    assert_eq!(urgent.trim(), "done");
    let steps: Vec<&str> = log.lines().filter(|line| line.starts_with("step ")).collect();
    let numbers: Vec<u64> =
        steps.iter().filter_map(|line| line.split(' ').nth(1)?.parse().ok()).collect();
    assert_eq!(numbers, (1..=200).collect::<Vec<u64>>(), "each step is made once");
    let verdict = fs::read_to_string(job.path("record/verdict.json")).expect("a verdict");
    let verdict: Value = serde_json::from_str(&verdict).expect("JSON");
    assert_eq!(
        (&verdict["cause"], &verdict["attempts"][0]["signal"]),
        (&json!("completed"), &json!(10))
    );
}
