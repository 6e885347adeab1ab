"""Run the snippets of one table on simulated devices, or on real ones, and print what each raised."""

from __future__ import annotations

import importlib
import json
import sys
import warnings


def main(table: str, devices: str = "simulated") -> None:
    if devices == "simulated":
        import devlint.simulator

        devlint.simulator.install(devices=2)
    warnings.simplefilter("ignore")
    results: dict[str, str | None] = {}
    for idiom in importlib.import_module(f"tests.simulator.idioms.{table}").idiom.idioms:
        try:
            idiom.run()
        except Exception as error:
            results[idiom.name] = f"{type(error).__name__}: {error}"
        else:
            results[idiom.name] = None
    sys.stdout.write(json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
