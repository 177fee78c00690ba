#!/usr/bin/env python3
"""check_functions.py: bodies of more than 60 lines, functions with more than 7 parameters, types with too many members.

Reads Sources as text: comments and literals are blanked, then braces are matched. A value's own initialiser may have as
many parameters as the value has properties; one of a class or an actor puts parts together, and has the limit of functions.
Parameters of a public function that have a default value do not add up: a caller leaves them out. Members are what a type and
its extensions in one module declare, without enum cases, nested types and the constants of an open list of codes. Prints what
it finds and exits with 1; with --largest it prints the largest of each kind."""
import collections
import os
import re
import subprocess
import sys

LINES, PARAMETERS, MEMBERS = 60, 7, 60

# Types above the limit, with what they had when the limit came: they may not grow. A row goes when its type is below.
LARGER = {"FileVault": 71}

MODIFIERS = r"(?:@\w+(?:\([^)]*\))?\s+|(?:public|package|internal|private|fileprivate|open|final|static|class|override|" \
    r"mutating|nonmutating|nonisolated(?:\([^)]*\))?|convenience|required|lazy|weak|indirect|consuming|borrowing|" \
    r"private\(set\)|package\(set\)|fileprivate\(set\)|distributed)\s+)*"
TYPE = re.compile(MODIFIERS + r"(struct|class|enum|actor|protocol|extension)\s+([\w.]+)")
FUNCTION = re.compile(MODIFIERS + r"(func\s+([\w`]+|[^\s\w(]+)|init[?!]?|subscript|deinit)\s*(?:<[^({]*>)?\s*(?=[({])")
PROPERTY = re.compile(MODIFIERS + r"(?:var|let)\s+(\w+|\()")


def blanked(text):
    """The text with comments and literals as spaces, line breaks kept."""
    out, at, end = list(text), 0, len(text)

    def blank(start, stop):
        for index in range(start, min(stop, end)):
            if out[index] != "\n":
                out[index] = " "

    while at < end:
        if text.startswith("//", at):
            stop = text.find("\n", at)
            stop = end if stop < 0 else stop
        elif text.startswith("/*", at):
            stop = text.find("*/", at) + 2
            stop = end if stop < 2 else stop
        elif match := re.compile(r'(#*)("""|")').match(text, at):
            stop = literal(text, match.end(), match[1], match[2])
        else:
            at += 1
            continue
        blank(at, stop)
        at = stop
    return "".join(out)


def literal(text, at, hashes, quote):
    """Where a literal ends whose content begins at `at`."""
    while at < len(text):
        if text.startswith("\\" + hashes + "(", at):
            depth, at = 1, at + len(hashes) + 2
            while at < len(text) and depth:
                inner = re.compile(r'(#*)("""|")').match(text, at)
                if inner:
                    at = literal(text, inner.end(), inner[1], inner[2])
                    continue
                depth += {"(": 1, ")": -1}.get(text[at], 0)
                at += 1
        elif text.startswith("\\", at) and not hashes:
            at += 2
        elif text.startswith(quote + hashes, at):
            return at + len(quote) + len(hashes)
        else:
            at += 1
    return at


def matching(text, at):
    """Where the bracket at `at` closes."""
    pairs = {"(": ")", "{": "}", "[": "]"}
    opening, closing, depth = text[at], pairs[text[at]], 0
    for index in range(at, len(text)):
        depth += {opening: 1, closing: -1}.get(text[index], 0)
        if depth == 0:
            return index
    return len(text)


def parameters(text, given):
    """How many parameters a list in parentheses has; if `given`, without those that have a default value."""
    depth, parts = 0, [""]
    for index, character in enumerate(text):
        if character in "([{<":
            depth += 1
        elif character in ")]}" or character == ">" and text[index - 1] != "-":
            depth -= 1
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return sum(bool(part.strip()) and not (given and " = " in part) for part in parts)


