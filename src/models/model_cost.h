#pragma once

#include <cstdint>

namespace stretto::models {

class Seq2SeqModel;

/// Mean lengths of the sequences that a model trains on, in tokens.
struct Lengths {
  double src = 30, tgt = 30;
};

/// What a model weighs, and what training it costs. No libtorch.
struct ModelCost {
  int64_t parameters = 0;  ///< tied ones once
  /// Floating-point operations of forward and backward for one unit of what the family's throughput
  /// counts: an image, or a target token with its share of the source.
  double training_flops = 0;
};

/// Backward costs twice what forward does (Seq2SeqModel::operations): each product has a gradient
/// for both of its factors. The model may have no memory (at::kMeta).
ModelCost cost_of(const Seq2SeqModel& model, const Lengths& lengths = {});

}  // namespace stretto::models
