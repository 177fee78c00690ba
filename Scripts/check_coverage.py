#!/usr/bin/env python3
"""check_coverage.py [--write]: docs/coverage.md names test suites that exist, and the README's list of what is not
built is its last column. Prints what is wrong and exits with 1; with --write it writes the README's list."""
import os
import re
import sys
import textwrap

from tree import read, test_files

TABLE = "docs/coverage.md"
HEADER = ["what", "state", "suites", "missing"]
# By state: whether suites show it, and whether something is missing. None is either.
STATES = {"built": (True, False), "partly": (True, True), "not built": (False, True), "not compiled": (None, False)}
BEGIN, END = "<!-- coverage: begin -->\n", "<!-- coverage: end -->\n"


def suites():
    """The test targets of each suite, by its name."""
    known = {}
    for path in test_files():
        for name in re.findall(r"\b(?:struct|class|enum) (\w+Tests)\b", read(path)):
            known.setdefault(name, set()).add(path.split("/")[1])
    return known


def is_one(name, known):
    target, _, suite = name.rpartition(".")
    targets = known.get(suite, set())
    return target in targets if target else len(targets) == 1


def check(text):
    """What is wrong in the table, and what it says is missing."""
    wrong, missing, known = [], [], suites()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.split("\n") if line.startswith("|")]
    for row in rows:
        if row == HEADER or set("".join(row)) == {"-"}:
            continue
        what, state, named, lacks = row if len(row) == len(HEADER) else (row[0], "", "", "")
        if state not in STATES:
            wrong.append(f"{what}: four columns, and a state of {', '.join(STATES)}")
            continue
        names = re.findall(r"`([^`]+)`", named)
        for cell, wanted, name in ((names, STATES[state][0], "suites"), (lacks, STATES[state][1], "missing")):
            if wanted is not None and wanted != bool(cell):
                wrong.append(f"{what}: the column '{name}' is {'empty' if wanted else 'not empty'}, and it is {state}")
        wrong += [f"{what}: not one test suite: {name}" for name in names if not is_one(name, known)]
        if lacks:
            missing.append(lacks)
    return wrong, missing


def listed(missing):
    text = (f"- Not built, of what the SDKs of others promise ([the whole table]({TABLE})): "
            + "; ".join(missing) + ".")
    return textwrap.fill(text, 118, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False) + "\n"


os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
found, missing = check(read(TABLE))
found = [f"{TABLE}: {one}" for one in found]
readme = read("README.md")
before, begun, rest = readme.partition(BEGIN)
shown, ended, after = rest.partition(END)
if not begun or not ended:
    found.append("README.md: no place for the list of what is not built")
elif shown != listed(missing):
    if "--write" in sys.argv[1:]:
        with open("README.md", "w", encoding="utf-8") as file:
            file.write(before + begun + listed(missing) + ended + after)
    else:
        found.append(f"README.md: not the list of {TABLE}: run 'python3 Scripts/check_coverage.py --write'")
for row in found:
    print(row, file=sys.stderr)
sys.exit(1 if found else 0)
