// Alignments of curves of any length, for the global alignment kernel.
#pragma once

#include <span>
#include <vector>

#include "core/watch.hpp"

namespace okforest {

using Curve = std::span<const double>;

// The logarithm of the sum over all monotone alignments of two curves of the product of the
// similarities g / (2 - g), g = exp(-(u - v)^2 / 2 sigma^2), of aligned values (Cuturi, 2011).
// Costs the product of the lengths, and reports it to the pace. `row` is scratch memory.
double log_alignment(Curve u, Curve v, double sigma, std::vector<double>& row, Pace& pace);

}  // namespace okforest
