#include "tasks/translator.h"

#include <algorithm>
#include <numeric>

#include "decoding/ensemble.h"
#include "text/tokenizer.h"

namespace stretto::tasks {
namespace {

std::unique_ptr<decoding::StepModel> start_all(
    const std::vector<std::shared_ptr<models::Seq2SeqModel>>& models, const data::PackedTokens& src,
    int64_t lanes) {
  if (models.size() == 1) return models.front()->start(src, lanes);
  std::vector<std::unique_ptr<decoding::StepModel>> members;
  for (const auto& model : models) members.push_back(model->start(src, lanes));
  return std::make_unique<decoding::EnsembleStepModel>(std::move(members));
}

}  // namespace

Translator::Translator(std::vector<std::shared_ptr<models::Seq2SeqModel>> models,
                       decoding::DecodeOptions options)
    : models_(std::move(models)), options_(std::move(options)) {
  for (const auto& model : models_) model->eval();
}

std::vector<std::vector<decoding::Hypothesis>> Translator::translate(
    const std::vector<TranslationRequest>& requests) {
  const torch::NoGradGuard no_grad;
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // Longest first: the memory that the search needs shows at once.
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return requests[a].src.size() > requests[b].src.size();
  });
  std::vector<std::vector<decoding::Hypothesis>> results(requests.size());
  const auto budget = static_cast<size_t>(std::max<int64_t>(1, options_.max_tokens));
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin, tokens = 0;
    data::PackedTokens src;
    decoding::SearchInput input{.src_lengths = {},
                                .sentence_ids = {},
                                .prefixes = {},
                                .pad = text::kPad,
                                .bos = text::kBos,
                                .eos = text::kEos};
    while (end < order.size()) {
      const auto& request = requests[order[end]];
      tokens += request.src.size() * static_cast<size_t>(options_.beam_size);
      if (end > begin && tokens > budget) break;
      src.ids.insert(src.ids.end(), request.src.begin(), request.src.end());
      src.offsets.push_back(static_cast<int32_t>(src.ids.size()));
      input.src_lengths.push_back(static_cast<int64_t>(request.src.size()));
      input.sentence_ids.push_back(request.sentence_id);
      input.prefixes.push_back(request.prefix);
      ++end;
    }
    const auto model = start_all(models_, src, options_.beam_size);
    auto found = decoding::search(*model, input, options_);
    for (size_t i = begin; i < end; ++i) results[order[i]] = std::move(found[i - begin]);
    begin = end;
  }
  return results;
}

}  // namespace stretto::tasks
