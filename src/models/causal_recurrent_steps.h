#pragma once

#include <memory>
#include <vector>

#include "kernels/recurrent/step.h"
#include "models/causal_recurrent.h"
#include "models/decoder.h"

namespace stretto::models {

/// A recurrent language model one token at a time, for L lanes of B sources. Nothing is dropped.
///
/// Weights are packed once, when it is made, in the arithmetic of that moment. A lane's history is
/// its state: h and c of each layer, which move with the lane.
class CausalRecurrentSteps : public StepDecoder {
 public:
  CausalRecurrentSteps(std::shared_ptr<CausalRecurrent> model, int64_t sources,
                       int64_t lanes_per_source);

  at::Tensor step(const at::Tensor& ids) override;
  at::Tensor prefill(const at::Tensor& ids, int64_t lanes_per_source) override;
  at::Tensor prefill_packed(const decoding::PackedPrompts& prompts,
                            int64_t lanes_per_source) override;
  bool takes_unequal_prompts() const override { return true; }
  /// Prompts of any lengths above 0 before any step, in one pass: what all lanes of each source
  /// begin with -> [L, D], the row behind the last token of each.
  /// Throws c10::Error for another number of prompts than sources, and after a step.
  at::Tensor read(const nn::PackedRows& prompts, int64_t lanes_per_source);
  /// Throws c10::Error for a parent that there is not.
  void reorder(const std::vector<int64_t>& parents) override;

 private:
  std::shared_ptr<CausalRecurrent> model_;
  int64_t lanes_;
  bool began_ = false;
  std::vector<kernels::RecurrentStep> layers_;
  std::vector<kernels::RecurrentState> states_;  ///< of each layer, [L, H]; undefined at first
};

}  // namespace stretto::models
