#include "data/documents/stretches.h"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "base/random.h"

namespace stretto::data {
namespace {

class Stretches final : public LengthSamples {
 public:
  Stretches(std::shared_ptr<const Documents> documents, const StretchSetting& setting)
      : documents_(std::move(documents)),
        length_(static_cast<uint64_t>(setting.length)),
        random_start_(setting.random_start),
        seed_(setting.seed) {
    const uint64_t full = documents_->num_ids() / length_;
    const auto rows_of_rest = static_cast<uint32_t>(documents_->num_ids() % length_);
    const auto rows_of_full = static_cast<uint32_t>(length_);
    has_rest_ = rows_of_rest > 0;
    if (has_rest_) runs_.add({&rows_of_rest, 1}, 1);
    if (full > 0) runs_.add({&rows_of_full, 1}, runs_.begins.back() + full);
  }

  const LengthRuns& runs() const override { return runs_; }
  /// The stretch that is not full is the last one, and comes first in the order of lengths.
  int64_t sample_at(uint64_t position) const override {
    if (!has_rest_) return static_cast<int64_t>(position);
    return static_cast<int64_t>(position == 0 ? runs_.begins.back() - 1 : position - 1);
  }
  Batch empty_batch() const override { return stream_batch(); }
  void append(int64_t epoch, int64_t sample, Batch& batch) const override {
    const uint64_t all = documents_->num_ids();
    const uint64_t place = static_cast<uint64_t>(sample) * length_;
    const uint64_t tokens = std::min(length_, all - place);
    const uint64_t begin = (start_of(epoch) + place) % all;
    append_stretch(*documents_, {begin, begin + tokens}, sample, batch);
  }

 private:
  /// The token that the first stretch of an epoch begins with.
  uint64_t start_of(int64_t epoch) const {
    if (!random_start_) return 0;
    return RandomStream(mix64(seed_, static_cast<uint64_t>(epoch)), kStarts)
        .below(documents_->num_ids());
  }

  // Apart from what else is drawn from (seed, epoch).
  static constexpr uint64_t kStarts = 0x7374'6172'7473;  // "starts"

  std::shared_ptr<const Documents> documents_;
  uint64_t length_;
  bool random_start_;
  uint64_t seed_;
  bool has_rest_ = false;
  LengthRuns runs_;
};

}  // namespace

std::unique_ptr<BatchSource> make_stretches(std::shared_ptr<const Documents> documents,
                                            const StretchSetting& setting) {
  if (setting.length < 1) throw std::invalid_argument("a stretch has at least one token");
  LengthBounds bounds{.max_rows = {setting.max_tokens}, .max_samples = setting.max_samples};
  bounds.too_long = [max_tokens = setting.max_tokens](std::span<const uint32_t> lengths) {
    return Error(ExitCode::kUsage,
                 "data.max_tokens = " + std::to_string(max_tokens) +
                     " is too small for a stretch of " + std::to_string(lengths[0]) + " tokens",
                 "raise data.max_tokens, or make stretches shorter");
  };
  auto stretches = std::make_shared<Stretches>(std::move(documents), setting);
  return make_length_batches(std::move(stretches), bounds, setting.shuffle, setting.seed);
}

}  // namespace stretto::data
