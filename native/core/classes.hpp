// The class form of the outputs: the factor form if each row of Phi is the indicator of a class. A
// search counts classes: it costs O(n) for n rows, whatever the number of classes.
#pragma once

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

// The classes of the rows of Phi, if each row has a single one and otherwise zeros.
std::optional<ClassOutputs> find_classes(const MatrixView& phi, Pace& pace);

class ClassScorer : public ScorerDefaults<ClassScorer> {
 public:
  struct Frame {
    std::vector<double> mean;  // the share of each class in the node
    double mean_norm;          // its squared norm
  };

  explicit ClassScorer(const ClassOutputs& outputs)
      : outputs_(outputs), number_(static_cast<std::size_t>(outputs.n_classes), -1) {}

  void begin(std::span<const double> weight, Rows) { weight_ = weight; }
  void enter(Node& node, Rows rows, const Frame* parent, Frame& frame);
  void divide(Frame*, Rows, Rows) {}  // children count their own rows
  std::size_t row_classes(Rows rows, const Frame& frame, std::int32_t* classes, double* means);
  void set_norms(const Node& node, const Frame& frame, std::span<const Rows> sets,
                 const double* weights, double* norms);
  void prefix_norms(const Node& node, Rows rows, const Frame& frame,
                    std::span<const Prefixes> lists, double* norms);
  void group_gram(const Frame& frame, Rows rows, Rows group, std::span<const double> group_weight,
                  std::span<double> sums);

 private:
  double weight_of(std::int32_t i) const { return weight_.empty() ? 1.0 : weight_[i]; }
  void count(Rows rows, std::vector<double>& weights) const;
  double set_norm(const Frame& frame, Rows rows, double weight);

  const ClassOutputs& outputs_;
  std::span<const double> weight_;

  // Scratch memory:
  std::vector<double> of_set_, of_rest_;  // weights by class
  std::vector<std::int32_t> number_;      // of each class in a node; -1 between calls
};

}  // namespace okforest
