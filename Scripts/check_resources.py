#!/usr/bin/env python3
"""check_resources.py: docs/migrating-resources.md has a row for each of the 46 statements, in order, and each row names
tests that exist ("Suite.function", or "Suite"). So do the rows of the vendor's tests in docs/compatibility.md. Each number
of docs/testing.md's numbered checks begins the name of a test, and no other number does. Prints what is wrong and exits
with 1."""
import os
import re
import sys

from tree import read, test_files

STATEMENTS, VENDOR, CHECKS = "docs/migrating-resources.md", "docs/compatibility.md", "docs/testing.md"
COUNT = 46
# "13 …", "41: …", "Row 36 (answers): …", "4, 5 …", "Rows 11 and 25: …". What counts things is longer, or has a comma.
NUMBERED = re.compile(r"(?:Rows? )?([1-4]?\d(?:(?:, | and )[1-4]?\d)*)(?: \(\w+\))?(?:: | (?=[A-Z1-9]))")
TEST = re.compile(r'@Test\(\s*"((?:[^"\\]|\\.)*)"')

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
suites, numbers, found = {}, set(), []
for path in test_files():
    text = read(path)
    for name in re.findall(r"\b(?:struct|class|enum) (\w+Tests)\b", text):
        suites[name] = suites.get(name, "") + text
    for name in TEST.findall(text):
        begins = NUMBERED.match(name)
        numbers.update(re.findall(r"\d+", begins.group(1)) if begins else [])


def table(page, name):
    """The rows of a marked table, or of the whole page."""
    text = read(page)
    if name:
        begin, end = (text.find(f"<!-- {mark}{name} -->") for mark in ("", "end of "))
        if begin < 0 or end < begin:
            sys.exit(f"{page}: no table {name}")
        text = text[begin:end]
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")]
            for line in text.split("\n") if line.startswith("|")]
    return [row for row in rows if not set("".join(row)) <= set("-")]


def check_tests(page, row):
    names = re.findall(r"`([^`]+)`", row[-1])
    if not names:
        found.append(f"{page}: {row[0]}: names no test")
    for name in names:
        suite, _, function = name.partition(".")
        if suite not in suites or function and f"func {function}(" not in suites[suite]:
            found.append(f"{page}: {row[0]}: no such test: {name}")


statements = [row for row in table(STATEMENTS, None) if row[0].isdigit()]
if [row[0] for row in statements] != [str(number) for number in range(1, COUNT + 1)]:
    found.append(f"{STATEMENTS}: the statements are not 1 to {COUNT}, each once and in order")
for row in statements:
    if len(row) != 4 or not all(row):
        found.append(f"{STATEMENTS}: {row[0]}: four columns, the vendor's name, a counterpart and a test")
    else:
        check_tests(STATEMENTS, row)
for row in table(VENDOR, "vendor's tests")[1:]:
    if len(row) != 3 or not all(row):
        found.append(f"{VENDOR}: {row[0]}: three columns")
    else:
        check_tests(VENDOR, row)
checks = {row[0] for row in table(CHECKS, "numbered checks")[1:]}
found += [f"{CHECKS}: no test's name begins with {number}" for number in sorted(checks - numbers, key=int)]
found += [f"{CHECKS}: a test's name begins with {number}, which is no check" for number in sorted(numbers - checks, key=int)]
for one in found:
    print(one, file=sys.stderr)
sys.exit(1 if found else 0)
