"""What every room uses: arrays, frames, inputs, parameters, model state, progress, plots."""
