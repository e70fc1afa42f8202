#include "ctc/ctc_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/error.h"
#include "ctc/beam.h"
#include "ctc/decoder_parts.h"
#include "ctc/greedy.h"

namespace stretto::ctc {

CtcDecoder::CtcDecoder(CtcLabels labels, CtcOptions options, const text::Speller& spell,
                       const std::filesystem::path& cache_dir)
    : parts_(std::make_unique<const DecoderParts>(
          make_decoder_parts(std::move(labels), std::move(options), spell, cache_dir))) {}
CtcDecoder::~CtcDecoder() = default;
CtcDecoder::CtcDecoder(CtcDecoder&&) noexcept = default;

const CtcLabels& CtcDecoder::labels() const {
  return parts_->labels;
}
const CtcOptions& CtcDecoder::options() const {
  return parts_->options;
}
int64_t CtcDecoder::num_lexicon_words() const {
  return static_cast<int64_t>(parts_->lexicon.size());
}
int64_t CtcDecoder::num_left_out() const {
  return parts_->num_left_out;
}

std::vector<CtcHypothesis> CtcDecoder::decode(std::span<const float> log_probs) const {
  CtcSearch search(*this);
  search.push(log_probs);
  return search.finish();
}

/// Either method.
class CtcSearch::Impl {
 public:
  Impl(const DecoderParts& parts, decoding::TokenScorer* scorer)
      : parts_(parts), is_beam_(parts.options.method == "beam") {
    if (scorer != nullptr && (!is_beam_ || parts.lm != nullptr)) {
      throw std::invalid_argument(
          "[ctc] a scorer takes the place of decode.lm, with decode.method = \"beam\"");
    }
    if (is_beam_) beam_.emplace(parts, scorer);
    if (!is_beam_) greedy_.emplace(parts);
  }

  void push(std::span<const float> log_probs) {
    const auto width = static_cast<size_t>(parts_.num_labels()) + 1;
    if (log_probs.size() % width != 0) {
      throw std::invalid_argument("[ctc] log_probs must be [T, " + std::to_string(width) +
                                  "], got " + std::to_string(log_probs.size()) + " numbers");
    }
    for (size_t begin = 0; begin < log_probs.size(); begin += width) {
      const std::span<const float> frame = log_probs.subspan(begin, width);
      check(frame);
      if (is_beam_) {
        beam_->push(frame.data());
      } else {
        greedy_->push(frame.data());
      }
    }
  }

  int64_t num_frames() const { return is_beam_ ? beam_->num_frames() : greedy_->num_frames(); }
  CtcHypothesis best_so_far() const {
    return is_beam_ ? beam_->best_so_far() : greedy_->hypothesis(false);
  }
  CtcHypothesis certain() const { return is_beam_ ? beam_->certain() : greedy_->hypothesis(true); }
  void settle(int64_t before_frame) {
    if (is_beam_) beam_->settle(before_frame);
  }
  std::vector<CtcHypothesis> finish() {
    if (is_beam_) return beam_->finish();
    std::vector<CtcHypothesis> made;
    made.push_back(greedy_->hypothesis(false));
    greedy_.emplace(parts_);
    return made;
  }

 private:
  void check(std::span<const float> frame) const {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const bool is_right =
        std::all_of(frame.begin(), frame.end(), [](float value) { return value < kInfinity; });
    if (is_right) return;
    throw Error(ExitCode::kNumeric,
                "frame " + std::to_string(num_frames()) +
                    ": the model's log-probabilities are NaN or infinite",
                "its weights or the sound are not finite numbers: look at both");
  }

  const DecoderParts& parts_;
  const bool is_beam_;
  std::optional<Beam> beam_;
  std::optional<Greedy> greedy_;
};

CtcSearch::CtcSearch(const CtcDecoder& decoder, decoding::TokenScorer* scorer)
    : impl_(std::make_unique<Impl>(decoder.parts(), scorer)) {}
CtcSearch::~CtcSearch() = default;
CtcSearch::CtcSearch(CtcSearch&&) noexcept = default;

void CtcSearch::push(std::span<const float> log_probs) {
  impl_->push(log_probs);
}
int64_t CtcSearch::num_frames() const {
  return impl_->num_frames();
}
CtcHypothesis CtcSearch::best_so_far() const {
  return impl_->best_so_far();
}
CtcHypothesis CtcSearch::certain() const {
  return impl_->certain();
}
void CtcSearch::settle(int64_t before_frame) {
  impl_->settle(before_frame);
}
std::vector<CtcHypothesis> CtcSearch::finish() {
  return impl_->finish();
}

}  // namespace stretto::ctc
