// The Gram form of the outputs: all scores follow from the matrix K of inner products. A search
// over n rows costs O(n^2).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/gathered_sum.hpp"
#include "core/gram_block.hpp"
#include "core/scorer.hpp"

namespace okforest {

class GramScorer : public ScorerDefaults<GramScorer> {
 public:
  struct Frame {
    std::size_t block;          // number of the block that holds the node
    std::vector<double> reach;  // <phi_i, sum over the node>, by place in the block
    double mean_norm;           // ||node mean||^2
    double weight;              // of the node
    double scale;               // sum of w_i k_ii over the node, in the block
    Rows part;                  // after a division: the smaller side, and <phi_i, sum over it>
    std::vector<double> part_reach;
  };

  explicit GramScorer(const GramOutputs& outputs);

  // A scorer for some rows of Phi at a time, whose inner products it computes.
  explicit GramScorer(const FactorOutputs& factor);
  void begin_branch(Rows rows);

  void enter(Node& node, Rows rows, const Frame* parent, Frame& frame);
  void divide(Frame* frame, Rows left, Rows right);
  Precision search_sides(const Node& node, Rows rows, const Frame& frame,
                         std::span<const Side> sides, double* norms);
  bool small_gram(Rows rows, const Frame& frame, SmallGram& gram) const;
  double set_norm(const Frame& frame, Rows rows, double weight);
  Precision prefix_norms(const Node& node, Rows rows, const Frame& frame,
                         std::span<const Prefixes> lists, bool exact, double* norms);
  void group_gram(const Frame& frame, Rows rows, Rows group, std::span<const double> group_weight,
                  std::span<double> sums);

 private:
  using Block = GramBlock;

  // Some rows: their places in a block, and their weights, or null if all are one.
  struct Places {
    Rows at;
    const double* weight;

    // The weighted sum of the entries of a row of the block at the first n places.
    double sum(const double* row, std::size_t n) const {
      if (weight == nullptr) return gathered_sum([&](std::size_t k) { return row[at[k]]; }, n);
      return gathered_sum([&](std::size_t k) { return weight[k] * row[at[k]]; }, n);
    }
  };

  const Block& block(const Frame& frame) const { return blocks_[frame.block]; }
  static double size(const Frame& frame) { return frame.weight * frame.scale; }
  Places places_of(const Block& block, Rows rows);
  std::size_t pack(std::size_t from, Rows rows);
  std::size_t next_block(std::size_t last);
  void find_reach(const Block& block, Rows part, Rows rows, std::vector<double>& reach);
  double measure(const Block& block, Rows rows, Frame& frame) const;
  bool can_search(const Node& node, const Frame& frame, double error) const;
  void list_places(const Block& block, std::span<const Side> sides);
  void sums_by_row(const Block& block, Rows rows);

  // ||s - w m||^2 of a sum s of total weight w, from ||s||^2 and <s, W m>, with m the node's mean.
  static double centred(double norm, double weight, double reach, const Frame& frame) {
    return norm - 2.0 * weight * reach / frame.weight + weight * weight * frame.mean_norm;
  }

  std::int64_t n_rows_;
  const FactorOutputs* factor_ = nullptr;  // if inner products are computed here
  std::vector<Block> blocks_;         // of the current branch and its ancestors, then unused ones
  std::vector<double> squared_norm_;  // ||phi_i||^2 of the training rows
  std::vector<double> root_reach_;    // of all rows, without weights: the same for all trees

  // A pair of lists whose sums are found by whole rows of the matrix, and where to write them.
  struct Longer {
    Rows left, right;
    double* before;
  };

  // What a row adds to the sums of a prefix, besides its sum over the rows before it.
  struct Terms {
    double weight, norm, reach;
  };

  // Scratch memory:
  std::vector<double> packed_;       // some rows of Phi, around one of them
  std::vector<std::int32_t> place_;  // where rows are in a block
  std::vector<float> float_weight_;  // by place in the block
  std::vector<std::int32_t> side_places_, side_starts_;
  std::vector<PanelRows> panel_rows_;
  std::vector<double> before_;  // of each row of each list: its sum over the rows before it
  std::vector<Longer> longer_;
  std::vector<Terms> terms_;          // by training row
  std::vector<std::int32_t> number_;  // training row -> its number in the node
  std::vector<float> rank_, line_;    // ranks by list and number; a weighted row of the matrix
};

}  // namespace okforest
