"""Search for good parameters: every method over the space that its class names, at an equal budget per trial.

:func:`neurise.tuning.task.make_task` says what is searched, :func:`neurise.tuning.search.tune` searches. Nothing is imported
here: the command line lists the samplers without loading torch.
"""
