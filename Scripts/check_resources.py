#!/usr/bin/env python3
"""check_resources.py: docs/migrating-resources.md has a row for each of the 46 statements, in order, and each row names a
test that exists ("Suite.function", or "Suite") or says "later". Prints what is wrong and exits with 1."""
import os
import re
import sys

from test_files import read, test_files

PAGE, STATEMENTS = "docs/migrating-resources.md", 46

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
suites = {}
for path in test_files():
    text = read(path)
    for name in re.findall(r"\b(?:struct|class|enum) (\w+Tests)\b", text):
        suites[name] = suites.get(name, "") + text
rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in read(PAGE).split("\n")
        if re.match(r"\| \d", line)]
found = []
if [row[0] for row in rows] != [str(number) for number in range(1, STATEMENTS + 1)]:
    found.append(f"the statements are not 1 to {STATEMENTS}, each once and in order")
for row in rows:
    if len(row) != 4 or not row[1]:
        found.append(f"{row[0]}: four columns, and the vendor's name")
        continue
    names = re.findall(r"`([^`]+)`", row[3])
    if row[3] != "later" and (not row[2] or not names):
        found.append(f"{row[0]}: a counterpart and a test, or later")
    for name in names:
        suite, _, function = name.partition(".")
        if suite not in suites or function and f"func {function}(" not in suites[suite]:
            found.append(f"{row[0]}: no such test: {name}")
for one in found:
    print(f"{PAGE}: {one}", file=sys.stderr)
sys.exit(1 if found else 0)
