"""One file a metric; each offers the function that bears its name."""

from neurise.discovery import bind

globals().update(bind("neurise.metrics"))
