#include "data/pairs/corpus_build.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <string_view>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "data/cache_files.h"
#include "data/chunk_pipeline.h"
#include "data/pairs/pair_faults.h"
#include "data/pairs/stored_corpus.h"

namespace stretto::data {
namespace {

constexpr size_t kChunkPairs = 4096;
constexpr size_t kChunkBytes = size_t{1} << 20;
constexpr uint64_t kMaxPairs = std::numeric_limits<uint32_t>::max();
constexpr auto kProgressInterval = std::chrono::seconds(15);

/// A pair that cannot be used.
struct BadPair {
  int64_t line = 0;
  PairFault fault;
};

/// Consecutive pairs of lines of one input, and what became of them.
struct Chunk {
  size_t input = 0;
  std::vector<int64_t> numbers;     ///< [pairs] of their lines
  std::string lines;                ///< source, target, source, … without line ends
  std::vector<uint32_t> line_ends;  ///< [2 · pairs] in `lines`
  std::vector<BadPair> bad;         ///< what is not among the pairs, then what was found in them

  std::string ids;                  ///< raw token ids of the kept pairs
  std::vector<uint32_t> src_lens;   ///< [kept]
  std::vector<uint32_t> tgt_lens;   ///< [kept]
  std::string text;                 ///< lines of the kept pairs
  std::vector<uint32_t> text_lens;  ///< [2 · kept]
  FilterCounts counts;
  TextCounts src_counts, tgt_counts;  ///< of the kept pairs

  void clear() {
    numbers.clear();
    lines.clear();
    line_ends.clear();
    bad.clear();
    ids.clear();
    src_lens.clear();
    tgt_lens.clear();
    text.clear();
    text_lens.clear();
    counts = {};
    src_counts = tgt_counts = {};
  }
};

/// Runs on the threads: from lines to ids.
class ChunkEncoder {
 public:
  ChunkEncoder(const CorpusPlan& plan, const text::TokenizerPair& tokenizers, uint64_t id_bytes)
      : plan_(plan), tokenizers_(tokenizers), id_bytes_(id_bytes) {}

  void operator()(Chunk& chunk) const {
    const ParallelInput& input = plan_.inputs[chunk.input];
    PairPlace place{.src_name = input.src,
                    .tgt_name = input.tgt,
                    .input = static_cast<int64_t>(chunk.input),
                    .src2_name = input.src2};
    const std::string_view lines = chunk.lines;
    EncodedPair pair;
    size_t begin = 0;
    for (size_t i = 0; i < chunk.numbers.size(); ++i) {
      place.line = chunk.numbers[i];
      const size_t middle = chunk.line_ends[2 * i], end = chunk.line_ends[2 * i + 1];
      const std::string_view src = lines.substr(begin, middle - begin);
      const std::string_view tgt = lines.substr(middle, end - middle);
      begin = end;
      try {
        if (encode_pair(plan_.rules, tokenizers_, src, tgt, place, pair, chunk.counts)) {
          store(pair, chunk);
        }
      } catch (const PairFault& fault) {
        chunk.bad.push_back({.line = place.line, .fault = fault});
      }
    }
  }

 private:
  void store(const EncodedPair& pair, Chunk& chunk) const {
    for (const std::vector<int64_t>* side : {&pair.src, &pair.tgt}) {
      store_ids(*side, id_bytes_, chunk.ids);
    }
    count_pair(tokenizers_, pair, chunk.src_counts, chunk.tgt_counts);
    chunk.src_lens.push_back(static_cast<uint32_t>(pair.src.size()));
    chunk.tgt_lens.push_back(static_cast<uint32_t>(pair.tgt.size()));
    if (!plan_.keep_text) return;
    chunk.text += pair.src_text;
    chunk.text += pair.tgt_text;
    chunk.text_lens.push_back(static_cast<uint32_t>(pair.src_text.size()));
    chunk.text_lens.push_back(static_cast<uint32_t>(pair.tgt_text.size()));
  }

  const CorpusPlan& plan_;
  const text::TokenizerPair& tokenizers_;
  uint64_t id_bytes_;
};

/// Runs on the caller's thread, in order: from chunks to the parts of a store.
class CorpusWriter {
 public:
  CorpusWriter(const CorpusPlan& plan, uint64_t id_bytes, SampleStoreWriter& store)
      : store_(store), faults_(plan.bad_samples) {
    facts_.id_bytes = id_bytes;
    facts_.has_text = plan.keep_text;
    facts_.input_ends.assign(plan.inputs.size(), 0);
  }

