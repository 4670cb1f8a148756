// Alignments of curves of any length, for the global alignment kernel.
#pragma once

#include <span>

#include "sequences/ragged.hpp"

namespace okforest {

// For every pair of curves of a and b, by rows, the logarithm of the sum over all monotone
// alignments of the product of the similarities g / (2 - g), g = exp(-(u - v)^2 / 2 sigma^2), of
// aligned values (Cuturi, 2011). A pair costs the product of the lengths.
void log_alignments(const Ragged<double>& a, const Ragged<double>& b, double sigma,
                    std::span<double> result);

}  // namespace okforest
