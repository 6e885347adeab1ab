"""Modules of other libraries that hold tensors from the start, so that their inputs have to be where they are."""

from __future__ import annotations

_TRANSFORMS = frozenset(
    """GriffinLim InverseMelScale InverseSpectrogram LFCC MFCC MelScale MelSpectrogram PitchShift Resample
    SpectralCentroid Spectrogram TimeStretch""".split()
)
"""Transforms of torchaudio with a window, a kernel or a filter bank."""
_METRICS = frozenset(
    """Accuracy CohenKappa ConfusionMatrix ExplainedVariance F1Score FBetaScore HammingDistance JaccardIndex
    MatthewsCorrCoef MeanAbsoluteError MeanAbsolutePercentageError MeanSquaredError MeanSquaredLogError PearsonCorrCoef
    Precision R2Score Recall Specificity StatScores WordErrorRate""".split()
)
"""Metrics of torchmetrics that add up what they are given."""
_TASKS = ("Binary", "Multiclass", "Multilabel")


def holds_tensors(path: str) -> bool:
    """Whether a class of another library makes such a module."""
    root, _, rest = path.partition(".")
    name = rest.rpartition(".")[2]
    if root == "torchaudio":
        return rest == f"transforms.{name}" and name in _TRANSFORMS
    task = next((task for task in _TASKS if name.startswith(task)), "")
    return root == "torchmetrics" and "functional" not in rest and name.removeprefix(task) in _METRICS
