"""The ``windjoin`` command."""
