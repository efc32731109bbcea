"""Steps of TRL's trainers with several models on the same ranks: what every engine keeps, and the highest point of every
phase.

    python -m measure.tasks [count] [seed]       in `oracle/`: drawn cases, one per line; the seed goes to standard error

A case has "trainer" (dpo, kto, orpo, cpo, reward, gkd, grpo, rloo), "model" and "teacher" (the sizes of small Llamas),
"config" (DeepSpeed's), "world", and "settings": b sequences, prompts of p and completions of c tokens, gc (gradient
checkpointing), beta (weight of a reference), lora ({"r"}), precompute. The answer has its "roles" and for every rank the
bytes of each engine at rest and the phases of the last of three steps, in order, as [name, highest point, bytes at its
end, {kind of call: [calls, bytes]}]. Phases are cut where an engine's forward, backward and step, `generate` and gathers
around it begin and end; "between" is the rest.
"""

import functools
import json
import os
import random
import sys

STEPS = 3


def draw_config(draw, micro):
    stage = draw.choice([0, 2, 2, 3, 3, 3])
    zero = {"stage": stage, "reduce_bucket_size": draw.choice([2000, 5000, 20_000, 100_000])}
    if stage == 3:
        zero |= {
            "stage3_prefetch_bucket_size": draw.choice([0, 5000, 20_000, 100_000]),
            "stage3_param_persistence_threshold": draw.choice([0, 100, 1000]),
            "stage3_max_live_parameters": draw.choice([30_000, 1_000_000_000]),
            "stage3_max_reuse_distance": draw.choice([0, 1_000_000_000]),
        }
    if stage > 0 and draw.random() < 0.2:
        zero["offload_optimizer"] = {"device": "cpu"}
    return {
        "train_micro_batch_size_per_gpu": micro,
        "gradient_accumulation_steps": 1,
        "bf16": {"enabled": True},
        "optimizer": {"type": "AdamW", "params": {"lr": 0.0001}},
        "zero_optimization": zero,
    }


def draw_llama(draw, vocabulary):
    heads = draw.choice([2, 4])
    return {
        "h": heads * draw.choice([8, 12, 16]),
        "i": draw.choice([40, 64, 96, 130]),
        "L": draw.choice([1, 2, 3]),
        "a": heads,
        "k": draw.choice([1, 2]),
        "v": vocabulary,
    }


TRAINERS = ("dpo", "kto", "orpo", "cpo", "reward", "gkd", "grpo", "rloo")


def draw_case(draw, trainer):
    generates = trainer in ("grpo", "rloo")
    micro = draw.choice([2, 4]) if generates or trainer == "kto" else draw.choice([1, 2, 3])
    vocabulary = draw.choice([149, 211, 307, 503])
    settings = {
        "b": micro,
        "p": draw.choice([5, 7, 12, 14]),
        "c": draw.choice([6, 10, 15]),
        "gc": draw.random() < 0.4,
    }
    if generates:
        settings |= {"beta": draw.choice([0.0, 0.04]), "G": 2}
    config = draw_config(draw, micro)
    if trainer == "dpo":
        kind = draw.choice(["copy", "copy", "lora", "precompute"])
        if kind == "lora":
            settings["lora"] = {"r": draw.choice([2, 4])}
        # In stage 3 the hooks of two engines are on one model then, which no prediction follows.
        elif kind == "precompute" and config["zero_optimization"]["stage"] < 3:
            settings["precompute"] = True
    return {
        "trainer": trainer,
        "model": draw_llama(draw, vocabulary),
        "teacher": draw_llama(draw, vocabulary) if trainer == "gkd" else None,
        "config": config,
        "settings": settings,
        "world": 2,
    }


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    print(f"seed {seed}", file=sys.stderr)
    draw = random.Random(seed)
    for number in range(count):
        # Every trainer once before any comes again.
        drawn = draw_case(draw, TRAINERS[number % len(TRAINERS)])
        print(json.dumps({"id": number, "name": f"draw {seed}-{number}", **drawn}))


