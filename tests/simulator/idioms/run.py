"""Run the snippets of one table on simulated devices, or on real ones, and print what each raised.

A snippet after which a real device is lost is the last one; as a third argument comes how many to leave out.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings


def main(table: str, devices: str = "simulated", skip: str = "0") -> None:
    if devices == "simulated":
        import devlint.simulator

        devlint.simulator.install(devices=2)
    warnings.simplefilter("ignore")
    results: dict[str, str | None] = {}
    for idiom in importlib.import_module(f"tests.simulator.idioms.{table}").idiom.idioms[int(skip) :]:
        try:
            idiom.run()
        except Exception as error:
            results[idiom.name] = f"{type(error).__name__}: {error}"
            if devices == "real" and _is_lost():
                break
        else:
            results[idiom.name] = None
    sys.stdout.write(json.dumps(results))


def _is_lost() -> bool:
    """Whether the process can do nothing more on its device, as after an assertion that failed there."""
    import torch

    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False


if __name__ == "__main__":
    main(*sys.argv[1:])
