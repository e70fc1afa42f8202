#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "decoding/step_model.h"
#include "families/language_model/engine/generator.h"
#include "text/tokenizer.h"

namespace stretto::testing {

/// A language in which each word has one that follows it: "the cat sat on mat ." and its end.
/// Another word may come with a small probability.
class ScriptedModel : public decoding::StepModel {
 public:
  static constexpr int64_t kEnd = 3, kSize = 10;

  ScriptedModel(int64_t lanes, bool packs) : lanes_(static_cast<size_t>(lanes)), packs_(packs) {}

  static std::shared_ptr<const text::Tokenizer> tokenizer() {
    return text::make_vocabulary("the\ncat\nsat\non\nmat\n.\n", "words");
  }
  /// In front of a text stands the end of the one before it, as in a stream of texts.
  static tasks::GeneratingModel generating(bool packs = true, int64_t max_length = 64) {
    return {.start =
                [packs](int64_t sources, int64_t lanes_per_source) {
                  return std::make_unique<ScriptedModel>(sources * lanes_per_source, packs);
                },
            .max_length = max_length,
            .before = {kEnd}};
  }

  at::Tensor step(const at::Tensor& tokens) override {
    for (size_t i = 0; i < lanes_.size(); ++i) {
      lanes_[i] = tokens[static_cast<int64_t>(i)].item<int64_t>();
    }
    return next();
  }
  at::Tensor prefill(const at::Tensor& prompts, int64_t lanes_per_source) override {
    EXPECT_FALSE(packs_);
    return step(prompts.select(1, prompts.size(1) - 1).repeat_interleave(lanes_per_source));
  }
  at::Tensor prefill_packed(const decoding::PackedPrompts& prompts,
                            int64_t lanes_per_source) override {
    if (!packs_) return StepModel::prefill_packed(prompts, lanes_per_source);
    size_t lane = 0, end = 0;
    for (const int64_t length : prompts.lengths) {
      end += static_cast<size_t>(length);
      for (int64_t k = 0; k < lanes_per_source; ++k) lanes_[lane++] = prompts.ids[end - 1];
    }
    return next();
  }
  bool takes_unequal_prompts() const override { return packs_; }
  void reorder(const std::vector<int64_t>& parents) override {
    std::vector<int64_t> lanes;
    for (const int64_t parent : parents) lanes.push_back(lanes_.at(static_cast<size_t>(parent)));
    lanes_ = lanes;
  }
  int64_t vocab_size() const override { return kSize; }

 private:
  at::Tensor next() const {
    at::Tensor logits = at::zeros({static_cast<int64_t>(lanes_.size()), kSize});
    for (size_t i = 0; i < lanes_.size(); ++i) {
      const int64_t last = lanes_[i];
      const int64_t following = last == kEnd ? 4 : last == kSize - 1 ? kEnd : last + 1;
      logits[static_cast<int64_t>(i)][following] = 4;
    }
    return at::log_softmax(logits, 1);
  }

  std::vector<int64_t> lanes_;  ///< the last token of each
  bool packs_;
};

}  // namespace stretto::testing