  void operator()(const Chunk& chunk) {
    if (is_refused_) return;  // the first error is the one that is reported
    take_bad(chunk);
    store_.append(kPairIds, chunk.ids);
    store_.append_values<uint32_t>(kSourceLengths, chunk.src_lens);
    for (size_t i = 0; i < chunk.src_lens.size(); ++i) {
      num_ids_ += uint64_t{chunk.src_lens[i]} + chunk.tgt_lens[i];
      store_.append_value<uint64_t>(kPairEnds, num_ids_);
    }
    store_.append(kPairTexts, chunk.text);
    for (const uint32_t length : chunk.text_lens) {
      text_bytes_ += length;
      store_.append_value<uint64_t>(kPairTextEnds, text_bytes_);
    }
    num_pairs_ += chunk.src_lens.size();
    if (num_pairs_ > kMaxPairs) {
      throw Error(ExitCode::kBadData, "the corpus has more than 4,294,967,295 pairs",
                  "train on a part of it: data.train_src and data.train_tgt take lists of files");
    }
    facts_.input_ends[chunk.input] = num_pairs_;
    add_counts(chunk.counts, facts_.filters);
    add_counts(chunk.src_counts, facts_.src_counts);
    add_counts(chunk.tgt_counts, facts_.tgt_counts);
    report(chunk);
  }

  CorpusFacts finish() {
    // An input that kept nothing ends where the one before it does.
    auto& ends = facts_.input_ends;
    for (size_t i = 1; i < ends.size(); ++i) ends[i] = std::max(ends[i], ends[i - 1]);
    return facts_;
  }

  uint64_t num_pairs() const { return num_pairs_; }

 private:
  /// In the order of lines. Those of a chunk are one error, where they are errors.
  void take_bad(const Chunk& chunk) {
    if (chunk.bad.empty()) return;
    auto bad = chunk.bad;
    std::stable_sort(bad.begin(), bad.end(),
                     [](const BadPair& a, const BadPair& b) { return a.line < b.line; });
    is_refused_ = true;
    for (const BadPair& pair : bad) faults_.add(pair.fault);
    faults_.end_input();
    is_refused_ = false;
    facts_.filters.left_out = faults_.left_out();
  }

  void report(const Chunk& chunk) {
    lines_read_ += static_cast<int64_t>(chunk.numbers.size() + chunk.bad.size());
    const auto now = std::chrono::steady_clock::now();
    if (now - last_report_ < kProgressInterval) return;
    last_report_ = now;
    log::info("tokenised " + counted(lines_read_, "pair of lines", "pairs of lines"));
  }

  SampleStoreWriter& store_;
  PairFaults faults_;
  bool is_refused_ = false;
  CorpusFacts facts_;
  uint64_t num_pairs_ = 0, num_ids_ = 0, text_bytes_ = 0;
  int64_t lines_read_ = 0;
  std::chrono::steady_clock::time_point last_report_ = std::chrono::steady_clock::now();
};

/// Fills chunks from one input.
///
/// Where bad pairs are errors, the pairs behind the first one are not needed: the rest of the input
/// is read for more of them, so that one error names up to ten.
class ChunkReader {
 public:
  ChunkReader(const CorpusPlan& plan, size_t index)
      : plan_(plan), skips_(plan.bad_samples.skips), index_(index), reader_(plan.inputs[index]) {}

  /// @return whether there is more to read
  bool fill(Chunk& chunk) {
    chunk.input = index_;
    const size_t most_bad = skips_ ? kChunkPairs : kNamedBadSamples;
    std::string_view src, tgt;
    while (chunk.numbers.size() < kChunkPairs && chunk.lines.size() < kChunkBytes &&
           chunk.bad.size() < most_bad) {
      try {
        if (!reader_.next(src, tgt)) return false;
        if (is_refused(chunk)) {
          require_utf8(plan_.rules, src, tgt, place());
        } else {
          append(src, tgt, chunk);
        }
      } catch (const PairFault& fault) {
        chunk.bad.push_back({.line = reader_.line_number(), .fault = fault});
      }
    }
    return !is_refused(chunk);
  }

  bool is_refused(const Chunk& chunk) const { return !skips_ && !chunk.bad.empty(); }

 private:
  PairPlace place() const {
    const ParallelInput& input = plan_.inputs[index_];
    return {.src_name = input.src,
            .tgt_name = input.tgt,
            .line = reader_.line_number(),
            .input = static_cast<int64_t>(index_),
            .src2_name = input.src2};
  }

  void append(std::string_view src, std::string_view tgt, Chunk& chunk) const {
    chunk.numbers.push_back(reader_.line_number());
    for (const std::string_view line : {src, tgt}) {
      chunk.lines += line;
      chunk.line_ends.push_back(static_cast<uint32_t>(chunk.lines.size()));
    }
  }

