// The factor form of the outputs: K = Phi Phi^T. A search over n rows costs O(n * rank).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/aligned_array.hpp"
#include "core/scorer.hpp"
#include "core/views.hpp"  // for MatrixView
#include "core/watch.hpp"

namespace okforest {

// Phi, shared by all threads: as given, and in float32 for searches.
class FactorOutputs {
 public:
  FactorOutputs(const MatrixView& phi, Pace& pace);  // which must outlive the object

  const double* row(std::int64_t i) const { return data_ + i * n_cols_; }
  const double* data() const { return data_; }
  std::int64_t n_rows() const { return n_rows_; }
  std::int64_t rank() const { return rank_; }
  std::int64_t n_cols() const { return n_cols_; }  // padded with zeros to a multiple of eight
  std::span<const double> squared_norms() const { return squared_norm_; }
  const FloatFactor* floats() const { return floats_.empty() ? nullptr : &float_factor_; }

 private:
  std::int64_t n_rows_, rank_, n_cols_;
  const double* data_;
  AlignedArray<double> padded_;
  std::vector<double> squared_norm_;
  AlignedArray<float> floats_;
  FloatFactor float_factor_{};
};

class FactorScorer : public ScorerDefaults<FactorScorer> {
 public:
  struct Frame {
    std::vector<double> sum, mean;
    std::vector<float> float_mean;
    double size;  // weight times scale
    Rows part;    // after a division: the smaller side, and its sum
    std::vector<double> part_sum;
  };

  explicit FactorScorer(const FactorOutputs& outputs) : outputs_(outputs) {}

  void begin(std::span<const double> weight, Rows rows);
  void enter(Node& node, Rows rows, const Frame* parent, Frame& frame);
  void divide(Frame* frame, Rows left, Rows right);
  Precision search_sides(const Node& node, Rows rows, const Frame& frame,
                         std::span<const Side> sides, double* norms);
  bool row_values(Rows rows, const Frame& frame, double* values) const;
  double set_norm(const Frame& frame, Rows rows, double weight);
  Precision prefix_norms(const Node& node, Rows rows, const Frame& frame,
                         std::span<const Prefixes> lists, bool exact, double* norms);
  std::size_t group_width(const Frame& frame) const { return frame.mean.size(); }
  void group_sums(const Frame& frame, Rows rows, Rows group, std::span<const double> group_weight,
                  std::span<double> sums);

 private:
  void sum_over(Rows rows, double* sum);
  bool find_sum(Rows rows, const Frame* parent, Frame& frame);
  void measure(Node& node, Rows rows, Frame& frame) const;

  const FactorOutputs& outputs_;
  std::vector<float> float_weight_;
  std::vector<double> root_sum_;  // of all rows, without weights: the same for all trees
  std::vector<double> sum_;       // scratch memory
  std::vector<SideSum> side_sums_;
};

}  // namespace okforest
