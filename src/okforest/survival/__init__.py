"""Survival analysis: censored times as outputs, from the kernel to measures and plots."""
