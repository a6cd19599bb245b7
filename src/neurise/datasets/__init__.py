"""One file a source of data; each offers the function that bears its name."""

from neurise.discovery import bind

globals().update(bind("neurise.datasets"))
