#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "base/random_streams.h"
#include "data/length_batches.h"
#include "data/pairs/corpus.h"
#include "data/pairs/pair_columns.h"
#include "data/pairs/stored_corpus.h"

namespace stretto::data {
namespace {

/// Draws segmentations of one side; see make_train_batches.
struct SideDraws {
  std::shared_ptr<const text::SubwordSampler> sampler = nullptr;
  int64_t most_tokens = 0;  ///< of a sequence, end-of-sentence included
  uint64_t key = 0;         ///< mix of seed and side

  /// Draws the last sequence of `side`, which ends with end-of-sentence, anew.
  void draw_last(PackedTokens& side, int64_t epoch, int64_t sample) const {
    if (sampler == nullptr) return;
    const auto last = side.sequence(side.num_sequences() - 1);
    const std::vector<int64_t> own(last.begin(), last.end() - 1);
    const auto most = std::min(2 * own.size(), static_cast<size_t>(most_tokens - 1));
    const uint64_t of_sample =
        mix64(mix64(key, static_cast<uint64_t>(epoch)), static_cast<uint64_t>(sample));
    constexpr uint64_t kDraws = 4;
    for (uint64_t draw = 0; draw < kDraws; ++draw) {
      const auto drawn = sampler->sample(own, mix64(of_sample, draw));
      if (drawn.size() > most) continue;
      const int64_t end_of_sentence = last.back();
      side.values.resize(side.values.size() - last.size());
      side.offsets.pop_back();
      side.values.insert(side.values.end(), drawn.begin(), drawn.end());
      side.values.push_back(end_of_sentence);
      side.close_sequence();
      return;
    }
  }
};

/// The draws of both sides; without samplers nothing is drawn.
struct Draws {
  SideDraws src = {}, tgt = {};
};

/// The samples of a corpus, with the segmentations that are drawn.
class PairSamples final : public LengthSamples {
 public:
  explicit PairSamples(std::shared_ptr<const Corpus> corpus, Draws draws = {})
      : corpus_(std::dynamic_pointer_cast<const StoredCorpus>(std::move(corpus))),
        draws_(std::move(draws)) {
    if (corpus_ == nullptr) throw std::invalid_argument("batches: not a corpus of open_corpus()");
  }

  const LengthRuns& runs() const override { return corpus_->order().runs(); }
  int64_t sample_at(uint64_t position) const override {
    return static_cast<int64_t>(corpus_->order().sample_at(position));
  }
  Batch empty_batch() const override { return pair_batch(); }
  void append(int64_t epoch, int64_t sample, Batch& batch) const override {
    corpus_->append(sample, batch);
    draws_.src.draw_last(source(batch), epoch, sample);
    draws_.tgt.draw_last(target(batch), epoch, sample);
  }

 private:
  std::shared_ptr<const StoredCorpus> corpus_;
  Draws draws_;
};

/// The same bound for both sides.
LengthBounds bounds_of(int64_t max_tokens, int64_t max_samples) {
  return {.max_rows = {max_tokens, max_tokens}, .max_samples = max_samples};
}

}  // namespace

std::unique_ptr<BatchSource> make_train_batches(std::shared_ptr<const Corpus> corpus,
                                                const DataOptions& options, uint64_t seed,
                                                SubwordSamplers samplers) {
  Draws draws{.src = {.sampler = std::move(samplers.src),
                      .most_tokens = options.max_src_tokens,
                      .key = mix64(seed, streams::kSourceDraws)},
              .tgt = {.sampler = std::move(samplers.tgt),
                      .most_tokens = options.max_tgt_tokens,
                      .key = mix64(seed, streams::kTargetDraws)}};
  auto bounds = bounds_of(options.max_tokens, options.max_samples);
  bounds.too_long = [max_tokens = options.max_tokens](std::span<const uint32_t> lengths) {
    return Error(ExitCode::kUsage,
                 "data.max_tokens = " + std::to_string(max_tokens) +
                     " is too small for a pair of " + std::to_string(lengths[kSource]) + " and " +
                     std::to_string(lengths[kTarget]) + " tokens",
                 "raise data.max_tokens, or lower data.max_src_tokens and data.max_tgt_tokens");
  };
  return make_length_batches(std::make_shared<PairSamples>(std::move(corpus), std::move(draws)),
                             bounds, Shuffle::kEachEpoch, seed);
}

std::unique_ptr<BatchSource> make_eval_batches(std::shared_ptr<const Corpus> corpus,
                                               int64_t max_tokens, int64_t max_samples) {
  return make_length_batches(std::make_shared<PairSamples>(std::move(corpus)),
                             bounds_of(max_tokens, max_samples), Shuffle::kNo, 0);
}

}  // namespace stretto::data
