#!/usr/bin/env python3
"""check_examples.py: every example in a doc comment is a region of a file in Snippets, which the build compiles, and
every handler of an approval in an example shows what the user has to do on their device.

A region stands between "// snippet: NAME begin" and "// snippet: NAME end"; its indentation does not count. Prints what it
finds and exits with 1."""
import os
import re
import subprocess
import sys
import textwrap

MARK = re.compile(r"\s*// snippet: (\S+) (begin|end)")


def files(pattern):
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", pattern], check=True, capture_output=True, text=True)
    return [path for path in listed.stdout.splitlines() if os.path.exists(path)]


def lines(path):
    with open(path, encoding="utf-8") as file:
        return file.read().split("\n")


def text(block):
    return textwrap.dedent("\n".join(block)).strip("\n")


def regions(path):
    name, block = None, []
    for line in lines(path):
        mark = MARK.match(line)
        if mark and mark.group(2) == "begin":
            name, block = mark.group(1), []
        elif mark and name == mark.group(1):
            yield name, text(block)
            name = None
        elif name is not None:
            block.append(line)


def silent_handlers(path):
    """The lines that agree to an approval without having shown what a step says while it waits: an app that copies them
    seems to hang once its user has a device."""
    text = lines(path)
    for number, line in enumerate(text, 1):
        if "approval.agree()" in line and not any("approval.waiting" in one for one in text[max(0, number - 9):number]):
            yield number


def examples(path):
    block = None
    for number, line in enumerate(lines(path), 1):
        comment = re.match(r"\s*/// ?(.*)", line)
        content = comment.group(1) if comment else None
        if content is None:
            block = None
        elif block is None and content.strip() == "```swift":
            block, start = [], number
        elif block is not None and content.strip() == "```":
            yield start, text(block)
            block = None
        elif block is not None:
            block.append(content)


os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
compiled = {}
for path in files("Snippets/*.swift"):
    for name, block in regions(path):
        compiled[block] = f"{path}: {name}"
found, used = [], set()
for path in files("Sources/*.swift"):
    for number, block in examples(path):
        if block in compiled:
            used.add(block)
        else:
            found.append(f"{path}:{number}: this example is no region of a file in Snippets")
found += [f"{place}: no doc comment shows this region" for block, place in compiled.items() if block not in used]
for path in files("Snippets/*.swift") + files("Examples/*.swift"):
    found += [f"{path}:{number}: show approval.waiting before it: else the user does not know what to do on a device"
              for number in silent_handlers(path)]
for row in found:
    print(row, file=sys.stderr)
sys.exit(1 if found else 0)
