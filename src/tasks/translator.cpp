#include "tasks/translator.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "tasks/ensemble_loss.h"
#include "text/tokenizer.h"

namespace stretto::tasks {
namespace {

/// A step model that calls a function before each step.
class Accompanied : public decoding::StepModel {
 public:
  Accompanied(decoding::StepModel& inner, const std::function<void()>& before_step)
      : inner_(inner), before_step_(before_step) {}

  at::Tensor step(const at::Tensor& tokens) override {
    if (before_step_) before_step_();
    return inner_.step(tokens);
  }
  void reorder(const std::vector<int64_t>& parents) override { inner_.reorder(parents); }
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

std::vector<std::vector<decoding::Hypothesis>> Translator::translate(
    const std::vector<TranslationRequest>& requests, const data::Share& share,
    const std::function<void()>& before_step) {
  const torch::NoGradGuard no_grad;
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // Longest first: the memory that the search needs shows at once.
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return requests[a].src.size() > requests[b].src.size();
  });
  std::vector<std::vector<decoding::Hypothesis>> results(requests.size());
  const auto budget = static_cast<size_t>(std::max<int64_t>(1, options_.max_tokens));
  int64_t number = 0;  // of the batch
  for (size_t begin = 0; begin < order.size(); ++number) {
    size_t end = begin, tokens = 0;
    for (; end < order.size(); ++end) {
      tokens += requests[order[end]].src.size() * static_cast<size_t>(options_.beam_size);
      if (end > begin && tokens > budget) break;
    }
    if (number % share.size == share.rank) {
      auto found =
          search_batch(requests, std::span(order).subspan(begin, end - begin), before_step);
      for (size_t i = begin; i < end; ++i) results[order[i]] = std::move(found[i - begin]);
    }
    begin = end;
  }
  return results;
}

std::vector<std::vector<decoding::Hypothesis>> Translator::search_batch(
    const std::vector<TranslationRequest>& requests, std::span<const size_t> numbers,
    const std::function<void()>& before_step) {
  ++num_batches_;
  data::PackedTokens src;
  decoding::SearchInput input{.src_lengths = {},
                              .sentence_ids = {},
                              .prefixes = {},
                              .max_length = max_length_,
                              .pad = text::kPad,
                              .bos = text::kBos,
                              .eos = text::kEos};
  for (const size_t number : numbers) {
    const auto& request = requests[number];
    src.ids.insert(src.ids.end(), request.src.begin(), request.src.end());
    src.offsets.push_back(static_cast<int32_t>(src.ids.size()));
    input.src_lengths.push_back(static_cast<int64_t>(request.src.size()));
    input.sentence_ids.push_back(request.sentence_id);
    input.prefixes.push_back(request.prefix);
  }
  const auto model = start_together(models_, src, options_.beam_size);
  Accompanied accompanied(*model, before_step);
  return decoding::search(accompanied, input, options_);
}

}  // namespace stretto::tasks
