"""How the site is built: ``make docs`` writes it to build/site, and a warning is an error."""

import os
import sys
import tomllib
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))
with (HERE.parent / "pyproject.toml").open("rb") as file:
    URL = tomllib.load(file)["project"]["urls"]["Source"]

import neurise  # noqa: E402

os.environ.setdefault("OMP_NUM_THREADS", "1")  # several notebooks and examples run at once
os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "warning")  # the cluster of an example reports every step otherwise
warnings.filterwarnings("ignore", message=".*FigureCanvasAgg is non-interactive.*")

project, author, version, release = "neurise", "The neurise developers", neurise.__version__, neurise.__version__
copyright = "The neurise developers"
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "root_pages",
    "gallery_pictures",
    "spread_notebooks",
]
exclude_patterns = [
    "_extensions",
    "figures",
    "gallery/*.ipynb",
    "gallery/*.py",
    "sg_execution_times.rst",
    "**/sg_execution_times.rst",
    "jupyter_execute",
]
nitpicky = True
nitpick_ignore_regex = [  # what docstrings refer to and the reference leaves out: files and helpers inside the library
    (r"py:mod", r"neurise\.(theory|scoring|energies)\b.*"),
    (r"py:(class|func|data)", r"neurise\.(schema|persistence|modeling)\..*"),
    (r"py:(func|data)", r"write_dataset|variance\w*|reads_of_npz|read_\w+|correlations|anneal_points|SETTINGS"),
]
suppress_warnings = ["config.cache", "toc.empty_glob"]

# Pages: MyST Markdown. Links to headings work as they do on GitHub.
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist", "attrs_inline", "attrs_block"]
myst_heading_anchors = 3
html_math_renderer = "mathml"
root_pages = {
    "CHANGELOG.md": "contribute/changelog.md",
    "CONTRIBUTING.md": "contribute/index.md",
    "NOTATION.md": "start/notation.md",
    "README.md": "index.md",
    "SECURITY.md": "contribute/security.md",
}
root_files_url = f"{URL}/blob/main/"

# Tutorials are text notebooks; they run when the site is built, and what they ran to is kept while they do not change.
nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE.parent / "build" / "notebooks")
nb_execution_timeout = 600  # of one cell, on a machine that is busy with other things
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_in_temp = True  # what a notebook writes is thrown away
nb_merge_streams = True

# The gallery runs every script of examples/.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "parallel": 2,
    "min_reported_time": 1000,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "image_srcset": ["2x"],
    "image_scrapers": ("gallery_pictures",),
    "capture_repr": (),  # what is printed is shown; a fitted model at the end of a block is not
    "thumbnail_size": (400, 280),
}

# The reference is read from the docstrings.
autodoc_default_options = {"member-order": "bysource"}
autodoc_typehints = "none"
autodoc_preserve_defaults = True
autodoc_class_signature = "mixed"
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "neurise"
html_static_path = ["_static"]
html_favicon = "_static/icon.svg"
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
