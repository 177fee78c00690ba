#!/usr/bin/env python3
"""check_modules.py [--write]: docs/conformance.md has one row for each module of the conformance suite that
Scripts/conformance.json lists, and each row names test suites with a test or a case of that name, or says with what it
comes later. Prints what is wrong and exits with 1; with --write it names the suites that have the tests of a row that
is marked as later."""
import json
import os
import re
import sys

from tree import read, test_files

PAGE = "docs/conformance.md"
LIST = "Scripts/conformance.json"
# What a test or a case is called: the first argument of a call.
LITERAL = re.compile(r'\(\s*"((?:[^"\\\n]|\\.)*)"')


def suites():
    """Of each suite and each test target: whether it is declared there, and what its tests and cases are called."""
    known = {}
    for path in test_files():
        text = read(path)
        literals = LITERAL.findall("\n".join(line for line in text.split("\n") if not line.lstrip().startswith("//")))
        for kind, name in re.findall(r"\b(struct|class|enum|extension) (\w+Tests)\b", text):
            target = path.split("/")[1]
            suite = known.setdefault(name, {}).setdefault(target, {"declared": False, "literals": []})
            suite["declared"] |= kind != "extension"
            suite["literals"] += literals
    return known


def names(literal, module):
    """Whether a literal is the name, or begins a sentence or a part of one with it."""
    return re.search(rf"(?:^|, ){re.escape(module)}(?=$|[:,])", literal) is not None


def having(module, known):
    """The suites with a test of that name, with their target where others are called alike."""
    return sorted(name if len(targets) == 1 else f"{target}.{name}"
                  for name, targets in known.items() for target, suite in targets.items()
                  if any(names(literal, module) for literal in suite["literals"]))


def found_suite(name, known):
    target, _, suite = name.rpartition(".")
    declared = {place: one for place, one in known.get(suite, {}).items() if one["declared"]}
    if target:
        return declared.get(target)
    return next(iter(declared.values())) if len(declared) == 1 else None


def rows(text, part):
    """The rows of one table; `None` when the page does not have it."""
    match = re.search(rf"<!-- modules: {re.escape(part)} -->\n(.*?)<!-- modules: end -->", text, re.S)
    if match is None:
        return None
    lines = [line for line in match[1].split("\n") if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def check_row(row, known):
    """What is wrong with one row."""
    if len(row) != 3:
        return [f"{row[0]}: three columns"]
    module, cell, later = row
    named = re.findall(r"`([^`]+)`", cell)
    if bool(named) == bool(later):
        return [f"{module}: either suites, or with what it comes later"]
    wrong = []
    for name in named:
        suite = found_suite(name, known)
        if suite is None:
            wrong.append(f"{module}: not one test suite: {name}")
        elif not any(names(literal, module) for literal in suite["literals"]):
            wrong.append(f"{module}: {name} has no test of that name")
    if later:
        wrong += [f"{module}: marked as later, but {name} has a test of that name: run "
                  "'python3 Scripts/check_modules.py --write'" for name in having(module, known)]
    return wrong


def check(text, listed, known):
    wrong = []
    for part, modules in listed.items():
        table = rows(text, part)
        if table is None:
            wrong.append(f"no table for {part}")
            continue
        have = [row[0] for row in table]
        wrong += [f"{part}: no row for {module}" for module in modules if module not in have]
        wrong += [f"{part}: not in {LIST}: {module}" for module in have if module not in modules]
        wrong += [f"{part}: two rows for {module}" for module in sorted(set(have)) if have.count(module) > 1]
        for row in table:
            wrong += check_row(row, known)
    return wrong


def written(text, known):
    """The page with suites in the rows that are marked as later although there are tests."""
    def row(match):
        found = having(match[1], known)
        return f"| {match[1]} | {', '.join(f'`{name}`' for name in found)} |  |" if found else match[0]
    return re.sub(r"^\| ([^|`]+?) \|  \| [^|-]+ \|$", row, text, flags=re.M)


os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
known = suites()
page = read(PAGE)
if "--write" in sys.argv[1:] and written(page, known) != page:
    page = written(page, known)
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page)
complaints = check(page, json.loads(read(LIST)), known)
for complaint in complaints:
    print(f"{PAGE}: {complaint}", file=sys.stderr)
sys.exit(1 if complaints else 0)
