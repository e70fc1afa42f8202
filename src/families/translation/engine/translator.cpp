#include "families/translation/engine/translator.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "families/translation/engine/ensemble_loss.h"

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
    : models_(std::move(models)),
      options_(std::move(options)),
      searches_(models_.front()->parameters().front().device()) {
  max_length_ = std::numeric_limits<int64_t>::max();
  for (const auto& model : models_) {
    model->eval();
    max_length_ = std::min(max_length_, model->max_target_length());
  }
}

// Numbers of the requests of each search, longest sources first.
std::vector<std::vector<size_t>> Translator::cut_into_batches(
    const std::vector<TranslationRequest>& requests, const data::RankBatches& share) const {
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // The memory that the search needs shows at once, and searches side by side end together.
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return requests[a].src.size() > requests[b].src.size();
  });
  const auto budget = static_cast<size_t>(std::max<int64_t>(1, options_.max_tokens));
  std::vector<std::vector<size_t>> batches;
  int64_t number = 0;
  for (size_t begin = 0; begin < order.size(); ++number) {
    size_t end = begin, tokens = 0;
    for (; end < order.size(); ++end) {
      tokens += requests[order[end]].src.size() * static_cast<size_t>(options_.beam_size);
      if (end > begin && tokens > budget) break;
    }
    const std::span<const size_t> batch = std::span(order).subspan(begin, end - begin);
    if (number % share.size == share.rank) batches.emplace_back(batch.begin(), batch.end());
    begin = end;
  }
  return batches;
}

std::vector<std::vector<decoding::Hypothesis>> Translator::translate(
    const std::vector<TranslationRequest>& requests, const data::RankBatches& share,
    const std::function<void()>& before_step) {
  const auto batches = cut_into_batches(requests, share);
  std::vector<std::vector<decoding::Hypothesis>> results(requests.size());
  const auto step = [&] {
    if (before_step) before_step();
  };
  searches_.run(std::ssize(batches), [&](int64_t number) {
    const auto& batch = batches[static_cast<size_t>(number)];
    auto found = search_batch(requests, batch, [&] { searches_.exclusively(step); });
    for (size_t k = 0; k < batch.size(); ++k) results[batch[k]] = std::move(found[k]);
    searches_.exclusively([&] {
      ++num_batches_;
      num_sentences_ += std::ssize(batch);
    });
  });
  return results;
}

std::vector<std::vector<decoding::Hypothesis>> Translator::search_batch(
    const std::vector<TranslationRequest>& requests, std::span<const size_t> numbers,
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
  for (const size_t number : numbers) {
    const auto& request = requests[number];
    src.append(request.src);
    input.src_lengths.push_back(static_cast<int64_t>(request.src.size()));
    input.sentence_ids.push_back(request.sentence_id);
    input.prefixes.push_back(request.prefix);
  }
  const auto model = start_together(models_, src, options_.beam_size);
  Accompanied accompanied(*model, before_step);
  return decoding::search(accompanied, input, options_);
}

}  // namespace stretto::tasks
