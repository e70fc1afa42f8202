#include "data/speech/speech_batches.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

namespace stretto::data {
namespace {

constexpr double kHundredths = 100;

/// Rounded up. What is a multiple but for an error of rounding is one.
uint32_t rounded_up(double value) {
  constexpr double kMost = std::numeric_limits<uint32_t>::max();
  return static_cast<uint32_t>(std::clamp(std::ceil(value - 1e-6), 1.0, kMost));
}

class BatchedUtterances final : public LengthSamples {
 public:
  BatchedUtterances(UtteranceSamples samples, const UtteranceBatchOptions& options)
      : samples_(std::move(samples)) {
    const size_t size = samples_.ids.size();
    if (size == 0) throw std::invalid_argument("utterance batches: there are no samples");
    if (samples_.seconds.size() != size ||
        std::cmp_not_equal(samples_.targets.num_sequences(), size)) {
      throw std::invalid_argument(
          "utterance batches: each sample has an id, a length and a sequence of targets");
    }
    std::vector<std::vector<uint32_t>> lengths(options.max_frames > 0 ? 2 : 1);
    for (const double seconds : samples_.seconds) {
      const double bucket = bucketed(seconds, options.bucket_seconds);
      lengths[0].push_back(rounded_up(bucket * kHundredths));
      if (options.max_frames > 0) lengths[1].push_back(rounded_up(bucket / options.frame_seconds));
    }
    order_ = order_by_length(lengths);
  }

  const LengthRuns& runs() const override { return order_.runs; }
  int64_t sample_at(uint64_t position) const override {
    return samples_.ids[order_.samples[position]];
  }
  Batch empty_batch() const override {
    return {.sample_ids = {}, .columns = {PackedTokens{}, PackedTokens{}}};
  }
  void append(int64_t /*epoch*/, int64_t sample, Batch& batch) const override {
    const auto found = std::lower_bound(samples_.ids.begin(), samples_.ids.end(), sample);
    const int64_t place = found - samples_.ids.begin();
    const double seconds = samples_.seconds[static_cast<size_t>(place)];
    batch.sample_ids.push_back(sample);
    batch.column<int64_t>(kUtteranceTarget).append(samples_.targets.sequence(place));
    batch.column<int64_t>(kUtteranceLength).append({int64_t{rounded_up(seconds * kHundredths)}});
  }

 private:
  static double bucketed(double seconds, double bucket) {
    return bucket > 0 ? bucket * rounded_up(seconds / bucket) : seconds;
  }

  UtteranceSamples samples_;
  LengthOrder order_;
};

}  // namespace

std::unique_ptr<BatchSource> make_utterance_batches(UtteranceSamples samples,
                                                    const UtteranceBatchOptions& options) {
  auto batched = std::make_shared<const BatchedUtterances>(std::move(samples), options);
  LengthBounds bounds{.max_rows = {rounded_up(options.batch_seconds * kHundredths)},
                      .max_samples = options.max_samples};
  if (options.max_frames > 0) bounds.max_rows.push_back(options.max_frames);
  return make_length_batches(std::move(batched), bounds, options.shuffle, options.seed);
}

}  // namespace stretto::data