def save_model(sizes, directory, is_reward=False):
    """A small Llama as files, from which trainers load it and its reference."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, LlamaForSequenceClassification

    config = LlamaConfig(
        hidden_size=sizes["h"],
        intermediate_size=sizes["i"],
        num_hidden_layers=sizes["L"],
        num_attention_heads=sizes["a"],
        num_key_value_heads=sizes["k"],
        vocab_size=sizes["v"],
        max_position_embeddings=512,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=1,
        pad_token_id=0,
        num_labels=1,
    )
    torch.manual_seed(0)
    kind = LlamaForSequenceClassification if is_reward else LlamaForCausalLM
    kind(config).to(torch.bfloat16).save_pretrained(directory)


def save_tokenizer(size, directory):
    """Every word is a token."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = ["<pad>", "</s>", "<unk>"] + [f"w{number}" for number in range(size - 3)]
    tokenizer = Tokenizer(models.WordLevel({word: index for index, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", padding_side="left"
    )
    fast.save_pretrained(directory)


def words(draw, count, vocabulary):
    return " ".join(f"w{draw.randrange(vocabulary - 3)}" for _ in range(count))


class Phases:
    """The phases of a process as they pass."""

    def __init__(self, recorder, calls):
        self.recorder = recorder
        self.calls = calls
        self.list = []
        self._inside = None

    def restart(self):
        self.list.clear()
        self.calls.take()
        self.recorder.restart()

    def cut(self, name):
        counted = {}
        for count, kind, size, given, received, *_ in self.calls.take():
            moved = size * max(given, received)
            slot = counted.setdefault(kind, [0, 0])
            counted[kind] = [slot[0] + count, slot[1] + count * moved]
        self.list.append([name, self.recorder.peak, self.recorder.total, counted])
        self.recorder.restart()

    def around(self, method, name_of):
        @functools.wraps(method)
        def wrapper(first, *arguments, **keywords):
            name = name_of(first)
            if self._inside or name is None:
                return method(first, *arguments, **keywords)
            self.cut("between")
            self._inside = name
            try:
                return method(first, *arguments, **keywords)
            finally:
                self._inside = None
                self.cut(name)

        return wrapper


class Job:
    """One rank of a case."""

    def __init__(self, case, rank):
        from measure import calls, rest
        from measure.recorder import Recorder

        self.case = case
        self.rank = rank
        self.pinned = rest.Pinned()
        self.recorder = Recorder()
        self.phases = Phases(self.recorder, calls.listen())
        self.frozen = []
        self.policy = None
        self._write_models()
        self._watch()

    def _write_models(self):
        """By one rank, since a process whose PyTorch has computed cannot be forked."""
        import torch

        if self.rank == 0:
            directory = self.case["models"]
            save_model(self.case["model"], os.path.join(directory, "model"), self.case["trainer"] == "reward")
            if self.case["teacher"]:
                save_model(self.case["teacher"], os.path.join(directory, "teacher"))
            save_tokenizer(self.case["model"]["v"], directory)
        torch.distributed.barrier()

    def _watch(self):
        import deepspeed
        import torch
        from deepspeed.runtime.engine import DeepSpeedEngine
        from transformers import GenerationMixin

        built = DeepSpeedEngine.__init__

        def build(engine, *arguments, **keywords):
            built(engine, *arguments, **keywords)
            if self.is_training:
                self.policy = engine
            else:
                self.frozen.append(engine)

        def forward_of(engine):
            return f"{self.role(engine)}.{'fwd' if torch.is_grad_enabled() else 'fwd_nograd'}"

        DeepSpeedEngine.__init__ = build
        for name, name_of in (
            ("forward", forward_of),
            ("backward", lambda engine: f"{self.role(engine)}.bwd"),
            ("step", lambda engine: f"{self.role(engine)}.step"),
        ):
            setattr(DeepSpeedEngine, name, self.phases.around(getattr(DeepSpeedEngine, name), name_of))
        GenerationMixin.generate = self.phases.around(GenerationMixin.generate, lambda _: "generate")
        gathered = deepspeed.zero.GatheredParameters
        gathered.__enter__ = self.phases.around(gathered.__enter__, lambda it: "gather_all" if it.enabled else None)
        gathered.__exit__ = self.phases.around(gathered.__exit__, lambda it: "release_all" if it.enabled else None)

    is_training = False

    def role(self, engine):
        if engine is self.policy:
            return "policy"
        return "teacher" if self.case["trainer"] == "gkd" else "ref"

    def arguments(self):
        settings = self.case["settings"]
        arguments = {
            "output_dir": self.case["directory"],
            "per_device_train_batch_size": settings["b"],
            "gradient_accumulation_steps": self.case["config"]["gradient_accumulation_steps"],
            "max_steps": STEPS,
            "learning_rate": 0.0001,
            "bf16": True,
            "use_cpu": True,
            "deepspeed": json.loads(json.dumps(self.case["config"])),
            "gradient_checkpointing": settings.get("gc", False),
            "gradient_checkpointing_kwargs": {"use_reentrant": False},
            "report_to": "none",
            "save_strategy": "no",
            "logging_steps": 1000,
            "disable_tqdm": True,
            "dataloader_pin_memory": False,
        }
        trainer = self.case["trainer"]
        if trainer in ("grpo", "rloo"):
            arguments |= {
                "num_generations": settings["G"],
                "max_completion_length": settings["c"],
                "beta": settings["beta"],
            }
        elif trainer == "gkd":
            arguments |= {"max_new_tokens": settings["c"], "lmbda": settings.get("lmbda", 0.0), "max_length": 512}
        else:
            arguments["max_length"] = 512
        if settings.get("precompute"):
            arguments["precompute_ref_log_probs"] = True
        return arguments

    def texts(self):
        """Prompts and answers, the same number of tokens in each; a trainer that ends answers itself needs one word less."""
        trainer, settings = self.case["trainer"], self.case["settings"]
        draw = random.Random(7)
        size = self.case["model"]["v"]
        count = 64
        answer = settings["c"] - (0 if trainer in ("orpo", "cpo") else 1)
        prompt = lambda: words(draw, settings["p"], size)
        prompts = [prompt() for _ in range(count)]
        answers = lambda: [" " + words(draw, answer, size) for _ in range(count)]
        if trainer in ("grpo", "rloo"):
            return {"prompt": prompts}
        if trainer == "kto":
            return {"prompt": prompts, "completion": answers(), "label": [index % 2 == 0 for index in range(count)]}
        if trainer == "gkd":
            return {"messages": [[{"role": "user", "content": "w0"}, {"role": "assistant", "content": "w1"}]] * count}
        return {"prompt": prompts, "chosen": answers(), "rejected": answers()}

    def gkd_batch(self, examples):
        import torch

        settings, size = self.case["settings"], self.case["model"]["v"]
        length = settings["p"] + settings["c"]
        tokens = torch.randint(3, size, (len(examples), length))
        labels = tokens.clone()
        labels[:, : settings["p"]] = -100
        return {
            "input_ids": tokens,
            "attention_mask": torch.ones_like(tokens),
            "labels": labels,
            "prompts": tokens[:, : settings["p"]].clone(),
            "prompt_attention_mask": torch.ones(len(examples), settings["p"], dtype=torch.long),
        }

    def trainer(self):
        import trl
        from datasets import Dataset
        from peft import LoraConfig
        from transformers import AutoTokenizer

        kind = self.case["trainer"]
        directory = self.case["models"]
        from trl.experimental.cpo import CPOConfig, CPOTrainer
        from trl.experimental.gkd import GKDConfig, GKDTrainer
        from trl.experimental.orpo import ORPOConfig, ORPOTrainer

        classes = {
            "dpo": (trl.DPOConfig, trl.DPOTrainer),
            "kto": (trl.KTOConfig, trl.KTOTrainer),
            "orpo": (ORPOConfig, ORPOTrainer),
            "cpo": (CPOConfig, CPOTrainer),
            "reward": (trl.RewardConfig, trl.RewardTrainer),
            "gkd": (GKDConfig, GKDTrainer),
            "grpo": (trl.GRPOConfig, trl.GRPOTrainer),
            "rloo": (trl.RLOOConfig, trl.RLOOTrainer),
        }
        config, trainer = classes[kind]
        more = {}
        if kind in ("grpo", "rloo"):
            more["reward_funcs"] = lambda completions, **_: [float(len(set(text))) for text in completions]
        if kind == "gkd":
            more |= {"teacher_model": os.path.join(directory, "teacher"), "data_collator": self.gkd_batch}
        if lora := self.case["settings"].get("lora"):
            more["peft_config"] = LoraConfig(r=lora["r"], target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
        made = trainer(
            model=os.path.join(directory, "model"),
            args=config(**self.arguments()),
            train_dataset=Dataset.from_dict(self.texts()),
            processing_class=AutoTokenizer.from_pretrained(directory),
            callbacks=[watcher(self.phases)],
            **more,
        )
        if kind in ("grpo", "rloo"):
            # A completion has all its tokens, whatever is sampled.
            made.generation_config.eos_token_id = None
            made.eos_token_ids = [-1]
        return made

    def engines(self):
        from measure import rest

        found = {}
        for engine in [*self.frozen, self.policy]:
            by_category, _, _ = rest.at_rest(engine, self.recorder, self.pinned)
            found[self.role(engine)] = {"bytes": sum(by_category.values())}
        return found

    def run(self):
        import torch

        # Accelerate wants them, though the process group is there already.
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29500")
        torch.manual_seed(self.rank)
        with self.recorder:
            trainer = self.trainer()
            self.is_training = True
            trainer.train()
        return {"rank": self.rank, "engines": self.engines(), "phases": self.phases.list}


def watcher(phases):
    from transformers import TrainerCallback

    class Watcher(TrainerCallback):
        """Only the last step counts."""

        def on_step_begin(self, args, state, control, **_):
            phases.restart()
            phases.cut("stepbegin")

        def on_step_end(self, args, state, control, **_):
            phases.cut("step_end")

    return Watcher()


def measured(case):
    import tempfile

    from datasets import fingerprint
    from measure import ranks

    # Made here, the ranks share it: one of them writes what the others read.
    fingerprint.get_temporary_cache_files_directory()
    with tempfile.TemporaryDirectory(prefix="zeropilot-") as directory:
        answers = ranks.run(lambda case, rank: Job(case, rank).run(), {**case, "models": directory})
    if isinstance(answers, dict):
        return answers
    return {"roles": list(answers[0]["engines"]), "ranks": answers}


if __name__ == "__main__":
    main()
