#include "families/translation/engine/translator.h"

#include <algorithm>
#include <limits>

#include "families/translation/engine/ensemble_loss.h"
#include "train/evaluation.h"

namespace stretto::tasks {
namespace {

/// A step model that calls a function before each step.
class HookedStepModel : public decoding::StepModel {
 public:
  HookedStepModel(decoding::StepModel& inner, const std::function<void()>& before_step)
      : inner_(inner), before_step_(before_step) {}

  at::Tensor step(const at::Tensor& tokens) override {
    if (before_step_) before_step_();
    return inner_.step(tokens);
  }
  void reorder(const std::vector<int64_t>& parents) override { inner_.reorder(parents); }
  at::Tensor log_normalisers() const override { return inner_.log_normalisers(); }
  int64_t vocab_size() const override { return inner_.vocab_size(); }

 private:
  decoding::StepModel& inner_;
  const std::function<void()>& before_step_;
};

}  // namespace

Translator::Translator(std::vector<std::shared_ptr<models::Seq2SeqModel>> models,
                       decoding::DecodeOptions options)
    : models_(std::move(models)), options_(std::move(options)) {
  max_length_ = std::numeric_limits<int64_t>::max();
  for (const auto& model : models_) {
    model->eval();
    max_length_ = std::min(max_length_, model->max_target_length());
  }
}

int64_t Translator::cost(const TranslationRequest& request) const {
  return std::ssize(request.src) * options_.beam_size;
}

CostBatchOptions Translator::batches() const {
  return {.order = CostOrder::kLongestFirst, .max_cost = std::max<int64_t>(1, options_.max_tokens)};
}

std::vector<std::vector<int64_t>> Translator::translate(
    const std::vector<TranslationRequest>& requests, const distributed::ProcessGroup& group) const {
  using Ids = std::vector<int64_t>;
  std::vector<int64_t> costs;
  for (const auto& request : requests) costs.push_back(cost(request));
  const auto all = cost_batches(costs, batches());
  const auto search_one = [&](int64_t number, std::vector<Ids>& outputs,
                              const std::function<void()>& look) {
    const auto& batch = all[static_cast<size_t>(number)];
    std::vector<const TranslationRequest*> members;
    for (const size_t i : batch) members.push_back(&requests[i]);
    const auto found = search(members, look);
    for (size_t k = 0; k < batch.size(); ++k) {
      if (!found[k].empty()) outputs[batch[k]] = found[k].front().ids;
    }
  };
  const at::Device device = models_.front()->parameters().front().device();
  return train::evaluate_answers<Ids>(std::ssize(all), std::ssize(requests),
                                      {.device = device, .group = group}, search_one);
}

std::vector<std::vector<decoding::Hypothesis>> Translator::search(
    std::span<const TranslationRequest* const> requests,
    const std::function<void()>& before_step) const {
  data::PackedTokens src;
  const text::SpecialIds specials = models_.front()->target_specials();
  decoding::SearchInput input{.src_lengths = {},
                              .sentence_ids = {},
                              .prefixes = {},
                              .max_length = max_length_,
                              .pad = specials.pad,
                              .bos = specials.bos,
                              .eos = specials.eos};
  for (const TranslationRequest* request : requests) {
    src.append(request->src);
    input.src_lengths.push_back(std::ssize(request->src));
    input.sentence_ids.push_back(request->sentence_id);
    input.prefixes.push_back(request->prefix);
  }
  const auto model = start_together(models_, src, options_.beam_size);
  HookedStepModel hooked_model(*model, before_step);
  return decoding::search(hooked_model, input, options_);
}

}  // namespace stretto::tasks