  const CorpusPlan& plan_;
  bool skips_;
  size_t index_;
  PairReader reader_;
};

void read_input(const CorpusPlan& plan, size_t index, ChunkPipeline<Chunk>& pipeline) {
  ChunkReader reader(plan, index);
  for (bool more = true; more;) {
    Chunk& chunk = pipeline.acquire();
    try {
      more = reader.fill(chunk);
    } catch (const Error&) {
      pipeline.submit();  // the lines before the bad one are looked at too
      throw;
    }
    const bool refused = reader.is_refused(chunk);
    pipeline.submit();
    if (refused) pipeline.finish();  // throws
  }
}

const std::string& file_of(const ParallelInput& input, Side side) {
  if (side == Side::kSource) return input.src;
  return side == Side::kTarget ? input.tgt : input.src2;
}

}  // namespace

std::vector<std::string> files_of(const std::vector<ParallelInput>& inputs) {
  std::vector<std::string> files;
  for (const ParallelInput& input : inputs) {
    for (const std::string& path : {input.src, input.tgt, input.src2}) {
      if (!path.empty()) files.push_back(path);
    }
  }
  return files;
}

std::vector<std::string> describe_filters(const CorpusPlan& plan, const FilterCounts& counts) {
  std::vector<std::string> texts;
  if (counts.left_out.count > 0) texts.push_back(counts.left_out.text());
  for (const FilterKind& kind : filter_kinds()) {
    const int64_t count = counts.*kind.count;
    if (count == 0) continue;
    std::vector<std::string> places;
    for (const FilteredLine& place : counts.*kind.first) {
      if (place.line == 0 || static_cast<size_t>(place.input) >= plan.inputs.size()) continue;
      const ParallelInput& input = plan.inputs[static_cast<size_t>(place.input)];
      places.push_back(file_of(input, place.side) + ":" + std::to_string(place.line));
    }
    if (count > static_cast<int64_t>(places.size())) places.push_back("…");
    texts.push_back(std::string(kind.name) + " " + with_thousands(count) + ": " +
                    join(places, ", "));
  }
  return texts;
}

void throw_empty_corpus(const CorpusPlan& plan, const FilterCounts& counts) {
  std::vector<std::string> names;
  for (const ParallelInput& input : plan.inputs) names.push_back(input.src);
  const int64_t dropped =
      counts.empty + counts.too_long + counts.ratio + counts.invalid_utf8 + counts.left_out.count;
  if (dropped == 0) {
    throw Error(ExitCode::kBadData, "empty corpus: there are no lines in " + join(names, ", "),
                "look at the paths and at the files");
  }
  const auto kinds = describe_filters(plan, counts);
  const Error error(ExitCode::kBadData,
                    "empty corpus: none of the " + counted(dropped, "pair") + " in " +
                        join(names, ", ") + " is left after the filters (" + join(kinds, "; ") +
                        ")",
                    "look at data.max_src_tokens, data.max_tgt_tokens, data.max_ratio and "
                    "data.invalid_utf8");
  // As far as the lines that are listed tell.
  const auto is_empty = [&](Side side) {
    const auto& first = counts.first_empty;
    return counts.empty == dropped && std::all_of(first.begin(), first.end(), [&](const auto& l) {
             return l.line == 0 || l.side == side;
           });
  };
  if (is_empty(Side::kTarget)) throw TargetError(error);
  if (is_empty(Side::kSecondSource)) throw SecondSourceError(error);
  throw error;
}

std::vector<uint64_t> build_corpus(const CorpusPlan& plan, const text::TokenizerPair& tokenizers,
                                   SampleStoreWriter& store) {
  const int64_t largest = std::max(tokenizers.src->size(), tokenizers.tgt->size());
  const uint64_t id_bytes = bytes_of_ids(largest);
  CorpusWriter writer(plan, id_bytes, store);
  ChunkPipeline<Chunk> pipeline(plan.threads, ChunkEncoder(plan, tokenizers, id_bytes),
                                [&](Chunk& chunk) { writer(chunk); });
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    try {
      read_input(plan, i, pipeline);
    } catch (const Error&) {
      pipeline.finish();  // a bad line before this place comes first
      throw;
    }
  }
  pipeline.finish();
  const CorpusFacts facts = writer.finish();
  if (writer.num_pairs() == 0) throw_empty_corpus(plan, facts.filters);
  return words_of(facts, files_of(plan.inputs));
}

}  // namespace stretto::data
