"""Who takes part in reading a file, beside the interpreter: the models of libraries and the observers of its events."""

from __future__ import annotations

from devlint.flow.core.interpreter import Component
from devlint.flow.interprocedural.call_contexts import CallContexts
from devlint.flow.models.data import datasets, derived_loaders
from devlint.flow.models.data.datasets import SampleCode
from devlint.flow.models.data.loaders import Loaders
from devlint.flow.models.libraries import axes, builtins, encoders, readers, rows, unknown
from devlint.flow.models.libraries.managed import ManagedMoves
from devlint.flow.models.nn import construction
from devlint.flow.models.nn import methods as module_methods
from devlint.flow.models.nn.parallel import ProcessGroups, Wrappers
from devlint.flow.models.torch import api_calls, autograd, devices, factories, functions, rng, tensor_methods
from devlint.flow.models.torch.optim import Optimizers
from devlint.flow.observers.costs.array_copies import ArrayCopies
from devlint.flow.observers.costs.host_syncs import HostSyncs
from devlint.flow.observers.costs.index_copies import IndexCopies
from devlint.flow.observers.costs.retained_graphs import RetainedGraphs
from devlint.flow.observers.costs.timings import Timings
from devlint.flow.observers.costs.uploads import Uploads
from devlint.flow.observers.hints.collectives import Collectives
from devlint.flow.observers.hints.mixed_operands import MixedOperands
from devlint.flow.observers.hints.opposite_moves import OppositeMoves
from devlint.flow.observers.hints.placed_siblings import PlacedSiblings
from devlint.flow.observers.hints.rebuilt_caches import RebuiltCaches
from devlint.flow.observers.hints.replaced_data import ReplacedData
from devlint.flow.observers.hints.returned_creations import ReturnedCreations
from devlint.flow.observers.hints.same_shape import SameShape
from devlint.flow.observers.hints.unfetched import Unfetched
from devlint.flow.observers.hints.unmoved_inputs import MovesOfOnePath, UnmovedInputs
from devlint.flow.observers.hints.unmoved_models import UnmovedModels
from devlint.flow.observers.placement.constructor_tensors import ConstructorTensors
from devlint.flow.observers.placement.generator_states import GeneratorStates
from devlint.flow.observers.placement.host_reads import HostReads
from devlint.flow.observers.placement.leaf_moves import LeafMoves
from devlint.flow.observers.placement.overridden_moves import OverriddenMoves
from devlint.flow.observers.placement.uncalled_moves import UncalledMoves
from devlint.flow.observers.placement.unregistered_modules import UnregisteredModules
from devlint.flow.observers.placement.unregistered_tensors import UnregisteredTensors
from devlint.flow.observers.portability.api_mentions import ApiMentions
from devlint.flow.observers.portability.device_literals import DeviceLiterals
from devlint.flow.observers.portability.device_misuse import DeviceMisuse
from devlint.flow.observers.portability.early_ranks import EarlyRanks
from devlint.flow.observers.portability.entered_literals import EnteredLiterals
from devlint.flow.observers.portability.gpu_selection import GpuSelection
from devlint.flow.observers.portability.unused_devices import UnusedDevices

REGISTERING = (
    *(api_calls, autograd, axes, builtins, datasets, derived_loaders, devices, factories, functions),
    *(construction, encoders, module_methods, rng, readers, rows, tensor_methods, unknown),
)
"""The modules that register models when they are imported, beside those of the observers."""
OBSERVERS: tuple[type[Component], ...] = (
    CallContexts,
    Loaders,
    SampleCode,
    ProcessGroups,
    Optimizers,
    ManagedMoves,
    Wrappers,
    HostSyncs,
    Timings,
    RetainedGraphs,
    MixedOperands,
    Collectives,
    OppositeMoves,
    MovesOfOnePath,
    UnmovedInputs,
    UnmovedModels,
    RebuiltCaches,
    SameShape,
    ReturnedCreations,
    PlacedSiblings,
    Unfetched,
    ReplacedData,
    ApiMentions,
    DeviceLiterals,
    EnteredLiterals,
    DeviceMisuse,
    EarlyRanks,
    GpuSelection,
    UnusedDevices,
    GeneratorStates,
    HostReads,
    LeafMoves,
    IndexCopies,
    Uploads,
    ArrayCopies,
    UncalledMoves,
    UnregisteredTensors,
    UnregisteredModules,
    OverriddenMoves,
    ConstructorTensors,
)
"""In the order in which they hear of an event, and in which they tell what they have collected.

Where two sites of one kind have the same place, the first of the gravest is what a rule reports.
"""
