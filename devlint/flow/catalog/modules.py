"""Modules of torch: those that may hold nothing, that wrap others, and what their methods do."""

from __future__ import annotations

import re

TAKE_MODULES = frozenset({"torch.nn.TripletMarginWithDistanceLoss"})
"""Those without a part of their own that can be given one."""
BARE_BY_DEFAULT = frozenset(f"torch.nn.InstanceNorm{rank}d" for rank in (1, 2, 3))
"""Those that have none of what they can have unless an argument behind the first asks for it."""
OF_PARAMETERS = ("affine", "elementwise_affine")
"""The arguments that say whether there are parameters."""
OF_BUFFERS = ("track_running_stats",)
"""The arguments that say whether there are buffers."""
DISTRIBUTED = "torch.nn.parallel.DistributedDataParallel"
OF_ONE_PROCESS = frozenset({"torch.nn.DataParallel", "torch.nn.parallel.data_parallel"})
WRAPPERS = OF_ONE_PROCESS | {DISTRIBUTED}
"""The wrappers for several devices, by their canonical names."""
OWN_OF_WRAPPERS = frozenset(
    """module device_ids output_device dim static_graph training find_unused_parameters broadcast_buffers logger
    require_backward_grad_sync require_forward_param_sync gradient_as_bucket_view process_group""".split()
)
"""Attributes of the wrappers themselves."""
OF_WRAPPERS = OWN_OF_WRAPPERS | frozenset(
    """T_destination add_module apply batched_grad_copy bfloat16 broadcast_bucket_size bucket_bytes_cap
    bucket_bytes_cap_default bucket_bytes_cap_list buffer_hook buffers call_super_init children compile cpu cuda
    ddp_join_enabled device device_mesh device_type double dump_patches eval extra_repr float forward
    forward_sync_buffers gather get_buffer get_extra_state get_parameter get_submodule half ipu
    is_multi_device_module join join_device join_hook join_process_group load_state_dict mixed_precision modules
    modules_buffers modules_params mtia named_buffers named_children named_module_buffers named_modules
    named_parameters no_sync parallel_apply parameters parameters_to_ignore reducer register_backward_hook
    register_buffer register_comm_hook register_forward_hook register_forward_pre_hook register_full_backward_hook
    register_full_backward_pre_hook register_load_state_dict_post_hook register_load_state_dict_pre_hook
    register_module register_parameter register_state_dict_post_hook register_state_dict_pre_hook replicate
    requires_grad_ scatter set_extra_state set_submodule share_memory skip_all_reduce_unused_params src_device_obj
    state_dict to to_empty to_kwargs train type use_side_stream_for_tensor_copies will_sync_module_buffers xpu
    zero_grad""".split()
)
"""What one of them has besides, as a module or by itself: of no other name does it ask the module inside."""
CAUSAL_MASKS = {
    "torch.nn.TransformerEncoder": ((1, "mask"),),
    "torch.nn.TransformerDecoder": ((2, "tgt_mask"),),
    "torch.nn.Transformer": ((2, "src_mask"), (3, "tgt_mask")),
}
"""Masks that are not used if they are causal, and may stay anywhere then, in training at least: position and name."""
OUTPUT_SIZES = {
    **{f"torch.nn.{lazy}ConvTranspose{rank}d": (1, "output_size") for rank in (1, 2, 3) for lazy in ("", "Lazy")},
    **{f"torch.nn.MaxUnpool{rank}d": (2, "output_size") for rank in (1, 2, 3)},
}
"""Arguments that are read as numbers, wherever they are: position and name."""
KEEPS_RANK = re.compile(
    r"torch\.nn\.(Linear|\w*Norm(\dd)?|Conv(Transpose)?\dd|\w*Dropout(\dd)?|\w*ReLU6?|[CSG]?ELU|Sigmoid|Tanh|SiLU"
    r"|Softplus|(Log)?Softmax|Identity)$"
)
"""Layers whose results have as many dimensions as their inputs."""
RECURRENT = frozenset({"torch.nn.RNN", "torch.nn.LSTM", "torch.nn.GRU"})
CHAINED = frozenset(
    """train eval half float double bfloat16 type requires_grad_ apply share_memory compile to_empty
    zero_grad""".split()
)
ONLY_LOOK = frozenset(
    """children named_children modules named_modules get_parameter get_buffer get_submodule get_extra_state
    load_state_dict register_forward_hook register_forward_pre_hook register_full_backward_hook
    register_full_backward_pre_hook register_backward_hook register_state_dict_post_hook
    register_load_state_dict_post_hook extra_repr""".split()
)
"""Methods of every module which put no part of it anywhere."""
PARAMETERS = frozenset({"parameters", "buffers", "named_parameters", "named_buffers", "state_dict"})
CONTAINERS = frozenset({"torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict"})
TAKE_NO_NUMBERS = ("torch.nn.", "torchaudio.", "torchvision.", "timm.", "torch_geometric.", "transformers.")
"""Whose modules take no tensor without dimensions, as a metric does that adds up numbers."""
OFTEN_COPIED = frozenset(
    """accelerate audiocraft detectron2 diffusers fairseq fvcore kornia lm_eval mmaction mmcls mmcv mmdet mmdet3d mmedit
    mmengine mmocr mmpose mmpretrain mmrotate mmseg mmtrack mmyolo monai nerfstudio open_clip peft pytorch3d
    pytorch_lightning segment_anything segmentation_models_pytorch slowfast timm torchvision transformers trl
    ultralytics xformers""".split()
)
"""Libraries whose packages research code keeps whole, with changes in a few files."""
