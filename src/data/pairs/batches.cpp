#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "data/pairs/corpus.h"
#include "data/pairs/mapped_corpus.h"
#include "data/pairs/pair_columns.h"

namespace stretto::data {
namespace {

struct Limits {
  int64_t max_tokens = 0;
  int64_t max_samples = 0;  ///< 0 = any number
};

enum class Overlong { kError, kAlone };

/// Draws segmentations of one side; see make_train_batches.
struct SideDraws {
  std::shared_ptr<const text::SubwordSampler> sampler = nullptr;
  int64_t most_tokens = 0;  ///< of a sequence, end-of-sentence included
  uint64_t key = 0;         ///< mix of seed and side

  /// The last sequence of `side`, which ends with end-of-sentence, anew.
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

/// Of both sides; without samplers nothing is drawn.
struct Draws {
  SideDraws src = {}, tgt = {};
};

/// First position of each batch in the length order, and the end: greedy, from short to long. Runs
/// of equal lengths are cut by division, so that this costs O(runs + batches), not O(samples).
std::vector<uint64_t> cut_batches(std::span<const LengthRun> runs, const Limits& limits,
                                  Overlong overlong) {
  std::vector<uint64_t> starts{0};
  int64_t src = 0, tgt = 0, samples = 0;
  for (size_t r = 0; r + 1 < runs.size(); ++r) {
    const int64_t src_len = runs[r].src_len, tgt_len = runs[r].tgt_len;
    uint64_t position = runs[r].begin;
    while (position < runs[r + 1].begin) {
      auto take = static_cast<int64_t>(runs[r + 1].begin - position);
      take = std::min(take, (limits.max_tokens - src) / src_len);
      take = std::min(take, (limits.max_tokens - tgt) / tgt_len);
      if (limits.max_samples > 0) take = std::min(take, limits.max_samples - samples);
      if (take <= 0 && samples > 0) {
        starts.push_back(position);
        src = tgt = samples = 0;
        continue;
      }
      if (take <= 0 && overlong == Overlong::kError) {
        throw Error(ExitCode::kUsage,
                    "data.max_tokens = " + std::to_string(limits.max_tokens) +
                        " is too small for a pair of " + std::to_string(src_len) + " and " +
                        std::to_string(tgt_len) + " tokens",
                    "raise data.max_tokens, or lower data.max_src_tokens and data.max_tgt_tokens");
      }
      take = std::max<int64_t>(take, 1);
      src += take * src_len;
      tgt += take * tgt_len;
      samples += take;
      position += static_cast<uint64_t>(take);
    }
  }
  if (samples > 0) starts.push_back(runs.back().begin);
  return starts;
}

/// Batches cut from the length order. With a shuffle, equal lengths change places each epoch, and
/// so do the batches; where the batches are cut does not depend on the epoch.
class LengthBatches final : public BatchSource {
 public:
  enum class Shuffle { kNo, kEachEpoch };

  LengthBatches(std::shared_ptr<const Corpus> corpus, const Limits& limits, Overlong overlong,
                Shuffle shuffle, uint64_t seed, Draws draws = {})
      : corpus_(std::dynamic_pointer_cast<const MappedCorpus>(std::move(corpus))),
        shuffle_(shuffle),
        seed_(seed),
        draws_(std::move(draws)) {
    if (corpus_ == nullptr) throw std::invalid_argument("batches: not a corpus of open_corpus()");
    starts_ = cut_batches(corpus_->order().runs(), limits, overlong);
  }

  int64_t num_batches() const override { return static_cast<int64_t>(starts_.size()) - 1; }

  Batch load(int64_t epoch, int64_t index) const override {
    Batch batch = pair_batch();
    visit(epoch, index, [&](int64_t sample) {
      corpus_->append(sample, batch);
      draws_.src.draw_last(source(batch), epoch, sample);
      draws_.tgt.draw_last(target(batch), epoch, sample);
    });
    return batch;
  }

  std::vector<int64_t> sample_ids(int64_t epoch, int64_t index) const override {
    std::vector<int64_t> ids;
    visit(epoch, index, [&](int64_t sample) { ids.push_back(sample); });
    return ids;
  }

 private:
  /// The samples of a batch in their order.
  template <class Take>
  void visit(int64_t epoch, int64_t index, const Take& take) const {
    if (index < 0 || index >= num_batches()) {
      throw std::out_of_range("batch " + std::to_string(index) + " of " +
                              std::to_string(num_batches()));
    }
    const uint64_t key = mix64(seed_, static_cast<uint64_t>(epoch));
    auto cut = static_cast<uint64_t>(index);
    if (shuffle_ == Shuffle::kEachEpoch) {
      cut = Permutation(static_cast<uint64_t>(num_batches()), key)(cut);
    }
    const auto runs = corpus_->order().runs();
    size_t run = run_at(starts_[cut]);
    for (uint64_t position = starts_[cut]; position < starts_[cut + 1]; ++position) {
      while (runs[run + 1].begin <= position) ++run;
      const uint64_t place = shuffled(position, run, key);
      take(static_cast<int64_t>(corpus_->order().sample_at(place)));
    }
  }

  size_t run_at(uint64_t position) const {
    const auto runs = corpus_->order().runs();
    const auto after =
        std::upper_bound(runs.begin(), runs.end(), position,
                         [](uint64_t value, const LengthRun& run) { return value < run.begin; });
    return static_cast<size_t>(after - runs.begin()) - 1;
  }

  uint64_t shuffled(uint64_t position, size_t run, uint64_t key) const {
    if (shuffle_ == Shuffle::kNo) return position;
    const auto runs = corpus_->order().runs();
    const uint64_t begin = runs[run].begin, size = runs[run + 1].begin - begin;
    return begin + Permutation(size, mix64(key, run))(position - begin);
  }

  std::shared_ptr<const MappedCorpus> corpus_;
  std::vector<uint64_t> starts_;
  Shuffle shuffle_;
  uint64_t seed_;
  Draws draws_;
};

}  // namespace

std::unique_ptr<BatchSource> make_train_batches(std::shared_ptr<const Corpus> corpus,
                                                const DataOptions& options, uint64_t seed,
                                                SubwordSamplers samplers) {
  // Streams of their own beside the order of data, whose keys are mix64(seed, epoch).
  constexpr uint64_t kSourceDraws = uint64_t{1} << 62, kTargetDraws = kSourceDraws + 1;
  Draws draws{.src = {.sampler = std::move(samplers.src),
                      .most_tokens = options.max_src_tokens,
                      .key = mix64(seed, kSourceDraws)},
              .tgt = {.sampler = std::move(samplers.tgt),
                      .most_tokens = options.max_tgt_tokens,
                      .key = mix64(seed, kTargetDraws)}};
  return std::make_unique<LengthBatches>(
      std::move(corpus),
      Limits{.max_tokens = options.max_tokens, .max_samples = options.max_samples},
      Overlong::kError, LengthBatches::Shuffle::kEachEpoch, seed, std::move(draws));
}

std::unique_ptr<BatchSource> make_eval_batches(std::shared_ptr<const Corpus> corpus,
                                               int64_t max_tokens, int64_t max_samples) {
  return std::make_unique<LengthBatches>(
      std::move(corpus), Limits{.max_tokens = max_tokens, .max_samples = max_samples},
      Overlong::kAlone, LengthBatches::Shuffle::kNo, 0);
}

}  // namespace stretto::data
