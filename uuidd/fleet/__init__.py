"""Worker numbers of a fleet: the engines that keep them, and what the daemon asks of an engine."""
