#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Is every page below Documentation/ good reStructuredText, and whole?

A line for each finding: syntax that docutils complains about, links to pages,
labels and sources that do not exist, pages no table of contents leads to.
Sphinx's own directives and roles are replaced by ones that only look whether
their target is there.
"""

import io
import pathlib
import re
import sys

from docutils import nodes
from docutils.core import publish_doctree
from docutils.parsers.rst import Directive, directives, roles

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
DOCS = TOP / "Documentation"
NO_INDEX = ("netlink",)         # generated and specified, no pages

found = []
reached = set()
labels = set()
wanted_labels = []
page = None                     # being read


def find(line, text):
    found.append(f"{page.relative_to(TOP)}:{line}: {text}")


def page_named(name):
    base = DOCS if name.startswith("/") else page.parent
    return (base / (name.lstrip("/") + ".rst")).resolve()


class Toctree(Directive):
    has_content = True
    option_spec = {"maxdepth": directives.nonnegative_int,
                   "numbered": directives.flag,
                   "caption": directives.unchanged}

    def run(self):
        for entry in filter(None, map(str.strip, self.content)):
            target = page_named(entry)
            if target.exists():
                reached.add(target)
            else:
                find(self.lineno, f"toctree: no page {entry}")
        return []


class KernelDoc(Directive):
    required_arguments = 1
    option_spec = {name: directives.unchanged for name in (
        "doc", "export", "internal", "identifiers", "no-identifiers",
        "functions")}

    def run(self):
        if not (TOP / self.arguments[0]).is_file():
            find(self.lineno, f"kernel-doc: no file {self.arguments[0]}")
        return []


def doc_role(name, raw, text, line, inliner, options=None, content=None):
    title = re.fullmatch(r"(.*)<(.+)>", text, re.S)
    target = title[2] if title else text
    if not page_named(target).exists():
        find(line, f"no page {target}")
    return [nodes.inline(raw, text)], []


def ref_role(name, raw, text, line, inliner, options=None, content=None):
    title = re.fullmatch(r"(.*)<(.+)>", text, re.S)
    wanted_labels.append((page, line, title[2] if title else text))
    return [nodes.inline(raw, text)], []


def word_role(name, raw, text, line, inliner, options=None, content=None):
    return [nodes.literal(raw, text)], []


def read(path):
    global page
    page = path
    warnings = io.StringIO()
    text = path.read_text()
    labels.update(re.findall(r"^\.\. _([\w-]+):$", text, re.M))
    publish_doctree(text, source_path=str(path.relative_to(TOP)),
                    settings_overrides={"warning_stream": warnings,
                                        "report_level": 1,
                                        "halt_level": 5,
                                        "syntax_highlight": "none",
                                        "input_encoding": "utf-8"})
    for line in warnings.getvalue().splitlines():
        # a label that only :ref: uses is no mistake
        if line.strip() and "not referenced" not in line:
            found.append(line)


def main():
    global page
    directives.register_directive("toctree", Toctree)
    directives.register_directive("kernel-doc", KernelDoc)
    roles.register_local_role("doc", doc_role)
    roles.register_local_role("ref", ref_role)
    for name in ("c:func", "c:type", "c:struct", "c:macro", "c:member"):
        roles.register_local_role(name, word_role)

    pages = [p for p in sorted(DOCS.rglob("*.rst"))
             if p.relative_to(DOCS).parts[0] not in NO_INDEX]
    for path in pages:
        read(path)
    for page, line, name in wanted_labels:
        if name not in labels:
            find(line, f"no label {name}")
    for page in pages:
        if page not in reached and page != DOCS / "index.rst":
            find(1, "no table of contents leads here")
    print("\n".join(found), end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
