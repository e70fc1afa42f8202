#include "decoding/shortlist_steps.h"

#include <ATen/ATen.h>

#include <limits>
#include <utility>

namespace stretto::decoding {
namespace {

class ShortlistSteps : public StepModel {
 public:
  ShortlistSteps(std::unique_ptr<StepModel> model, std::vector<std::vector<int64_t>> candidates,
                 int64_t lanes_per_source)
      : model_(std::move(model)), candidates_(std::move(candidates)) {
    for (size_t source = 0; source < candidates_.size(); ++source) {
      sources_.insert(sources_.end(), static_cast<size_t>(lanes_per_source), source);
    }
  }

  at::Tensor step(const at::Tensor& tokens) override { return among(model_->step(tokens)); }
  at::Tensor prefill(const at::Tensor& prompts, int64_t lanes_per_source) override {
    return among(model_->prefill(prompts, lanes_per_source));
  }
  at::Tensor prefill_packed(const PackedPrompts& prompts, int64_t lanes_per_source) override {
    return among(model_->prefill_packed(prompts, lanes_per_source));
  }
  bool takes_unequal_prompts() const override { return model_->takes_unequal_prompts(); }

  void reorder(const std::vector<int64_t>& parents) override {
    model_->reorder(parents);
    std::vector<size_t> sources;
    for (const int64_t parent : parents) sources.push_back(sources_[static_cast<size_t>(parent)]);
    sources_ = std::move(sources);
  }

  at::Tensor log_normalisers() const override { return normalisers_; }
  int64_t most_cache_bytes() const override { return model_->most_cache_bytes(); }
  int64_t vocab_size() const override { return model_->vocab_size(); }

 private:
  at::Tensor among(const at::Tensor& log_probs) {
    TORCH_CHECK(log_probs.size(0) == std::ssize(sources_), "[shortlist] ", sources_.size(),
                " lanes, and probabilities of ", log_probs.size(0));
    constexpr float kNone = -std::numeric_limits<float>::infinity();
    at::Tensor rows = at::full_like(log_probs, kNone);
    std::vector<at::Tensor> shares;
    for (int64_t lane = 0; lane < log_probs.size(0); ++lane) {
      const std::vector<int64_t>& ids = candidates_[sources_[static_cast<size_t>(lane)]];
      const at::Tensor row = log_probs[lane];
      if (ids.empty()) {
        rows[lane].copy_(row);
        shares.push_back(at::zeros({}, log_probs.options()));
        continue;
      }
      const at::Tensor index = at::tensor(ids, at::kLong).to(log_probs.device());
      const at::Tensor own = row.index_select(0, index);
      shares.push_back(at::logsumexp(own, 0));
      at::Tensor kept = rows[lane];
      kept.index_copy_(0, index, own - shares.back());
    }
    const at::Tensor whole = model_->log_normalisers();
    normalisers_ = whole.defined() && !shares.empty() ? whole + at::stack(shares) : at::Tensor();
    // A row that is no number at all is so at every token.
    return rows.masked_fill(log_probs.select(1, 0).isnan().unsqueeze(1),
                            std::numeric_limits<float>::quiet_NaN());
  }

  std::unique_ptr<StepModel> model_;
  std::vector<std::vector<int64_t>> candidates_;
  std::vector<size_t> sources_;  // [lanes]
  at::Tensor normalisers_;
};

}  // namespace

std::unique_ptr<StepModel> with_shortlists(std::unique_ptr<StepModel> model,
                                           std::vector<std::vector<int64_t>> candidates,
                                           int64_t lanes_per_source) {
  return std::make_unique<ShortlistSteps>(std::move(model), std::move(candidates),
                                          lanes_per_source);
}

}  // namespace stretto::decoding
