#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decoding/generation_options.h"
#include "decoding/search.h"
#include "decoding/step_model.h"
#include "tasks/cost_batches.h"
#include "text/tokenizer.h"

namespace stretto::tasks {

/// A language model, or an ensemble of some, as generation sees it.
struct GeneratingModel {
  /// Lanes for so many prompts: models::CausalModel::start, for instance.
  std::function<std::unique_ptr<decoding::StepModel>(int64_t sources, int64_t lanes_per_source)>
      start;
  int64_t max_length = std::numeric_limits<int64_t>::max();  ///< positions
  /// Ids in front of each prompt. Where there are none, an empty prompt cannot be continued.
  std::vector<int64_t> before;
  /// Whether padding and beginning-of-sentence may be written like any token, as `transformers`
  /// lets them.
  bool writes_all = false;
  /// Tokens that end a text beside the tokenizer's own (`decode.end_tokens`).
  std::vector<int64_t> ends = {};
};

/// One prompt to continue.
struct GenerationRequest {
  std::vector<int64_t> prompt;  ///< with GeneratingModel::before
  int64_t line = 0;             ///< seeds sampling, so that batching changes nothing
};

/// What a model wrote behind a prompt.
struct Continuation {
  std::string text;  ///< without the prompt, and without a stop string
  std::vector<int64_t> ids;
  std::vector<float> token_log_probs;  ///< of the ids, and of the end of the text where it came
  double score = 0;                    ///< log_prob after the length penalty
  double log_prob = 0;
  decoding::OutputEnd end = decoding::OutputEnd::kToken;
};

/// Is given text of a continuation as soon as it is certain, part by part.
using TextListener = std::function<void(size_t request, const std::string& text)>;

/// Continues prompts. What it writes behind a prompt is a function of the prompt, the options, and
/// for samples of (seed, line, number of the sample): prompts of any lengths share a batch, each in
/// positions of its own, and a batch gives what each prompt would give alone. On a CPU it does so
/// to the bit, where rows of products do not depend on each other (kernels/gemm/packed_weights.h).
class Generator {
 public:
  /// @param tokenizer  outlives this object
  Generator(GeneratingModel model, const text::Tokenizer& tokenizer,
            decoding::GenerationOptions options);

  /// The ids of a prompt. Behind it there may be no room in the model: room().
  std::vector<int64_t> prompt_of(std::string_view text) const;
  /// Whether an empty prompt begins a text, by what stands in front of it.
  bool begins_texts() const { return !model_.before.empty(); }
  /// Tokens that may come behind a prompt; 0 = it is longer than the model has positions.
  int64_t room(const GenerationRequest& request) const;
  /// What a request costs: the unit of `decode.max_tokens`.
  int64_t cost(const GenerationRequest& request) const;
  CostBatchOptions batches() const;

  /// Continuations of each request: samples in the order of their numbers, hypotheses the best
  /// first. None of a sample for which every token was forbidden; one without ids and of NaN where
  /// the model gave NaN. From any thread; the caller sees to it that no gradient is asked for.
  ///
  /// @param listener  of the first continuation of each request; for samples, and beams of one
  /// @param beat      called during long work
  std::vector<std::vector<Continuation>> run(std::span<const GenerationRequest* const> requests,
                                             const TextListener& listener = {},
                                             const std::function<void()>& beat = {}) const;

  /// The most bytes of cached keys and values that a batch has taken so far.
  int64_t most_cache_bytes() const { return most_cache_bytes_; }

  using Time = std::chrono::steady_clock::time_point;
  /// When the first of all new tokens was there.
  std::optional<Time> first_token() const;

 private:
  class Watch;
  std::vector<std::vector<Continuation>> run_together(
      std::span<const GenerationRequest* const> requests, const TextListener& listener,
      const std::function<void()>& beat) const;
  void note_cache_bytes(int64_t bytes) const;
  void note_token() const;
  Continuation continuation_of(const GenerationRequest& request,
                               decoding::Hypothesis hypothesis) const;

  GeneratingModel model_;
  const text::Tokenizer& tokenizer_;
  decoding::GenerationOptions options_;
  decoding::DecodeOptions search_;
  bool packs_prompts_;
  mutable std::atomic<int64_t> most_cache_bytes_{0};
  mutable std::atomic<Time::rep> first_token_{0};  // 0: there was none
};

}  // namespace stretto::tasks
