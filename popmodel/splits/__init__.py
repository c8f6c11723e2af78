"""All splits of some cores into processes and threads, judged and searched."""
