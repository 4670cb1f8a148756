// What the screening of a node finds out about the best split of each feature.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/gain.hpp"

namespace okforest {

// Arrays by slot, the place of a feature among those that are screened.
struct Found {
  std::vector<double> gain;   // of a search, or exact; kNoGain, or kUnknown
  std::vector<double> error;  // bounds its error
  std::vector<double> threshold, left_weight;
  std::vector<char> settled;  // whether the split is known, if no other feature is as good
  bool any_unknown = false;

  void resize(std::size_t n) {
    for (auto* of : {&gain, &error, &threshold, &left_weight}) of->resize(n);
    settled.resize(n);
    slots_.resize(n);
  }

  void set(std::size_t slot, double exact) {
    gain[slot] = exact;
    error[slot] = 0.0;
    settled[slot] = false;
  }
  void set_unknown(std::size_t slot) {
    gain[slot] = kUnknown;
    any_unknown = true;
  }

  // Those of the first n slots whose gain may reach a least one; until the next call. Without
  // branches: each slot is written, and kept if so.
  std::span<const std::size_t> contenders(std::size_t n, double least) {
    std::size_t* const out = slots_.data();
    const double *const gains = gain.data(), *const errors = error.data();
    std::size_t n_found = 0;
    for (std::size_t k = 0; k < n; ++k) {
      out[n_found] = k;
      n_found += (gains[k] + errors[k] >= least) & (gains[k] >= 0.0);
    }
    return {out, n_found};
  }

 private:
  std::vector<std::size_t> slots_;
};

}  // namespace okforest
