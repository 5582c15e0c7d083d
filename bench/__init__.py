"""The benchmark: rota compared with other queues on this machine. See README.md."""