class Found:
    def __init__(self):
        self.bodies, self.lists, self.members = [], [], collections.Counter()
        self.kinds, self.places = {}, {}


def scan(path, module, text, start, stop, owner, kind, found):
    """Looks at the declarations of a file or of a type's body, at one depth."""
    at = start
    while at < stop:
        character = text[at]
        if character in "({[":
            at = matching(text, at) + 1
            continue
        begins = at == 0 or not (text[at - 1].isalnum() or text[at - 1] in "_.@")
        if not begins or not (character.isalpha() or character == "@"):
            at += 1
            continue
        line = text.count("\n", 0, at) + 1
        if match := TYPE.match(text, at):
            brace = text.find("{", match.end())
            if brace < 0:
                return
            end = matching(text, brace)
            name = f"{owner}.{match[2]}" if owner else match[2]
            if match[1] != "extension":
                found.kinds[module, name] = match[1]
                found.places[module, name] = f"{path}:{line}"
            scan(path, module, text, brace + 1, end, name, match[1], found)
            at = end + 1
        elif match := FUNCTION.match(text, at):
            name = f"{owner + '.' if owner else ''}{match[2] or match[1]}"
            if owner:
                found.members[module, owner] += 1
            at = match.end()
            if text[at] == "(":
                end = matching(text, at)
                found.lists.append((parameters(text[at + 1:end], "public" in match[0]), f"{path}:{line}", module, name, owner))
                at = end + 1
            # The body, if it has one: before the next declaration.
            rest = re.compile(r"[^{}\n]*(?:\n\s*(?:->|where|async|throws|[^{}\n]*->)[^{}\n]*)*\{").match(text, at)
            if rest and kind != "protocol":
                brace = rest.end() - 1
                end = matching(text, brace)
                found.bodies.append((text.count("\n", brace, end) - 1, f"{path}:{line}", name))
                at = end + 1
        elif match := PROPERTY.match(text, at):
            constant = "static let" in match[0] and re.compile(r"\s*= (?:Self|Code)\(").match(text, match.end())
            if owner and not constant:
                found.members[module, owner] += 1
            rest = re.compile(r"[^{}\n=]*\{").match(text, match.end())
            at = match.end()
            if rest:
                brace = rest.end() - 1
                end = matching(text, brace)
                found.bodies.append((text.count("\n", brace, end) - 1, f"{path}:{line}", f"{owner}.{match[1]}"))
                at = end + 1
        else:
            at += len(re.compile(r"@?\w+").match(text, at)[0])


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "Sources/*.swift"], check=True, capture_output=True, text=True)
    found = Found()
    for path in listed.stdout.splitlines():
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                text = blanked(file.read())
            scan(path, path.split("/")[1], text, 0, len(text), "", "", found)
    if "--largest" in sys.argv:
        for rows in (found.bodies, found.lists):
            for row in sorted(rows, key=lambda row: row[0], reverse=True)[:25]:
                print(*row[:2], row[-1] if rows is found.bodies else row[3])
        for (module, name), count in found.members.most_common(25):
            print(count, f"{module}.{name}")
        return 0
    faults = [f"{place}: {name} has {lines} lines; {LINES} are the most" for lines, place, name in found.bodies
              if lines > LINES]
    for count, place, module, name, owner in found.lists:
        if name.endswith(("init", "init?")) and found.kinds.get((module, owner), "struct") in ("struct", "enum"):
            continue
        if count > PARAMETERS:
            faults.append(f"{place}: {name} has {count} parameters; {PARAMETERS} are the most")
    for (module, name), count in found.members.items():
        limit = LARGER.get(name, MEMBERS)
        if count > limit:
            place = found.places.get((module, name), module)
            faults.append(f"{place}: {name} has {count} members over all extensions; {limit} are the most")
    print("\n".join(sorted(faults)), file=sys.stderr, end="\n" if faults else "")
    return 1 if faults else 0


sys.exit(main())
