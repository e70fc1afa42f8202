#include "kernels/recurrent/attentive_layer.h"

#include <utility>

#include "kernels/rounding.h"

namespace stretto::kernels {
namespace {

std::vector<StepFactor> factor_if_there(const at::Tensor& weight, Compute compute) {
  std::vector<StepFactor> factor;
  if (weight.defined()) factor.emplace_back(weight, compute);
  return factor;
}

float gain_of(const AttentiveWeights& weights, bool is_product) {
  return is_product && weights.gain.defined() ? weights.gain.const_data_ptr<float>()[0] : 1.0f;
}

std::vector<int64_t> one_to_one(int64_t count) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < count; ++i) all.push_back(i);
  return all;
}

}  // namespace

AttentivePacks::AttentivePacks(const AttentiveWeights& weights, Compute compute)
    : hidden(weights.recurrent.hidden, compute),
      context(weights.context, compute),
      query(factor_if_there(weights.query, compute)),
      hidden_bias(rounded(weights.recurrent.hidden_bias, compute)),
      query_bias(rounded(weights.query_bias, compute)) {}

AttentiveLayer::AttentiveLayer(const AttentiveWeights& own, const PreparedMemory& prepared,
                               const AttentiveState& initial, const Attentive& options,
                               Compute compute)
    : schedule(options.recurrent.offsets, false),
      weights(own),
      memory(prepared),
      first_context(initial.context),
      problem{schedule,
              options.recurrent.cell,
              own.recurrent,
              {initial.h, initial.c},
              options.recurrent.recurrent_dropout,
              own.recurrent.hidden.size(1),
              options.recurrent.overwrites_gates},
      scorer{own.score, gain_of(own, !prepared.powers.defined()), compute},
      location(own.location),
      sources_(one_to_one(schedule.batch())) {
  make_blocks();
}

AttentiveLayer::AttentiveLayer(const AttentiveWeights& own, const PreparedMemory& prepared,
                               const AttentiveState& before, const CellOptions& cell,
                               std::vector<int64_t> sources, Compute compute)
    : schedule(static_cast<int64_t>(sources.size())),
      weights(own),
      memory(prepared),
      first_context(before.context),
      problem{
          schedule, cell, own.recurrent, {before.h, before.c}, {}, own.recurrent.hidden.size(1)},
      scorer{own.score, gain_of(own, !prepared.powers.defined()), compute},
      location(),
      sources_(std::move(sources)) {
  make_blocks();
}

void AttentiveLayer::make_blocks() {
  const size_t count = static_cast<size_t>(schedule.batch());
  std::vector<int64_t> lengths(count);
  for (int64_t rank = 0; rank < schedule.batch(); ++rank)
    lengths[static_cast<size_t>(schedule.sequence(rank))] = schedule.length(rank);
  begins_.assign(1, 0);
  blocks_.assign(1, 0);
  for (size_t i = 0; i < count; ++i) {
    begins_.push_back(begins_.back() + lengths[i]);
    blocks_.push_back(blocks_.back() + lengths[i] * memory.count(sources_[i]));
  }
}

Compute AttentiveLayer::query_compute() const {
  return weights.query.defined() || !memory.powers.defined() ? compute() : Compute::kFp32;
}

int64_t AttentiveLayer::step_weights() const {
  return weights.recurrent.hidden.numel() + weights.context.numel() +
         (weights.query.defined() ? weights.query.numel() : 0);
}

int64_t AttentiveLayer::source(int64_t rank) const {
  return sources_[static_cast<size_t>(schedule.sequence(rank))];
}

float* AttentiveLayer::weights_at(const at::Tensor& all, int64_t rank, int64_t row) const {
  const size_t sequence = static_cast<size_t>(schedule.sequence(rank));
  return all.data_ptr<float>() + blocks_[sequence] +
         (row - begins_[sequence]) * memory.count(sources_[sequence]);
}

}  // namespace stretto::kernels
