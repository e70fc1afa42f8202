#include "data/labelled/labelled_samples.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/system_info.h"
#include "data/cache_folder.h"
#include "data/labelled/labelled_encoder.h"

namespace stretto::data {
namespace {

/// Part of the key: a change of the parts, or of how texts are encoded, makes new stores.
constexpr uint64_t kTokensVersion = 1;

/// The parts of a store.
enum TokensPart : size_t {
  kIds,         ///< uint16, or uint32 where a vocabulary has more than 65,536
  kIdEnds,      ///< uint64 [samples]
  kIdSegments,  ///< uint32 [ids]; nothing where all are 0
  kNumTokensParts,
};
/// The words of its head.
enum TokensWord : size_t { kHash, kUnknown, kCutSamples, kCutTokens, kIdBytes, kNumWords };

uint64_t tokens_key(const LabelledTexts& texts, const LabelledOptions& options,
                    const text::Tokenizer& tokenizer, const Labels* labels) {
  const text::TextBound bound = text_bound_of(options);
  std::string text = "labelled tokens " + std::to_string(kTokensVersion) + "\n" +
                     hex64(texts.key()) + " " + hex64(tokenizer.fingerprint());
  for (const int64_t number : {tokenizer.size(), bound.max_tokens, static_cast<int64_t>(bound.side),
                               static_cast<int64_t>(bound.which), int64_t{bound.pairs}}) {
    text += " " + std::to_string(number);
  }
  if (labels == nullptr) return xxh3_64(text);
  for (const auto& name : labels->names()) {
    text += "\n" + std::to_string(name.size()) + ":" + name;
  }
  return xxh3_64(text);
}

std::vector<int64_t> numbers_of(const LabelledTexts& texts, const Labels* labels) {
  std::vector<int64_t> numbers;
  if (labels == nullptr) return numbers;
  for (const auto& name : texts.facts().labels) numbers.push_back(*labels->find(name));
  return numbers;
}

int64_t num_segments(const text::Tokenizer& tokenizer, bool pairs) {
  const auto sequences = text::template_of(tokenizer);
  int64_t count = 1;
  for (const auto& slot : pairs ? sequences.pair : sequences.single) {
    count = std::max(count, slot.segment + 1);
  }
  return count;
}

/// @return what encodes the texts into the parts of a store
StoreBuild encoding(const LabelledTexts& texts, const LabelledOptions& options,
                    const text::Tokenizer& tokenizer, const Labels* labels) {
  return [&texts, &options, &tokenizer, labels](SampleStoreWriter& writer) {
    const uint64_t id_bytes = bytes_of_ids(tokenizer.size());
    const bool with_segments = num_segments(tokenizer, texts.has_pairs()) > 1;
    uint64_t end = 0;
    std::string bytes;
    LabelledEncoder encoder(options, tokenizer, labels, [&](const EncodedSample& sample) {
      bytes.clear();
      store_ids(sample.ids, id_bytes, bytes);
      writer.append(kIds, bytes);
      writer.append_value<uint64_t>(kIdEnds, end += sample.ids.size());
      if (!with_segments) return;
      bytes.clear();
      store_ids(sample.segments, sizeof(uint32_t), bytes);
      writer.append(kIdSegments, bytes);
    });
    const auto numbers = numbers_of(texts, labels);
    std::vector<int64_t> row;
    for (int64_t i = 0; i < texts.size(); ++i) {
      row.clear();
      for (const uint32_t label : texts.labels(i)) row.push_back(numbers[label]);
      encoder.add(texts.text(i), texts.has_pairs() ? texts.text2(i) : std::string_view(), row,
                  labels == nullptr ? texts.value(i) : 0);
    }
    const LabelledCounts counts = encoder.finish();
    return std::vector<uint64_t>{counts.hash, static_cast<uint64_t>(counts.unknown),
                                 static_cast<uint64_t>(counts.cut_samples),
                                 static_cast<uint64_t>(counts.cut_tokens), id_bytes};
  };
}

/// Whether the parts belong together, and to so many samples.
bool is_sound(const SampleStore& store, int64_t samples, uint64_t id_bytes) {
  const auto ends = store.array<uint64_t>(kIdEnds);
  if (store.words().size() != kNumWords || std::ssize(ends) != samples) return false;
  const uint64_t ids = ends.empty() ? 0 : ends.back();
  const auto segments = store.array<uint32_t>(kIdSegments).size();
  return std::is_sorted(ends.begin(), ends.end()) && (segments == 0 || segments == ids) &&
         store.words()[kIdBytes] == id_bytes && store.part(kIds).size() == ids * id_bytes;
}

/// Encodes the texts of `parts` into the cache, or finds them there; where the texts are not in it,
/// or the system refuses, into memory.
void open_tokens(const LabelledOptions& options, const text::Tokenizer& tokenizer,
                 const Labels* labels, LabelledSamples::Parts& parts) {
  const LabelledTexts& texts = *parts.texts;
  const auto build = encoding(texts, options, tokenizer, labels);
  std::optional<SampleStore> store;
  if (texts.key() != 0) {
    refusal_of([&] {
      const StorePlace place{.root = open_cache(options.cache_dir),
                             .kind = "labelled_tokens",
                             .key = tokens_key(texts, options, tokenizer, labels),
                             .num_parts = kNumTokensParts,
                             .threads = usable_cores(),
                             .is_sound = [&](const SampleStore& found) {
                               return is_sound(found, texts.size(), parts.ids.id_bytes);
                             }};
      parts.name = place.folder().string();
      store = open_samples(place, build);
    });
  }
  parts.tokens = store ? std::move(*store) : samples_in_memory(kNumTokensParts, build);
}

}  // namespace

LabelledSamples::LabelledSamples(Parts parts, const Labels* labels, LabelledCounts found)
    : parts_(std::move(parts)),
      has_values_(labels == nullptr),
      numbers_(numbers_of(*parts_.texts, labels)),
      counts_(std::move(found)) {
  const auto& words = parts_.tokens.words();
  counts_.hash = words.at(kHash);
  counts_.unknown = static_cast<int64_t>(words.at(kUnknown));
  counts_.cut_samples = static_cast<int64_t>(words.at(kCutSamples));
  counts_.cut_tokens = static_cast<int64_t>(words.at(kCutTokens));
  std::vector<std::vector<uint32_t>> lengths(1);
  uint64_t begin = 0;
  for (const uint64_t end : parts_.tokens.array<uint64_t>(kIdEnds)) {
    lengths.front().push_back(static_cast<uint32_t>(end - begin));
    begin = end;
  }
  num_tokens_ = static_cast<int64_t>(begin);
  order_ = order_by_length(lengths);
}

Batch LabelledSamples::empty_batch() const {
  return empty_labelled_batch(has_values_);
}

void LabelledSamples::append(int64_t /*epoch*/, int64_t sample, Batch& batch) const {
  const auto ends = parts_.tokens.array<uint64_t>(kIdEnds);
  const auto number = static_cast<size_t>(sample);
  const IdRange range{.begin = number == 0 ? 0 : ends[number - 1], .end = ends[number]};
  auto& ids = tokens(batch);
  auto& of_texts = segments(batch);
  const std::string_view stored = parts_.tokens.part(kIdSegments);
  if (!load_ids(parts_.tokens.part(kIds), range, parts_.ids, ids.values) ||
      (!stored.empty() && !load_ids(stored, range, parts_.segments, of_texts.values))) {
    throw_damaged_in_use(parts_.name);
  }
  of_texts.values.resize(ids.values.size());
  ids.close_sequence();
  of_texts.close_sequence();
  batch.sample_ids.push_back(sample);
  append_labels(sample, batch);
}

void LabelledSamples::append_labels(int64_t sample, Batch& batch) const {
  if (has_values_) {
    auto& values = batch.column<float>(kLabelColumn);
    values.values.push_back(static_cast<float>(texts().value(sample)));
    values.close_sequence();
    return;
  }
  auto& labels = batch.column<int64_t>(kLabelColumn);
  for (const uint32_t label : texts().labels(sample)) labels.values.push_back(numbers_[label]);
  labels.close_sequence();
}

Batch LabelledSamples::labels() const {
  Batch batch = empty_batch();
  for (int64_t i = 0; i < size(); ++i) {
    batch.sample_ids.push_back(i);
    append_labels(i, batch);
  }
  return batch;
}

std::vector<int64_t> LabelledSamples::label_counts(int64_t num_labels) const {
  std::vector<int64_t> counts(static_cast<size_t>(num_labels));
  for (int64_t i = 0; i < size() && !has_values_; ++i) {
    for (const uint32_t label : texts().labels(i)) ++counts[static_cast<size_t>(numbers_[label])];
  }
  return counts;
}

std::shared_ptr<const LabelledSamples> open_labelled_samples(std::span<const std::string> paths,
                                                             const LabelledOptions& options,
                                                             const text::Tokenizer& tokenizer,
                                                             const Labels* labels) {
  const LabelledInput input{
      .paths = {paths.begin(), paths.end()}, .columns = columns_of(options), .labels = labels};
  const auto texts = open_labelled_texts(input, labelled_cache_of(options));
  if (!texts->refusal().empty() && std::ranges::equal(paths, options.train)) {
    log::warn(texts->refusal() + "; each start reads the texts anew: " + kCacheRemedy);
  }
  LabelledCounts found;
  add_facts(input, texts->facts(), labels, found);
  LabelledSamples::Parts parts{
      .texts = texts,
      .tokens = {},
      .name = {},
      .ids = {.id_bytes = bytes_of_ids(tokenizer.size()), .vocab_size = tokenizer.size()},
      .segments = {.id_bytes = sizeof(uint32_t),
                   .vocab_size = num_segments(tokenizer, texts->has_pairs())}};
  open_tokens(options, tokenizer, labels, parts);
  return std::make_shared<LabelledSamples>(std::move(parts), labels, std::move(found));
}

LabelledCache labelled_cache_of(const LabelledOptions& options) {
  return {.dir = options.cache_dir, .threads = usable_cores()};
}

std::shared_ptr<const LabelledTexts> open_training_texts(const LabelledOptions& options) {
  const LabelledInput input{.paths = options.train, .columns = columns_of(options)};
  auto texts = open_labelled_texts(input, labelled_cache_of(options));
  require_samples(input, texts->facts());
  return texts;
}

}  // namespace stretto::data
