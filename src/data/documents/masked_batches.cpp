#include "data/documents/masked_batches.h"

#include <span>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "base/random_streams.h"
#include "data/length_batches.h"

namespace stretto::data {
namespace {

using streams::kEvalMasks, streams::kTrainMasks;

void append_masked(const MaskedText& text, int64_t sample, uint64_t key, Batch& batch) {
  auto& ids = tokens(batch);
  const size_t begin = ids.values.size();
  text.sequences->append(sample, ids.values, segments(batch).values);
  auto& rows = batch.column<int64_t>(kMaskedRows);
  auto& labels = batch.column<int64_t>(kMaskedLabels);
  text.masker->mask(std::span(ids.values).subspan(begin), key, rows.values, labels.values);
  ids.close_sequence();
  segments(batch).close_sequence();
  rows.close_sequence();
  labels.close_sequence();
  batch.sample_ids.push_back(sample);
}

uint64_t eval_key(uint64_t seed, int64_t sample) {
  return mix64(mix64(seed, kEvalMasks), static_cast<uint64_t>(sample));
}

class MaskedSamples final : public LengthSamples {
 public:
  /// @param each_epoch  whether masks are drawn anew in each epoch
  MaskedSamples(MaskedText text, uint64_t seed, bool each_epoch)
      : text_(std::move(text)), seed_(seed), each_epoch_(each_epoch) {}

  const LengthRuns& runs() const override { return text_.sequences->runs(); }
  int64_t sample_at(uint64_t position) const override {
    return text_.sequences->sample_at(position);
  }
  Batch empty_batch() const override { return masked_batch(); }
  void append(int64_t epoch, int64_t sample, Batch& batch) const override {
    append_masked(text_, sample, each_epoch_ ? train_key(epoch, sample) : eval_key(seed_, sample),
                  batch);
  }

 private:
  uint64_t train_key(int64_t epoch, int64_t sample) const {
    const uint64_t of_epoch = mix64(mix64(seed_, kTrainMasks), static_cast<uint64_t>(epoch));
    return mix64(of_epoch, static_cast<uint64_t>(sample));
  }

  MaskedText text_;
  uint64_t seed_;
  bool each_epoch_;
};

}  // namespace

DocumentInput input_of(const MaskedTextOptions& options, const std::vector<std::string>& paths,
                       const std::string& key, int64_t threads) {
  return {.paths = paths,
          .end = options.documents == "line" ? DocumentEnd::kLine : DocumentEnd::kBlankLine,
          .cache_dir = options.cache_dir,
          .threads = threads,
          .key = key,
          .bad_samples = bad_sample_rule(options)};
}

Packing packing_of(const MaskedTextOptions& options) {
  return options.packing == "document" ? Packing::kDocument : Packing::kPacked;
}

MaskRules mask_rules_of(const MaskedTextOptions& options) {
  return {.probability = options.mask_probability,
          .mask = options.mask_replace,
          .random = options.mask_random,
          .whole_words = options.whole_words};
}

std::unique_ptr<BatchSource> make_masked_train_batches(MaskedText text,
                                                       const MaskedTextOptions& options,
                                                       uint64_t seed) {
  LengthBounds bounds{.max_rows = {options.max_tokens}, .max_samples = options.max_samples};
  bounds.too_long = [max_tokens = options.max_tokens](std::span<const uint32_t> lengths) {
    return Error(ExitCode::kUsage,
                 "data.max_tokens = " + std::to_string(max_tokens) +
                     " is too small for a sequence of " + std::to_string(lengths[0]) + " tokens",
                 "raise data.max_tokens, or lower data.max_text_tokens");
  };
  return make_length_batches(std::make_shared<MaskedSamples>(std::move(text), seed, true), bounds,
                             Shuffle::kEachEpoch, seed);
}

std::unique_ptr<BatchSource> make_masked_eval_batches(MaskedText text, int64_t max_tokens,
                                                      int64_t max_samples, uint64_t seed) {
  return make_length_batches(std::make_shared<MaskedSamples>(std::move(text), seed, false),
                             {.max_rows = {max_tokens}, .max_samples = max_samples}, Shuffle::kNo,
                             seed);
}

Batch masked_eval_sample(const MaskedText& text, int64_t sample, uint64_t seed) {
  Batch batch = masked_batch();
  append_masked(text, sample, eval_key(seed, sample), batch);
  return batch;
}

}  // namespace stretto::data
