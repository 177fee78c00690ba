"""What several checks read: the files that are there, committed or not, and the prose of a page."""
import os
import subprocess


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def files(*patterns):
    """The files of these patterns of git's."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", *patterns], check=True, capture_output=True, text=True)
    return [path for path in listed.stdout.splitlines() if os.path.exists(path)]


def test_files():
    """The Swift files below Tests."""
    return files("Tests/*.swift")


def prose(text):
    """The lines of a page outside of blocks of code, with their numbers."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line
