#include "data/labelled/labelled_encoder.h"

#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/random.h"
#include "base/system_info.h"
#include "data/chunk_pipeline.h"

namespace stretto::data {
namespace {

constexpr size_t kChunkSamples = 2048;
constexpr size_t kEncodedChunkBytes = size_t{256} << 10;

/// Consecutive samples, and what became of them.
struct SampleChunk {
  std::string text;  ///< of each sample two texts, one after the other
  std::vector<size_t> ends;
  std::vector<int64_t> labels;
  std::vector<size_t> label_ends;
  std::vector<float> values;
  std::vector<int64_t> ids, segments;  ///< of all samples
  std::vector<size_t> id_ends;
  std::vector<int64_t> cut;  ///< [samples] tokens

  void clear() {
    text.clear();
    ends.clear();
    labels.clear();
    label_ends.clear();
    values.clear();
    ids.clear();
    segments.clear();
    id_ends.clear();
    cut.clear();
  }
  size_t size() const { return values.size(); }
};

template <class T>
uint64_t hash_after(uint64_t before, std::span<const T> values) {
  return mix64(before, xxh3_64(values.data(), values.size_bytes()));
}

template <class T>
std::span<const T> slice(const std::vector<T>& values, const std::vector<size_t>& ends, size_t i) {
  const size_t begin = i == 0 ? 0 : ends[i - 1];
  return {values.data() + begin, ends[i] - begin};
}

}  // namespace

struct LabelledEncoder::State {
  State(const LabelledOptions& options, const text::Tokenizer& tokenizer, bool has_values,
        Sink given)
      : has_pairs(!options.text2.empty()),
        has_values(has_values),
        unknown(tokenizer.specials().unk),
        encoder(tokenizer, text_bound_of(options)),
        sink(std::move(given)),
        pipeline(
            usable_cores(), [this](SampleChunk& chunk) { encode(chunk); },
            [this](SampleChunk& chunk) { hand_back(chunk); }) {}

  /// Runs on the threads.
  void encode(SampleChunk& chunk) const {
    size_t begin = 0;
    for (size_t i = 0; i < chunk.size(); ++i) {
      const std::string_view all(chunk.text);
      const size_t middle = chunk.ends[2 * i], end = chunk.ends[2 * i + 1];
      const auto first = all.substr(begin, middle - begin);
      const auto text = has_pairs ? encoder.encode(first, all.substr(middle, end - middle))
                                  : encoder.encode(first);
      begin = end;
      chunk.ids.insert(chunk.ids.end(), text.ids.begin(), text.ids.end());
      chunk.segments.insert(chunk.segments.end(), text.segments.begin(), text.segments.end());
      chunk.id_ends.push_back(chunk.ids.size());
      chunk.cut.push_back(text.num_cut);
    }
  }

  void hand_back(const SampleChunk& chunk) {
    for (size_t i = 0; i < chunk.size(); ++i) {
      const EncodedSample sample{.ids = slice(chunk.ids, chunk.id_ends, i),
                                 .segments = slice(chunk.segments, chunk.id_ends, i),
                                 .labels = slice(chunk.labels, chunk.label_ends, i),
                                 .value = chunk.values[i]};
      count(sample, chunk.cut[i]);
      sink(sample);
    }
  }

  void count(const EncodedSample& sample, int64_t cut) {
    counts.hash = hash_after(counts.hash, sample.ids);
    counts.hash = hash_after(counts.hash, sample.segments);
    counts.hash = has_values ? hash_after<float>(counts.hash, {&sample.value, 1})
                             : hash_after(counts.hash, sample.labels);
    for (const int64_t id : sample.ids) counts.unknown += id == unknown && unknown >= 0 ? 1 : 0;
    counts.cut_samples += cut > 0 ? 1 : 0;
    counts.cut_tokens += cut;
  }

  const bool has_pairs, has_values;
  const int64_t unknown;
  const text::TextEncoder encoder;
  const Sink sink;
  LabelledCounts counts;
  SampleChunk* filling = nullptr;
  ChunkPipeline<SampleChunk> pipeline;  ///< the last: its threads use the others
};

LabelledEncoder::LabelledEncoder(const LabelledOptions& options, const text::Tokenizer& tokenizer,
                                 const Labels* labels, Sink sink)
    : state_(std::make_unique<State>(options, tokenizer, labels == nullptr, std::move(sink))) {}
LabelledEncoder::~LabelledEncoder() = default;

void LabelledEncoder::add(std::string_view text, std::string_view text2,
                          std::span<const int64_t> labels, double value) {
  State& state = *state_;
  if (state.filling == nullptr) state.filling = &state.pipeline.acquire();
  SampleChunk& chunk = *state.filling;
  chunk.text += text;
  chunk.ends.push_back(chunk.text.size());
  chunk.text += text2;
  chunk.ends.push_back(chunk.text.size());
  chunk.labels.insert(chunk.labels.end(), labels.begin(), labels.end());
  chunk.label_ends.push_back(chunk.labels.size());
  chunk.values.push_back(static_cast<float>(value));
  if (chunk.size() < kChunkSamples && chunk.text.size() < kEncodedChunkBytes) return;
  state.pipeline.submit();
  state.filling = nullptr;
}

LabelledCounts LabelledEncoder::finish() {
  if (std::exchange(state_->filling, nullptr) != nullptr) state_->pipeline.submit();
  state_->pipeline.finish();
  return std::move(state_->counts);
}

}  // namespace stretto::data
