"""How fast sampling and training are: ``neurise bench`` without the command line, and with the JSON in a file.

PYTHONPATH=src python benchmarks/speed.py --device cuda --json speed.json
PYTHONPATH=src python benchmarks/speed.py --sections sampling training --precision bfloat16
"""

from __future__ import annotations

import argparse
import json
import sys

import torch

from neurise.bench.speed import SECTIONS, Bench
from neurise.experiments._code import machine, script_version


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sections", nargs="+", default=SECTIONS, choices=SECTIONS)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--precision", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", metavar="FILE", help="also write every figure, after each section")
    arguments = parser.parse_args()
    bench = Bench(torch.device(arguments.device), quick=arguments.quick, precision=arguments.precision)
    print(f"torch {torch.__version__}, {arguments.device}, roofline {bench.roof / 1e12:.4g} TFLOP/s", flush=True)
    made = {
        "command": " ".join(["python benchmarks/speed.py", *sys.argv[1:]]),
        "code": script_version(__file__),
        "machine": machine(arguments.device),
        "roofline_flops": bench.roof,
    }
    figures = []
    for section in arguments.sections:
        for figure in bench.run(section):
            figures.append(figure.to_dict())
            ratio = "" if figure.ratio is None else f"  {figure.ratio:.4g} × naive"
            share = "" if figure.share is None else f"  {figure.share:.2%} of the roofline"
            print(f"{section}: {figure.name}: {figure.value:,.4g} {figure.unit}{ratio}{share}", flush=True)
        if arguments.json:
            with open(arguments.json, "w", encoding="utf-8") as file:
                json.dump({**made, "figures": figures}, file, indent=1)


if __name__ == "__main__":
    main()
