#!/usr/bin/env python3
"""check_names.py: top-level type names that two modules of Sources declare. A name means one thing in the whole package.

A name may be declared again in the module that declares it (under another #if). Prints what it finds and exits with 1."""
import collections
import os
import re
import subprocess
import sys

DECLARATION = re.compile(
    r"^(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|open|final|indirect|nonisolated|distributed)\s+)*"
    r"(?:struct|class|enum|actor|protocol|typealias|macro)\s+(\w+)")

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
listed = subprocess.run(
    ["git", "ls-files", "-co", "--exclude-standard", "Sources/*.swift"], check=True, capture_output=True, text=True)
places = collections.defaultdict(dict)
for path in listed.stdout.splitlines():
    if not os.path.exists(path):
        continue
    module = path.split("/")[1]
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            match = DECLARATION.match(line)
            if match:
                places[match.group(1)].setdefault(module, f"{path}:{number}")
found = {name: where for name, where in sorted(places.items()) if len(where) > 1}
for name, where in found.items():
    print(f"{name}: " + ", ".join(where.values()), file=sys.stderr)
sys.exit(1 if found else 0)
