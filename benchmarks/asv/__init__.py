"""Benchmarks over commits, run by asv: see benchmarks/README.md."""
