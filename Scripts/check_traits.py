#!/usr/bin/env python3
"""Compiles what depends on package traits as it is without them and with each alone.

The usual build has all traits on, and SwiftPM would build every package again for another set. Here only the targets
whose own sources ask for a trait are compiled again, and without any trait also those that depend on them, with the
flags of the usual build (`swift build --build-tests`, debug), which must have run. Without traits the flags are those of
a release. Nothing is linked: Scripts/check_consumer.sh builds a whole app.
"""
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import time

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))
PLACE = os.path.join(ROOT, ".build", "traits")
# What only concerns objects, indexes and the driver's bookkeeping.
DROPPED = {
    "-emit-dependencies", "-emit-module", "-incremental", "-c", "-enable-batch-mode", "-serialize-diagnostics",
    "-parseable-output", "-emit-objc-header", "-g", "-j2",
}
DROPPED_WITH_VALUE = {"-emit-module-path", "-output-file-map", "-index-store-path", "-emit-objc-header-path"}


def traits():
    with open(os.path.join(ROOT, "Package.swift")) as manifest:
        return re.findall(r'\.trait\(name: "(\w+)"', manifest.read())


class Target:
    """A target of this package, as the build's plan has it."""

    def __init__(self, name, inputs, arguments, known):
        self.name = name
        self.arguments = arguments
        self.sources = [path for path in inputs if path.endswith(".swift")]
        self.imports = {os.path.basename(path)[: -len(".swiftmodule")] for path in inputs if path.endswith(".swiftmodule")}
        condition = re.compile(r"^\s*#(?:if|elseif)\b.*\b(%s)\b" % "|".join(known), re.MULTILINE)
        self.traits = set()
        for path in self.sources:
            with open(path) as source:
                self.traits |= set(condition.findall(source.read()))


def plan(known):
    targets = {}
    path = os.path.join(ROOT, ".build", "debug.yaml")
    if not os.path.exists(path):
        sys.exit("traits: run 'make build' first")
    with open(path) as lines:
        name, inputs = None, []
        for line in lines:
            if found := re.match(r'  "C\.(.+?)-[^"]*-debug\.module":', line):
                name = found[1]
            elif name and line.startswith("    inputs: "):
                inputs = json.loads(line[len("    inputs: "):])
            elif name and line.startswith("    args: "):
                arguments, own = json.loads(line[len("    args: "):]), os.path.join(ROOT, "")
                is_ours = any(p.startswith(own) and not p.startswith(own + ".build/") for p in inputs)
                if is_ours and not name.endswith(("Tests", "-tool")):
                    targets[name] = Target(name, inputs, arguments, known)
                name = None
    return targets


def compile_target(target, chosen, known, places):
    """Compiles a target's module, all of its bodies included. Returns the compiler's words, or None."""
    place = os.path.join(PLACE, "+".join(sorted(chosen)) or "none")
    os.makedirs(place, exist_ok=True)
    arguments, rest = [], iter(target.arguments)
    for argument in rest:
        if argument in DROPPED_WITH_VALUE:
            next(rest)
        elif argument == "-Xcc":
            arguments += [argument, next(rest)]
        elif argument not in DROPPED and argument not in {"-D" + name for name in known}:
            arguments.append(argument)
    if not chosen:
        arguments = [a for a in arguments if a not in ("-DDEBUG", "-enable-testing")]
        arguments[arguments.index("-Onone")] = "-O"
    own = [option for path in places for option in ("-I", path)]
    command = arguments[:1] + own + arguments[1:] + ["-D" + name for name in sorted(chosen)] + [
        "-wmo", "-emit-module", "-emit-module-path", os.path.join(place, target.name + ".swiftmodule"),
        "-no-emit-module-separately-wmo",
    ]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return None if done.returncode == 0 else done.stdout


def check(chosen, targets, names, known, places):
    """Compiles targets in the order of their dependencies, two at once. Returns whether all could be."""
    waiting, running, done, failed = set(names), {}, set(), False
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        while waiting or running:
            for name in sorted(waiting):
                if not (targets[name].imports & names) - done:
                    waiting.discard(name)
                    running[pool.submit(compile_target, targets[name], chosen, known, places)] = name
            if not running:
                break
            for future in concurrent.futures.wait(running, return_when="FIRST_COMPLETED").done:
                name = running.pop(future)
                if words := future.result():
                    failed = True
                    print(words, file=sys.stderr)
                    print("traits: %s does not compile with %s" % (
                        name, ", ".join(sorted(chosen)) or "no trait"), file=sys.stderr)
                    waiting -= {other for other in waiting if name in targets[other].imports}
                done.add(name)
    return not failed


def main():
    known = traits()
    targets = plan(known)
    shutil.rmtree(PLACE, ignore_errors=True)
    begun, count, is_good = time.monotonic(), 0, True
    # Without any: all that is made otherwise then, and what depends on it.
    changed = {name for name, target in targets.items() if target.traits}
    if not changed:
        sys.exit("traits: no target asks for one")
    while more := {n for n, t in targets.items() if n not in changed and t.imports & changed}:
        changed |= more
    none = os.path.join(PLACE, "none")
    is_good &= check(frozenset(), targets, changed, known, [none])
    count += len(changed)
    for trait in known:
        names = {name for name, target in targets.items() if trait in target.traits and target.traits != {trait}}
        place = os.path.join(PLACE, trait)
        # A target that asks for no other trait is what the usual build has made.
        usual = os.path.join(PLACE, trait + ".usual")
        os.makedirs(usual, exist_ok=True)
        for name, target in targets.items():
            if target.traits == {trait}:
                made = target.arguments[target.arguments.index("-emit-module-path") + 1]
                os.symlink(made, os.path.join(usual, name + ".swiftmodule"))
        is_good &= check(frozenset([trait]), targets, names, known, [place, usual, none])
        count += len(names)
    shutil.rmtree(PLACE, ignore_errors=True)
    if not is_good:
        sys.exit(1)
    print("traits: ok (%d modules in %d s)" % (count, time.monotonic() - begun))


main()
