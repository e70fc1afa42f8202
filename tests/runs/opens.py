"""How often a file is opened, seen from outside."""
import ctypes
import os
import select
import struct
import threading

from harness import check

IN_OPEN, IN_CLOSE = 0x20, 0x18


class Opens:
    """Counts how often a file is opened while this is entered; closing in between keeps the kernel from joining two."""

    def __init__(self, path):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.path, self.count = path, 0

    def __enter__(self):
        self.events = self.libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        check(self.events >= 0, "no inotify")
        watch = self.libc.inotify_add_watch(self.events, os.fsencode(self.path), IN_OPEN | IN_CLOSE)
        check(watch >= 0, f"cannot watch {self.path}")
        self.stop = threading.Event()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        return self

    def read(self):
        while True:
            last = self.stop.is_set()
            if select.select([self.events], [], [], 0.02)[0]:
                content, at = os.read(self.events, 1 << 16), 0
                while at < len(content):
                    _, mask, _, length = struct.unpack_from("iIII", content, at)
                    self.count += bool(mask & IN_OPEN)
                    at += 16 + length
            elif last:
                return

    def __exit__(self, *_):
        self.stop.set()
        self.reader.join()
        os.close(self.events)
