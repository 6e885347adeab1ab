"""The clients: what each of them runs, and the distributions that it needs beside torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCRIPTS = HERE / "scripts"
FRAMEWORKS = HERE.parents[1] / "fixtures" / "train" / "clients"


@dataclass(frozen=True, slots=True)
class Client:
    """A script, ours or of a repository in the mirror."""

    name: str
    needs: tuple[str, ...] = ()
    """Distributions, whose versions are told; without one of them the client is not run."""
    library: str = ""
    """The package that is laid beside the script in a run that teaches, as in a checkout of it."""
    ranks: int = 1
    repository: str = ""
    """Owner and name, for a script that is not ours."""
    script: str = ""
    """Its path in the repository."""
    arguments: tuple[str, ...] = ()
    device: tuple[str, ...] = ()
    """What the audited run is given besides."""
    data: str = ""
    """What is made for it before: a function of ``tests.clients.data``."""
    differs: str = ""
    """Why what the plain run prints cannot be what the audited one prints."""

    def own(self) -> Path:
        """The file of a script of ours."""
        place = SCRIPTS / f"{self.name}.py"
        return place if place.is_file() else FRAMEWORKS / f"{self.name}.py"


def _examples(name: str, script: str, *arguments: str, **more: object) -> Client:
    return Client(name, repository="pytorch/examples", script=script, arguments=arguments, **more)  # type: ignore[arg-type]


CLIENTS = (
    Client("lightning_trainer", ("lightning",), "lightning"),
    Client("hf_trainer", ("transformers", "accelerate"), "transformers"),
    Client("accelerate_loop", ("accelerate",), "accelerate"),
    Client("ignite_engine", ("pytorch-ignite",), "ignite"),
    Client("skorch_classifier", ("skorch", "scikit-learn"), "skorch"),
    Client("fastai_learner", ("fastai",), "fastai"),
    Client("speechbrain_brain", ("speechbrain",), "speechbrain"),
    Client("peft_lora", ("peft", "transformers"), "peft"),
    Client("trl_sft", ("trl", "datasets"), "trl"),
    Client("trl_lora", ("trl", "datasets", "peft"), "peft"),
    Client("deepspeed_engine", ("deepspeed",), "deepspeed"),
    Client("torchtune_recipe", ("torchtune", "torchao"), "torchtune"),
    Client("sentence_embeddings", ("sentence-transformers",), "sentence_transformers"),
    Client("transformers_generation", ("transformers",), "transformers"),
    Client("x_transformers_generation", ("x-transformers",), "x_transformers"),
    Client("open_clip_contrastive", ("open_clip_torch",), "open_clip"),
    Client("liger_kernels", ("liger-kernel", "triton"), "liger_kernel", differs="the plain run has no Triton"),
    Client("torchao_quantized", ("torchao",), "torchao"),
    Client("timm_finetuned", ("timm",), "timm"),
    Client("vit_classifier", ("vit-pytorch",), "vit_pytorch"),
    Client("einops_mixer", ("einops",), "einops"),
    Client("kornia_augmented", ("kornia",), "kornia"),
    Client("monai_segmentation", ("monai",), "monai"),
    Client("smp_unet", ("segmentation-models-pytorch",), "segmentation_models_pytorch"),
    Client("torchvision_detection", ("torchvision",), "torchvision"),
    Client("ultralytics_detect", ("ultralytics",), "ultralytics"),
    Client("lpips_perceptual", ("lpips", "torchvision"), "lpips"),
    Client("torchaudio_ctc", ("torchaudio",), "torchaudio"),
    Client("diffusers_ddpm", ("diffusers",), "diffusers"),
    Client("vector_quantized", ("vector-quantize-pytorch",), "vector_quantize_pytorch"),
    Client("metric_learning", ("pytorch-metric-learning",), "pytorch_metric_learning"),
    Client("torchmetrics_evaluation", ("torchmetrics",), "torchmetrics"),
    Client("captum_attribution", ("captum",), "captum"),
    Client("pyg_graphs", ("torch_geometric",), "torch_geometric"),
    Client("sb3_ppo", ("stable-baselines3", "gymnasium"), "stable_baselines3"),
    Client("torchrl_dqn", ("torchrl", "tensordict"), "torchrl"),
    Client("opacus_private", ("opacus",), "opacus"),
    Client("gpytorch_regression", ("gpytorch", "linear-operator"), "gpytorch"),
    Client("botorch_search", ("botorch", "gpytorch"), "botorch"),
    Client("pyro_svi", ("pyro-ppl",), "pyro"),
    Client("nflows_density", ("nflows",), "nflows"),
    Client("neural_ode", ("torchdiffeq",), "torchdiffeq"),
    Client("torchsde_latent", ("torchsde",), "torchsde"),
    Client("neural_operator", ("neuraloperator",), "neuralop"),
    Client("e3nn_equivariant", ("e3nn",), "e3nn"),
    Client("snntorch_spikes", ("snntorch",), "snntorch"),
    Client("tabnet_classifier", ("pytorch-tabnet", "scikit-learn"), "pytorch_tabnet"),
    Client("fairscale_checkpointed", ("fairscale",), "fairscale"),
    Client("pytorch_optimizer_lion", ("pytorch_optimizer",), "pytorch_optimizer"),
    Client("ddp_ranks", ranks=2),
    Client("fsdp2_ranks", ranks=2),
    Client("spawned_workers"),
    Client("mixed_precision_workers"),
    Client("lora_recipe"),
    Client("own_generation"),
    Client("rollouts"),
    Client("self_play"),
    _examples("examples_dcgan", "dcgan/main.py", "--dataset", "fake", "--dry-run", "--manualSeed", "1",
              device=("--accel",), needs=("torchvision",)),
    _examples("examples_vae", "vae/main.py", "--epochs", "1", data="mnist", needs=("torchvision",)),
    _examples("examples_mnist", "mnist/main.py", "--epochs", "1", "--log-interval", "1", data="mnist",
              needs=("torchvision",), differs="the script shuffles only with an accelerator"),
    _examples("examples_mnist_rnn", "mnist_rnn/main.py", "--epochs", "1", "--log-interval", "1", data="mnist",
              device=("--accel",), needs=("torchvision",), differs="the script shuffles only with an accelerator"),
    _examples("examples_lstm", "word_language_model/main.py", "--epochs", "1", "--emsize", "16", "--nhid", "16",
              "--log-interval", "1", device=("--accel",), data="words"),
    _examples("examples_transformer", "word_language_model/main.py", "--epochs", "1", "--emsize", "16", "--nhid", "16",
              "--model", "Transformer", "--log-interval", "1", device=("--accel",), data="words"),
    _examples("examples_hogwild", "mnist_hogwild/main.py", "--epochs", "1", "--num-processes", "2", data="mnist",
              device=("--cuda",), needs=("torchvision",), differs="two processes race by design"),
    Client("nanogpt", (), "", repository="karpathy/nanoGPT", script="train.py", data="characters", arguments=(
        "--dataset=own", "--max_iters=6", "--eval_interval=3", "--eval_iters=2", "--block_size=16", "--batch_size=4",
        "--n_layer=2", "--n_head=2", "--n_embd=32", "--compile=False", "--gradient_accumulation_steps=1",
        "--dtype=float32", "--log_interval=1"), device=("--device=cuda",), differs="it prints times"),
    Client("nlp_example", ("accelerate", "transformers", "datasets", "evaluate"),
           repository="huggingface/accelerate", script="examples/nlp_example.py"),
)  # fmt: skip


def chosen(names: tuple[str, ...]) -> tuple[Client, ...]:
    """The clients of these names; all without one."""
    return tuple(client for client in CLIENTS if not names or client.name in names)
