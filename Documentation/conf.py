# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Sphinx: make docs, or
KERNEL_SRC=/usr/src/linux-source-6.12 sphinx-build -nW Documentation build/html

The directives that read kernel-doc comments are the kernel's own, hence the
kernel source. Pictures are drawn by graphviz. Nothing here or in the HTML is
fetched from a network.
"""

import os
import sys

top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
kernel = os.environ.get("KERNEL_SRC", "/usr/src/linux-source-6.12")
sys.path.insert(0, os.path.join(kernel, "Documentation/sphinx"))
os.environ.setdefault("srctree", top)

project = "kOFI"
extensions = ["kerneldoc", "sphinx.ext.graphviz"]
kerneldoc_bin = os.path.join(kernel, "scripts/kernel-doc")
kerneldoc_srctree = top
kerneldoc_verbosity = 1
graphviz_output_format = "svg"
primary_domain = "c"
highlight_language = "none"
exclude_patterns = ["netlink"]
html_theme = "sphinx_rtd_theme"
html_title = project
html_static_path = ["static"]
html_css_files = ["kofi.css"]
html_show_copyright = False
# a browser lets no page read other files, so excerpts would fail there
html_show_search_summary = False
# types in the signatures: the kernel's, and libfabric's structures, which have
# no page here
nitpick_ignore_regex = [("c:identifier", ".*")]
