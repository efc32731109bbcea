"""Compiled operators for engines that are installed without them.

Only the newest engine is installed with its operators. The interfaces of those that run on a CPU are the same in every
version here, so an older engine gets the newest one's instead of compiling its own for minutes. What is asked of an older
engine is what it refuses, allocates and sends; none of that is decided inside an operator.
"""

import importlib.util
import pathlib
import sysconfig

# name of the builder: file below `deepspeed/ops`
OPERATORS = {
    "cpu_adam": "adam/cpu_adam_op",
    "fused_adam": "adam/fused_adam_op",
    "cpu_adagrad": "adagrad/cpu_adagrad_op",
    "cpu_lion": "lion/cpu_lion_op",
    "deepspeed_shm_comm": "comm/deepspeed_shm_comm_op",
}


def lend():
    """Gives the running engine the operators of the newest one, if it is another and they are compiled."""
    import deepspeed
    from deepspeed.ops.op_builder.builder import OpBuilder

    newest = pathlib.Path(sysconfig.get_paths()["purelib"]) / "deepspeed"
    if pathlib.Path(deepspeed.__file__).parent == newest:
        return
    for name, place in OPERATORS.items():
        for file in (newest / "ops").glob(f"{place}.*.so"):
            spec = importlib.util.spec_from_file_location(file.name.split(".")[0], file)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            OpBuilder._loaded_ops[name] = module


def refuse_deepcompile():
    """DeepCompile's operators need CUDA's headers. 0.16 and 0.17 try to compile them in the first backward, on a CPU too;
    here they fail at once and as they would after a minute of the compiler."""
    try:
        from deepspeed.compile import util
    except ImportError:
        return

    def refuse(builder):
        raise RuntimeError(f"Error building extension '{builder.NAME}'")

    util.DeepCompileBuilder.load = refuse
