#pragma once

#include <memory>
#include <vector>

#include "decoding/step_model.h"

namespace stretto::decoding {

/// Several models as one: log((1/M) sum_m p_m(token)), the mean of their probabilities.
/// All members hold the same lanes and share one vocabulary.
class EnsembleStepModel : public StepModel {
 public:
  explicit EnsembleStepModel(std::vector<std::unique_ptr<StepModel>> members);

  at::Tensor step(const at::Tensor& tokens) override;
  at::Tensor prefill(const at::Tensor& prompts, int64_t lanes_per_source) override;
  at::Tensor prefill_packed(const PackedPrompts& prompts, int64_t lanes_per_source) override;
  bool takes_unequal_prompts() const override;
  void reorder(const std::vector<int64_t>& parents) override;
  /// Those of a single member; several have no common logits.
  at::Tensor log_normalisers() const override;
  int64_t most_cache_bytes() const override;  ///< of all members
  int64_t vocab_size() const override { return members_.front()->vocab_size(); }

 private:
  /// log of the mean of what the members give. @param of  (member) -> log-probabilities
  template <class Of>
  at::Tensor mean(const Of& of);

  std::vector<std::unique_ptr<StepModel>> members_;
};

}  // namespace stretto::decoding
