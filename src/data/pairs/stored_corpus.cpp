#include "data/pairs/stored_corpus.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "data/cache_files.h"
#include "data/cache_folder.h"
#include "data/pairs/pair_columns.h"
#include "data/pairs/pair_filter.h"

namespace stretto::data {
namespace {

constexpr std::array<int64_t TextCounts::*, 4> kTextCounts{&TextCounts::words, &TextCounts::pieces,
                                                           &TextCounts::unknown, &TextCounts::cut};

/// The words before the list of inputs: two flags, `kept`, for each kind its count and first lines,
/// and the counts of both sides.
size_t num_fixed_words() {
  constexpr size_t kWordsOfLine = 3;
  const size_t of_kind = 1 + kWordsOfLine * std::tuple_size_v<FirstLines>;
  return 3 + filter_kinds().size() * of_kind + 2 * kTextCounts.size();
}

/// Moves on behind the counts. @return whether they may be those of filters
bool take_filters(std::span<const uint64_t> words, size_t& at, FilterCounts& filters) {
  filters.kept = static_cast<int64_t>(words[at++]);
  for (const FilterKind& kind : filter_kinds()) {
    filters.*kind.count = static_cast<int64_t>(words[at++]);
    for (FilteredLine& line : filters.*kind.first) {
      if (words[at + 2] > static_cast<uint64_t>(Side::kSecondSource)) return false;
      line = {.input = static_cast<int64_t>(words[at]),
              .line = static_cast<int64_t>(words[at + 1]),
              .side = static_cast<Side>(words[at + 2])};
      at += 3;
    }
  }
  return true;
}

/// Whether both sides of each pair have ids, and there are so many ids.
bool are_pairs(std::span<const uint64_t> ends, std::span<const uint32_t> src_lens,
               uint64_t num_ids) {
  if (ends.empty() || ends.size() != src_lens.size() || ends.back() != num_ids) return false;
  uint64_t begin = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    if (ends[i] < begin || src_lens[i] == 0 || src_lens[i] >= ends[i] - begin) return false;
    begin = ends[i];
  }
  return true;
}

/// Whether the texts of a store are there, two for each pair; or, without `has_text`, none.
bool has_texts(const SampleStore& store, bool has_text, size_t num_pairs) {
  const auto ends = store.array<uint64_t>(kPairTextEnds);
  return ends.size() == (has_text ? 2 * num_pairs : 0) &&
         std::is_sorted(ends.begin(), ends.end()) &&
         store.part(kPairTexts).size() == (ends.empty() ? 0 : ends.back());
}

}  // namespace

std::vector<uint64_t> words_of(const CorpusFacts& facts, std::span<const std::string> files) {
  std::vector<uint64_t> words{facts.id_bytes, uint64_t{facts.has_text},
                              static_cast<uint64_t>(facts.filters.kept)};
  for (const FilterKind& kind : filter_kinds()) {
    words.push_back(static_cast<uint64_t>(facts.filters.*kind.count));
    for (const FilteredLine& line : facts.filters.*kind.first) {
      words.push_back(static_cast<uint64_t>(line.input));
      words.push_back(static_cast<uint64_t>(line.line));
      words.push_back(static_cast<uint64_t>(line.side));
    }
  }
  for (const TextCounts* side : {&facts.src_counts, &facts.tgt_counts}) {
    for (const auto count : kTextCounts) words.push_back(static_cast<uint64_t>(side->*count));
  }
  append_list(words, facts.input_ends);
  append_left_out(words, facts.filters.left_out, files);
  return words;
}

