// libFuzzer target: any frames and options of CTC's search. A stream in pieces gives what the whole
// gives, what was certain stays, and scores are in order.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ctc/beam.h"
#include "ctc/ctc_search.h"
#include "ctc/decoder_parts.h"
#include "text/ngram/open_ngram_model.h"

namespace {

using namespace stretto;

void require(bool fact) {
  if (!fact) std::abort();
}

/// Bytes one by one; 0 behind the last.
class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  uint8_t next() { return at_ < size_ ? data_[at_++] : 0; }
  bool empty() const { return at_ >= size_; }

 private:
  const uint8_t* data_;
  size_t size_, at_ = 0;
};

const std::string kModel =
    "\\data\\\nngram 1=6\nngram 2=4\n\n\\1-grams:\n"
    "-2.5\t<unk>\n-99\t<s>\t-0.3\n-0.9\t</s>\n-0.5\ta\t-0.2\n-0.8\tab\t-0.4\n-1.4\t|\t-0.1\n\n"
    "\\2-grams:\n-0.2\t<s> ab\n-0.4\tab a\n-1.1\ta ab\n-0.3\ta </s>\n\n\\end\\\n";

ctc::DecoderParts parts_of(Bytes& bytes) {
  ctc::DecoderParts parts;
  const uint8_t kind = bytes.next();
  parts.labels = ctc::labels_by_name(kind & 1 ? std::vector<std::string>{"a", "b", "|"}
                                              : std::vector<std::string>{"\u2581a", "b", "a"});
  parts.options.method = "beam";
  parts.options.beam_size = 1 + bytes.next() % 40;
  parts.options.beam_token = bytes.next() % 4;
  parts.options.beam_threshold = bytes.next() % 30;
  parts.options.nbest = 1 + bytes.next() % parts.options.beam_size;
  parts.options.alpha = bytes.next() / 64.0 - 1;
  parts.options.beta = bytes.next() / 32.0 - 4;
  if (kind & 2) {
    parts.lm = text::read_ngram_model(kModel, "fuzz");
    parts.lm_unit = kind & 4 ? ctc::LmUnit::kLabels : ctc::LmUnit::kWords;
  }
  if (kind & 8) {
    parts.lexicon = {{"a", {0}}, {"ab", {0, 1}}, {"also", {0}}, {"bb", {1, 1}}};
    parts.trie = text::LexiconTrie(parts.lexicon, std::vector<float>{-1, -2, -1.5, -3});
  }
  parts.tokens = {3, 4, -1, 5};
  if (kind & 16) parts.hot_words = text::HotWords(std::vector<std::string>{"ab a", "b"}, 2);
  return parts;
}

void check(const std::vector<ctc::CtcHypothesis>& whole,
           const std::vector<ctc::CtcHypothesis>& pieces, int64_t num_frames) {
  require(!whole.empty() && whole.size() == pieces.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    require(whole[i].ids == pieces[i].ids && whole[i].words == pieces[i].words);
    require(whole[i].score == pieces[i].score && !std::isnan(whole[i].score));
    require(i == 0 || whole[i - 1].score >= whole[i].score);
    int64_t before = -1;
    for (const int64_t begin : whole[i].begin_frames) {
      require(begin > before && begin < num_frames);
      before = begin;
    }
    for (const ctc::CtcWord& word : whole[i].words)
      require(word.begin_frame < word.end_frame && word.end_frame <= num_frames);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, std::min<size_t>(size, 4096));
  const ctc::DecoderParts parts = parts_of(bytes);
  std::vector<float> frames;
  while (!bytes.empty()) {
    for (int c = 0; c < 4; ++c) {
      const uint8_t value = bytes.next();
      frames.push_back(value == 255 ? -std::numeric_limits<float>::infinity()
                                    : -static_cast<float>(value) / 16);
    }
  }
  const auto num_frames = static_cast<int64_t>(frames.size() / 4);
  ctc::Beam beam(parts, nullptr);
  for (size_t t = 0; t < frames.size(); t += 4) beam.push(&frames[t]);
  const auto whole = beam.finish();
  std::vector<std::string> certain;
  for (size_t t = 0; t < frames.size(); t += 4) {
    beam.push(&frames[t]);
    if (t % 32 == 0) certain.push_back(beam.certain().text);
  }
  check(whole, beam.finish(), num_frames);
  for (const ctc::CtcHypothesis& hypothesis : whole) {
    for (const std::string& text : certain)
      require((hypothesis.text + " ").starts_with(text.empty() ? "" : text + " "));
  }
  for (size_t t = 0; t < frames.size(); t += 4) {
    beam.push(&frames[t]);
    if (t % 40 == 0) beam.settle(beam.num_frames() - 5);
  }
  require(!beam.finish().empty());
  return 0;
}
