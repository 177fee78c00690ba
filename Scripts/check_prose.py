#!/usr/bin/env python3
"""check_prose.py: lines of prose and comments that are too long, links that lead nowhere, numbers of lines that are wrong,
examples in pages that nothing compiles or runs, products' pages without Topics or an example. Prints what it finds and exits
with 1."""
import os
import re
import sys

from tree import files, prose, read

WIDTH = 120
REQUIRED = ["README.md", "LICENSE", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md"]
LINK = re.compile(r"\[(?:[^\]]|\](?!\())*\]\(([^)\s]+)\)")
LENGTH = re.compile(r"\]\(([^)\s]+\.swift)\), (\d+) lines")
ONLY_LINKS = re.compile(r"\s*(?:[-*] |\d+\. )?(?:!?\[[^\]]*\]\([^)]*\)[\s·,.]*)+|\[[^\]]+\]: \S+")

found = []


def anchors(text):
    """The names by which links reach the headings, as the common renderers make them."""
    names = set()
    for _, line in prose(text):
        if line.startswith("#"):
            title = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower())
            names.add(title.replace(" ", "-"))
    return names


def check_markdown(path, compiled):
    text = read(path)
    for number, line in prose(text):
        if len(line) > WIDTH and not line.startswith("|") and not ONLY_LINKS.fullmatch(line):
            found.append(f"{path}:{number}: {len(line)} columns")
        for target in LINK.findall(line):
            if re.match(r"[a-z]+:", target):
                continue
            place, _, anchor = target.partition("#")
            other = os.path.normpath(os.path.join(os.path.dirname(path), place)) if place else path
            if not os.path.exists(other):
                found.append(f"{path}:{number}: {target} leads nowhere")
            elif anchor and other.endswith(".md") and anchor not in anchors(read(other)):
                found.append(f"{path}:{number}: {other} has no heading #{anchor}")
    for place, said in LENGTH.findall(text):
        other = os.path.join(os.path.dirname(path), place)
        if os.path.exists(other) and read(other).count("\n") != int(said):
            found.append(f"{path}: {other} has {read(other).count(chr(10))} lines, and not {said}")
    language = None
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            language = line.strip()[3:] if language is None else None
        elif language == "swift" and line.strip() and line.strip() not in compiled:
            found.append(f"{path}:{number}: in no file of Snippets: {line.strip()}")


def check_worked_example(path, configuration):
    """Each line of YAML in the section "A worked example" is a line of the file that the demo runs."""
    lines = {line.strip() for line in read(configuration).split("\n")}
    section = read(path).split("\n## A worked example\n")[1].split("\n## ")[0]
    for block in re.findall(r"```yaml\n(.*?)```", section, re.DOTALL):
        for line in block.split("\n"):
            if line.strip() not in lines:
                found.append(f"{path}: not in {configuration}: {line.strip()}")


def check_comments(path):
    for number, line in enumerate(read(path).split("\n"), 1):
        if len(line) > WIDTH and line.lstrip().startswith("//"):
            found.append(f"{path}:{number}: a comment of {len(line)} columns")


def check_products(manifest):
    """Each product has a page of its own, which lists its symbols and shows an example."""
    for product in re.findall(r'\.library\(name: "(\w+)"', read(manifest)):
        path = f"Sources/{product}/{product}.docc/{product}.md"
        text = read(path) if os.path.exists(path) else ""
        for part in ("## Topics", "```swift"):
            if f"\n{part}\n" not in text:
                found.append(f"{path}: a product's page has '{part}'")


os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
for name in REQUIRED:
    if not os.path.exists(name):
        found.append(f"{name} is missing")
compiled = {line.strip() for path in files("Snippets/*.swift") for line in read(path).split("\n")}
for path in files("*.md"):
    check_markdown(path, compiled)
check_worked_example("docs/journeys-and-policies.md", "Examples/bank/assent.yaml")
check_products("Package.swift")
for path in files("*.swift"):
    check_comments(path)
for row in found:
    print(row, file=sys.stderr)
sys.exit(1 if found else 0)
