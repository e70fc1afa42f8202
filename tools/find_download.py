#!/usr/bin/env python3
"""Finds where a file of a Python package can be downloaded.

    find_download.py --index                 prints the package index that pip is set up to use
    find_download.py BASE FILE < PAGE        prints the address of FILE on the index page PAGE

PAGE is a page of the simple index (PEP 503 HTML or PEP 691 JSON) that was read from BASE.
`./dev setup` pins each file by name and SHA-256, so the index decides only where it comes from.
"""

import html.parser
import json
import os
import subprocess
import sys
import urllib.parse


def configured_index() -> str:
    """PIP_INDEX_URL, else pip's configuration, else the index that is built into pip."""
    if os.environ.get("PIP_INDEX_URL"):
        return os.environ["PIP_INDEX_URL"]
    for key in ("global.index-url", "install.index-url"):
        answer = subprocess.run([sys.executable, "-m", "pip", "config", "get", key],
                                capture_output=True, text=True, check=False)
        if answer.returncode == 0 and answer.stdout.strip():
            return answer.stdout.strip()
    try:
        from pip._internal.models.index import PyPI
    except ImportError:
        sys.exit("error: pip is not installed, so its package index is not known\n"
                 "  install python3-pip, or set PIP_INDEX_URL to the address of a simple index")
    return PyPI.simple_url


class Links(html.parser.HTMLParser):
    """Collects the targets of all <a href=...>."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.found += [value for name, value in attrs if name == "href" and value]


def links(page: str) -> list[str]:
    if page.lstrip().startswith("{"):
        return [entry["url"] for entry in json.loads(page).get("files", [])]
    parser = Links()
    parser.feed(page)
    return parser.found


def find(base: str, file: str, page: str) -> str:
    if not page.strip():
        sys.exit("error: the package index did not answer\n"
                 "  the line above says why; a mirror is set with PIP_INDEX_URL")
    for link in links(page):
        path = urllib.parse.urlsplit(link).path
        if urllib.parse.unquote(path.rsplit("/", 1)[-1]) == file:
            return urllib.parse.urldefrag(urllib.parse.urljoin(base, link)).url
    sys.exit(f"error: the package index does not list {file}\n"
             "  set PIP_INDEX_URL to an index that has it, or put the file into the download cache")


if __name__ == "__main__":
    if sys.argv[1:] == ["--index"]:
        print(configured_index().rstrip("/"))
    elif len(sys.argv) == 3:
        print(find(sys.argv[1], sys.argv[2], sys.stdin.read()))
    else:
        sys.exit(__doc__)
