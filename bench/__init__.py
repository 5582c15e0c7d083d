"""The benchmark: rota beside its peers, on this machine, in one run. See README.md."""
