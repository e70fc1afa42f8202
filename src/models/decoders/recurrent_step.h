#pragma once

#include <memory>
#include <vector>

#include "kernels/recurrent/step.h"
#include "models/decoders/recurrent.h"
#include "models/lanes.h"

namespace stretto::models {

/// A recurrent decoder one token at a time, for L lanes of B sources.
///
/// Weights are packed once, when it is made, in the arithmetic of that moment; keys of the memory
/// are computed once and shared by all lanes of a source. A lane's history is its state: h and c of
/// each layer and what it attended to last, which move with the lane.
class RecurrentStepDecoder : public StepDecoder {
 public:
  RecurrentStepDecoder(std::shared_ptr<RecurrentDecoder> decoder, const Encoded& memory,
                       int64_t lanes_per_source);

  at::Tensor step(const at::Tensor& ids) override;
  void reorder(const std::vector<int64_t>& parents) override;

 private:
  kernels::RecurrentState& state(int64_t layer) { return states_[static_cast<size_t>(layer)]; }
  /// What was attended to in the step before; zero before the first.
  at::Tensor context_before(const at::Tensor& like) const;

  std::shared_ptr<RecurrentDecoder> decoder_;
  Lanes lanes_;
  kernels::AttentiveStep first_;
  std::vector<kernels::RecurrentStep> upper_;  ///< of layers 1, 2, …
  kernels::Memory memory_;
  kernels::AttentiveStep::Source source_;        ///< `memory_` as steps read it
  std::vector<kernels::RecurrentState> states_;  ///< of each layer, [L, H] or undefined
  at::Tensor context_;                           ///< [L, M], undefined before the first step
};

}  // namespace stretto::models
