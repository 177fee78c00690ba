#!/usr/bin/env python3
"""check_english.py: turns of phrase that make a text a riddle, in the literals of Sources and, the worst of them, in the pages.

A person who meets these texts has never seen the code and may read English as a second language: "X is no origin", "that answer
counts", "its time is over", "whoever has it", "What is stored cannot be read". Say "is not an origin", "is valid", "has
expired", "anyone who has it", "The stored data cannot be read". A literal of one word is a name and is not looked at. Prints
what it finds and exits with 1."""
import os
import re
import sys

from tree import files, prose, read

PHRASES = [
    (re.compile(r"(?<![Tt]here )\b(?:is|are) no\b(?! longer\b)"), "is not a …"),
    (re.compile(r"(?<![Tt]here )\b(?:is|are) none\b"), "is not one"),
    (re.compile(r"\bcounts\b(?! (?:guesses|wrong)\b)|\b(?:not count|count no more)\b"), "is valid, stands, makes a difference"),
    (re.compile(r"\b[Ww]hoever\b"), "anyone who, the person who"),
    (re.compile(r"\b(?:is|are) over\b"), "has ended, has expired"),
    (re.compile(r"(?:^|[.!?:]\s+)What (?![^.!]*\?)"), "a noun: The stored data, The text to sign"),
    (re.compile(r"\b(?:at|by|that|with) what guards\b"), "the vault's key provider"),
]

# In pages: outside of code, where "is none of these" may stand.
PAGE_PHRASES = [
    (re.compile(r"(?<![Tt]here )\b(?:is|are) no\b(?! (?:fewer|later|longer|more)\b)"), "is not a …"),
    (re.compile(r"(?<![Tt]here )\b(?:is|are) none\b(?! of\b)"), "is not one"),
    (re.compile(r"\b[Ww]hoever\b"), "anyone who, the person who"),
    (re.compile(r"\b(?:at|by|that|with) what guards\b"), "the vault's key provider"),
]

# Texts that something outside of Sources fixes.
FIXED = {}

# Nothing that people read as sentences: styles, markup and SQL.
SKIPPED = ("/Stylesheet.swift",)


def literals(text):
    """Each literal outside of comments, with its line; interpolations are an ellipsis."""
    at, line = 0, 1
    while at < len(text):
        if text[at] == "\n":
            line += 1
            at += 1
        elif text.startswith("//", at):
            at = text.find("\n", at) if "\n" in text[at:] else len(text)
        elif text.startswith("/*", at):
            stop = text.find("*/", at) + 2
            line += text.count("\n", at, stop)
            at = stop
        elif match := re.compile(r'(#*)("""|")').match(text, at):
            content, stop = literal(text, match.end(), match[1], match[2])
            yield line, content
            line += text.count("\n", at, stop)
            at = stop
        else:
            at += 1


def literal(text, at, hashes, quote):
    """A literal's content, and where it ends, if its content begins at `at`."""
    content = ""
    while at < len(text):
        if text.startswith("\\" + hashes + "(", at):
            depth, at = 1, at + len(hashes) + 2
            while at < len(text) and depth:
                inner = re.compile(r'(#*)("""|")').match(text, at)
                if inner:
                    at = literal(text, inner.end(), inner[1], inner[2])[1]
                    continue
                depth += {"(": 1, ")": -1}.get(text[at], 0)
                at += 1
            content += "…"
        elif text.startswith("\\", at) and not hashes:
            content += text[at:at + 2]
            at += 2
        elif text.startswith(quote + hashes, at):
            return content, at + len(quote) + len(hashes)
        else:
            content += text[at]
            at += 1
    return content, at


def in_pages():
    found = []
    for path in files("*.md"):
        for line, content in prose(read(path)):
            # What stands as code in a line is an ellipsis.
            content = re.sub(r"`[^`]*`", "…", content)
            for phrase, better in PAGE_PHRASES:
                if match := phrase.search(content):
                    found.append(f"{path}:{line}: \"{match[0]}\": say {better}")
    return found


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    found, met = [], set()
    for path in files("Sources/*.swift"):
        if path.endswith(SKIPPED):
            continue
        for line, content in literals(read(path)):
            if " " not in content.strip() or re.match(r"\s*(?:SELECT|UPDATE|INSERT|DELETE|CREATE|WITH)\b", content):
                continue
            for phrase, better in PHRASES:
                match = phrase.search(content)
                if not match:
                    continue
                if content in FIXED:
                    met.add(content)
                else:
                    found.append(f"{path}:{line}: \"{match[0].strip()}\" in \"{content.strip()[:100]}\": say {better}")
    found += in_pages()
    found += [f"Scripts/check_english.py: no text is \"{text}\" any more" for text in FIXED if text not in met]
    print("\n".join(found), file=sys.stderr, end="\n" if found else "")
    return 1 if found else 0


sys.exit(main())
