"""gunicorn: with ``preload_app``, each worker still makes ids of its own; there is nothing to do.

The workers are forks of one process. A fork's child drops the ids and connections that it inherits.
"""

preload_app = True
workers = 2
