#include "models/vocabulary_steps.h"

#include <utility>
#include <vector>

namespace stretto::models {
namespace {

class StepsOfVocabulary : public decoding::StepModel {
 public:
  explicit StepsOfVocabulary(VocabularySteps parts) : parts_(std::move(parts)) {}

  at::Tensor step(const at::Tensor& tokens) override {
    const torch::NoGradGuard no_grad;
    TORCH_CHECK(tokens.dim() == 1 && tokens.size(0) == parts_.lanes,
                "[model] step: tokens must be [", parts_.lanes, "], got ", tokens.sizes());
    return scored(parts_.steps->step(tokens.to(parts_.head->device())));
  }

  at::Tensor prefill(const at::Tensor& prompts, int64_t lanes_per_source) override {
    const torch::NoGradGuard no_grad;
    TORCH_CHECK(prompts.dim() == 2 && prompts.size(1) > 0 &&
                    prompts.size(0) * lanes_per_source == parts_.lanes,
                "[model] prefill: prompts must be [sources, tokens] of ", parts_.lanes, " lanes, ",
                lanes_per_source, " for each source, got ", prompts.sizes());
    return scored(parts_.steps->prefill(prompts.to(parts_.head->device()), lanes_per_source));
  }

  at::Tensor prefill_packed(const decoding::PackedPrompts& prompts,
                            int64_t lanes_per_source) override {
    const torch::NoGradGuard no_grad;
    TORCH_CHECK(prompts.size() * lanes_per_source == parts_.lanes,
                "[model] prefill_packed: prompts of ", parts_.lanes, " lanes, ", lanes_per_source,
                " for each source, got ", prompts.size());
    if (!takes_unequal_prompts()) {
      return prefill(decoding::rectangle_of(prompts), lanes_per_source);
    }
    return scored(parts_.steps->prefill_packed(prompts, lanes_per_source));
  }
  bool takes_unequal_prompts() const override { return parts_.steps->takes_unequal_prompts(); }
  at::Tensor log_normalisers() const override { return normalisers_; }
  int64_t most_cache_bytes() const override { return parts_.steps->most_cache_bytes(); }

  void reorder(const std::vector<int64_t>& parents) override {
    const torch::NoGradGuard no_grad;
    parts_.steps->reorder(parents);
    parts_.lanes = static_cast<int64_t>(parents.size());
  }

  int64_t vocab_size() const override { return parts_.head->num_classes(); }

 private:
  at::Tensor scored(const at::Tensor& rows) {
    Head::Scores scores = parts_.head->scores(rows);
    normalisers_ = scores.normalisers;
    return scores.log_probs;
  }

  VocabularySteps parts_;
  at::Tensor normalisers_;
};

}  // namespace

std::unique_ptr<decoding::StepModel> steps_of_vocabulary(VocabularySteps parts) {
  return std::make_unique<StepsOfVocabulary>(std::move(parts));
}

}  // namespace stretto::models
