#include "tests/add_a_model/bag_encoder.h"

#include <ATen/ATen.h>

#include "models/operations.h"
#include "nn/watch.h"

namespace stretto::models {
namespace {

/// The mean of the rows of one sequence that stand at most `reach` away. x [N, D] -> [N, D].
at::Tensor means_around(const at::Tensor& x, const nn::PackedRows& input, int64_t reach) {
  const at::Tensor lengths = at::diff(input.offsets.values.to(at::kLong));
  const at::Tensor length = at::repeat_interleave(lengths, lengths);  // of each row's sequence
  const at::Tensor row = at::arange(x.size(0), input.ids.options());
  at::Tensor sum = x, count = at::ones_like(input.ids);
  for (int64_t distance = 1; distance <= reach; ++distance) {
    for (const int64_t shift : {-distance, distance}) {
      const at::Tensor place = input.positions + shift;
      const at::Tensor outside = place.lt(0).logical_or(place.ge(length));
      const at::Tensor neighbour = (row + shift).clamp(0, x.size(0) - 1);
      // Filled, not multiplied: 0 times another sequence's infinity is no number.
      sum = sum + x.index_select(0, neighbour).masked_fill(outside.unsqueeze(1), 0);
      count = count + outside.logical_not();
    }
  }
  return sum / count.unsqueeze(1);
}

}  // namespace

BagEncoder::BagEncoder(const BagEncoderOptions& options, const PartSetup& setup)
    : d_model_(setup.d_model),
      reach_(options.window / 2),
      dropout_(options.dropout),
      first_site_(setup.first_site),
      embedding_(*this, setup, embedding_kind(options)) {
  out_ = register_module("out", nn::Linear(setup.init.child("out"), d_model_, d_model_));
}

Encoded BagEncoder::forward(const nn::PackedRows& input, const ForwardContext& context) {
  const nn::DropoutSource dropout = context.dropout(input.row_keys);
  const at::Tensor x = kernels::dropout(embedding_.forward(input),
                                        dropout.at(dropout_, first_site_ + kEmbeddingSite));
  const at::Tensor means = nn::watch(*this, means_around(x, input, reach_));
  return {.rows = input, .keys = out_->forward(means), .values = {}, .state = {}};
}

// Sums of neighbours are not counted: they grow with the width alone, products with its square.
double BagEncoder::operations(double /*length*/) const {
  return weight_operations(*this);
}

std::shared_ptr<Encoder> make_bag_encoder(const BagEncoderOptions& options,
                                          const PartSetup& setup) {
  return std::make_shared<BagEncoder>(options, setup);
}

}  // namespace stretto::models
