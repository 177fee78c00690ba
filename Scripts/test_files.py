"""What the checks of docs/coverage.md and docs/conformance.md read."""
import os
import subprocess


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def test_files():
    """The Swift files below Tests that are there, committed or not."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "Tests/*.swift"], check=True,
                            capture_output=True, text=True)
    return filter(os.path.exists, listed.stdout.splitlines())
