"""One file a method; each is found by its file name (:mod:`neurise.discovery`)."""
