// The class form of the outputs: the factor form if each row of Phi is the indicator of a class. A
// search counts classes: it costs O(n) for n rows, whatever the number of classes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/scorer.hpp"
#include "core/views.hpp"  // for MatrixView
#include "core/watch.hpp"

namespace okforest {

struct ClassOutputs {
  std::vector<std::int32_t> class_of;  // the training rows
  std::int64_t n_classes;
};

// Outputs that are given as classes, numbered from zero.
inline ClassOutputs outputs_of(std::span<const std::int32_t> classes) {
  return {{classes.begin(), classes.end()}, std::int64_t{*std::ranges::max_element(classes)} + 1};
}

// The classes of the rows of Phi, if each row has a single one and otherwise zeros.
inline std::optional<ClassOutputs> find_classes(const MatrixView& phi, Pace& pace) {
  ClassOutputs outputs{std::vector<std::int32_t>(static_cast<std::size_t>(phi.n_rows)), phi.n_cols};
  for (std::int64_t i = 0; i < phi.n_rows; ++i) {
    const std::span<const double> row(phi.row(i), static_cast<std::size_t>(phi.n_cols));
    const auto one = std::ranges::find_if(row, [](double x) { return x != 0.0; });
    if (one == row.end() || *one != 1.0) return {};
    if (std::any_of(one + 1, row.end(), [](double x) { return x != 0.0; })) return {};
    outputs.class_of[i] = static_cast<std::int32_t>(one - row.begin());
    pace.advance(phi.n_cols);
  }
  return outputs;
}

class ClassScorer : public ScorerDefaults<ClassScorer> {
 public:
  struct Frame {
    std::vector<double> mean;  // the share of each class in the node
    double mean_norm;          // its squared norm
  };

  explicit ClassScorer(const ClassOutputs& outputs)
      : outputs_(outputs), number_(static_cast<std::size_t>(outputs.n_classes), -1) {}

  void enter(Node& node, Rows rows, const Frame*, Frame& frame) {
    count(rows, frame.mean);
    frame.mean_norm = 0.0;
    node.variance = 0.0;
    for (double& x : frame.mean) {
      if (x == 0.0) continue;                                // most classes, in a small node
      node.variance += x * (node.weight - x) / node.weight;  // zero if all rows are of the class
      x /= node.weight;
      frame.mean_norm += x * x;
    }
    node.scale = node.weight;
    if (node.variance <= node.rounding()) node.variance = 0.0;
    node.noise = std::max(kNoise * node.variance, kRounding * node.scale);
  }

  void divide(Frame*, Rows, Rows) {}  // children count their own rows

  // Numbers the classes of a node in the order of its rows.
  std::size_t row_classes(Rows rows, const Frame& frame, std::int32_t* classes, double* means) {
    std::int32_t n = 0;
    for (const auto i : rows) {
      const std::int32_t c = outputs_.class_of[i];
      if (number_[c] < 0) {
        means[n] = frame.mean[c];
        number_[c] = n++;
      }
      *classes++ = number_[c];
    }
    for (const auto i : rows) number_[outputs_.class_of[i]] = -1;
    return static_cast<std::size_t>(n);
  }

  double set_norm(const Frame& frame, Rows rows, double weight) {
    count(rows, of_set_);
    double norm = 0.0;
    for (std::size_t c = 0; c < of_set_.size(); ++c) {
      const double centred = of_set_[c] - weight * frame.mean[c];
      norm += centred * centred;
    }
    return norm;
  }

  // A sum of class weights n_c and its norm change with each row.
  Precision prefix_norms(const Node&, Rows, const Frame& frame, std::span<const Prefixes> lists,
                         bool, double* norms) {
    for (const Prefixes& list : lists) {
      if (list.rows.empty()) continue;
      of_set_.assign(frame.mean.size(), 0.0);
      double weight = 0.0, norm = 0.0, reach = 0.0;  // sums of n_c, n_c^2 and n_c mean_c
      std::int32_t k = 0;
      for (const auto length : list.lengths) {
        for (; k < length; ++k) {
          const std::int32_t i = list.rows[k], c = outputs_.class_of[i];
          const double w = weight_of(i);
          norm += w * (2.0 * of_set_[c] + w);
          reach += w * frame.mean[c];
          weight += w;
          of_set_[c] += w;
        }
        *norms++ = norm - 2.0 * weight * reach + weight * weight * frame.mean_norm;
      }
    }
    return {};
  }

  std::size_t group_width(const Frame& frame) const { return frame.mean.size(); }
  void group_sums(const Frame& frame, Rows rows, Rows group, std::span<const double> group_weight,
                  std::span<double> sums) {
    for (std::size_t k = 0; k < rows.size(); ++k) {
      sums[group[k] * frame.mean.size() + outputs_.class_of[rows[k]]] += weight_of(rows[k]);
    }
    centre_groups(frame.mean, group_weight, sums);
  }

 private:
  void count(Rows rows, std::vector<double>& weights) const {
    weights.assign(static_cast<std::size_t>(outputs_.n_classes), 0.0);
    for (const auto i : rows) weights[outputs_.class_of[i]] += weight_of(i);
  }

  const ClassOutputs& outputs_;

  // Scratch memory:
  std::vector<double> of_set_;        // weights by class
  std::vector<std::int32_t> number_;  // of each class in a node; -1 between calls
};

}  // namespace okforest