std::optional<CorpusFacts> corpus_facts(const SampleStore& store,
                                        std::span<const std::string> files) {
  const auto& words = store.words();
  if (words.size() < num_fixed_words()) return std::nullopt;
  if ((words[0] != 2 && words[0] != 4) || words[1] > 1) return std::nullopt;
  CorpusFacts facts{.id_bytes = words[0], .has_text = words[1] == 1};
  size_t at = 2;
  if (!take_filters(words, at, facts.filters)) return std::nullopt;
  for (TextCounts* side : {&facts.src_counts, &facts.tgt_counts}) {
    for (const auto count : kTextCounts) side->*count = static_cast<int64_t>(words[at++]);
  }
  if (!take_list(words, at, facts.input_ends)) return std::nullopt;
  if (!take_left_out(words, at, files, facts.filters.left_out)) return std::nullopt;
  const auto ends = store.array<uint64_t>(kPairEnds);
  const uint64_t bytes = store.part(kPairIds).size();
  const auto& inputs = facts.input_ends;
  const bool is_sound =
      at == words.size() && bytes % facts.id_bytes == 0 &&
      are_pairs(ends, store.array<uint32_t>(kSourceLengths), bytes / facts.id_bytes) &&
      has_texts(store, facts.has_text, ends.size()) && !inputs.empty() &&
      std::is_sorted(inputs.begin(), inputs.end()) && inputs.back() == ends.size();
  return is_sound ? std::optional(std::move(facts)) : std::nullopt;
}

StoredCorpus::StoredCorpus(Parts parts)
    : parts_(std::move(parts)),
      ends_(parts_.pairs.array<uint64_t>(kPairEnds)),
      src_lens_(parts_.pairs.array<uint32_t>(kSourceLengths)) {}

uint64_t StoredCorpus::pair_of(int64_t sample) const {
  if (sample < 0 || sample >= num_pairs()) {
    throw std::out_of_range("corpus: sample " + std::to_string(sample) + " of " +
                            std::to_string(num_pairs()));
  }
  return order().pair_of(static_cast<uint64_t>(sample));
}

void StoredCorpus::append_ids(uint64_t pair, int side, std::vector<int64_t>& ids) const {
  const uint64_t begin = pair == 0 ? 0 : ends_[pair - 1], middle = begin + src_lens_[pair];
  const IdRange range = side == 0 ? IdRange{begin, middle} : IdRange{middle, ends_[pair]};
  const StoredIds stored{.id_bytes = parts_.facts.id_bytes,
                         .vocab_size = side == 0 ? parts_.src_vocab_size : parts_.tgt_vocab_size};
  if (!load_ids(parts_.pairs.part(kPairIds), range, stored, ids)) {
    throw_damaged_in_use(parts_.folder.string());
  }
}

std::vector<int64_t> StoredCorpus::src(int64_t sample) const {
  std::vector<int64_t> ids;
  append_ids(pair_of(sample), 0, ids);
  return ids;
}

std::vector<int64_t> StoredCorpus::tgt(int64_t sample) const {
  std::vector<int64_t> ids;
  append_ids(pair_of(sample), 1, ids);
  return ids;
}

void StoredCorpus::append(int64_t sample, Batch& batch) const {
  const uint64_t pair = pair_of(sample);
  append_ids(pair, 0, source(batch).values);
  append_ids(pair, 1, target(batch).values);
  batch.sample_ids.push_back(sample);
  source(batch).close_sequence();
  target(batch).close_sequence();
}

std::string StoredCorpus::text(int64_t sample, int side) const {
  if (!parts_.facts.has_text) {
    throw std::logic_error("corpus: the text of a training corpus is not kept");
  }
  const auto ends = parts_.pairs.array<uint64_t>(kPairTextEnds);
  const uint64_t line = 2 * pair_of(sample) + static_cast<uint64_t>(side);
  const uint64_t begin = line == 0 ? 0 : ends[line - 1];
  return std::string(parts_.pairs.part(kPairTexts).substr(begin, ends[line] - begin));
}

std::string StoredCorpus::src_text(int64_t sample) const {
  return text(sample, 0);
}
std::string StoredCorpus::tgt_text(int64_t sample) const {
  return text(sample, 1);
}

}  // namespace stretto::data
