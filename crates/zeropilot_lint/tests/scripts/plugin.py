from accelerate import Accelerator

accelerator = Accelerator()
plugin = accelerator.state.deepspeed_plugin
print("no plugin" if plugin is None else plugin.deepspeed_config["zero_optimization"]["offload_param"])
