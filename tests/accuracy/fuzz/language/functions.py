"""Functions of a program: with and without return, defaults, closures, functions that move a module."""

from __future__ import annotations

from dataclasses import dataclass

from tests.accuracy.fuzz.language.expressions import device, simple, value, wanted
from tests.accuracy.fuzz.writer import (
    ANY,
    CPU,
    CUDA,
    DEVICE,
    FLAG,
    FUNCTION,
    INDEX,
    LIST,
    MATRIX,
    MODULE,
    PAIR,
    VECTOR,
    Writer,
)  # fmt: skip

_PARAMETERS = ((MATRIX, 5), (FLAG, 2), (DEVICE, 3), (INDEX, 1), (LIST, 2), (MODULE, 2), (VECTOR, 1))


@dataclass(frozen=True)
class Parameter:
    """A parameter, and where its arguments mostly are."""

    text: str
    kind: str
    place: str
    default: str = ""


@dataclass(frozen=True)
class Signature:
    """What a function takes and gives."""

    parameters: tuple[Parameter, ...]
    result: str | None


def define(w: Writer) -> None:
    """A function at the top level."""
    name = w.fresh("function")
    signature = _signature(w)
    place = _write(w, name, signature)
    w.declare(name, FUNCTION, place, signature, fixed=True)


def _signature(w: Writer) -> Signature:
    place = w.choose((CPU, CUDA))
    kinds = [MATRIX, *(w.weighted(_PARAMETERS) for _ in range(w.number(0, 2)))]
    parameters = []
    for kind in kinds:
        where = (CUDA if w.chance(70) else CPU) if kind == DEVICE else place
        parameters.append(Parameter(w.fresh("p"), kind, where))
    if w.chance(30):
        w.use("function: default argument")
        kind, default = w.choose(
            ((DEVICE, '"cuda"'), (DEVICE, '"cpu"'), (FLAG, "True"), (FLAG, "False"), (MATRIX, "torch.ones(4, 4)"))
        )
        where = CUDA if default == '"cuda"' else CPU
        parameters.append(Parameter(w.fresh("p"), kind, where, default))
    result = w.weighted(((MATRIX, 7), (PAIR, 1), (None, 2)))
    return Signature(tuple(parameters), result)


def _write(w: Writer, name: str, signature: Signature) -> str:
    """The definition; where its result probably is."""
    from tests.accuracy.fuzz.language.statements import body

    written = ", ".join(p.text + (f"={p.default}" if p.default else "") for p in signature.parameters)
    w.use(f"function: {'no return' if signature.result is None else 'return'}")
    with w.function(f"def {name}({written}):"):
        for p in signature.parameters:
            w.declare(p.text, p.kind, p.place)
        w.returns = signature.result if signature.result != PAIR else None
        body(w, 1, 4)
        if signature.result is None:
            return ANY
        text, place = value(w, MATRIX, signature.parameters[0].place if w.chance(60) else ANY)
        if signature.result == PAIR:
            w.use("function: returns a tuple")
            other, _ = simple(w, MATRIX)
            w.line(f"return {text}, {other}", "return torch.ones(4, 4), torch.ones(4, 4)")
        else:
            w.line(f"return {text}", "return torch.ones(4, 4)")
        return place


def closure(w: Writer) -> None:
    """A function that makes a function, or a lambda."""
    name, parameter = w.fresh("function"), Parameter(w.fresh("p"), MATRIX, w.choose((CPU, CUDA)))
    signature = Signature((parameter,), MATRIX)
    if w.chance(50):
        w.use("function: lambda")
        with w.function("pass"):
            w.lines.pop()
            w.declare(parameter.text, MATRIX, parameter.place)
            text, place = value(w, MATRIX, parameter.place, 1)
        w.line(f"{name} = lambda {parameter.text}: {text}", f"{name} = lambda {parameter.text}: torch.ones(4, 4)")
        argument, _ = simple(w, MATRIX, wanted(w, parameter.place))
        w.line(f"print({name}({argument}))", limit="lambdas")
        return
    w.use("function: closure")
    maker, kept = w.fresh("maker"), w.fresh("k")
    with w.function(f"def {maker}({kept}):"):
        w.declare(kept, MATRIX, parameter.place)
        place = _write(w, "inner", signature)
        w.line("return inner")
    argument, _ = simple(w, MATRIX, parameter.place)
    w.line(f"{name} = {maker}({argument})")
    w.declare(name, FUNCTION, place, signature, fixed=True)


def placing(w: Writer) -> str:
    """A function that moves the module it gets; its name."""
    name = w.fresh("place")
    w.use("function: moves a module")
    with w.function(f"def {name}(module):"):
        where, _ = device(w, CUDA)
        if w.chance(50):
            w.line(f"return module.to({where})")
        else:
            w.line(f"module.to({where})")
            w.line("return module")
    return name
