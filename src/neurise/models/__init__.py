"""One file per method; each is found by its file name (:mod:`neurise.discovery`)."""
