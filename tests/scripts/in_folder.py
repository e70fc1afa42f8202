"""What tests of tools share: a temporary folder, a tool as a module, the end of a process."""

import importlib.util
import pathlib
import shutil
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def has_ended(pid):
    """Whether a process is gone within 20 seconds, or waits for its parent to notice."""
    for _ in range(200):
        try:
            if " Z " in pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8"):
                return True
        except OSError:
            return True
        time.sleep(0.1)
    return False


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class InTemporaryFolder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, path, text):
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text, encoding="utf-8")
        return self.folder / path
