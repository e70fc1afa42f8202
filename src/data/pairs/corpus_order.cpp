#include "data/pairs/corpus_order.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/random_streams.h"

namespace stretto::data {
namespace {

constexpr uint64_t kOrderMagic = 0x3144524F43525453;  // "STRCORD1"
constexpr size_t kFixedWords = 8;                     // the last is the number of runs
constexpr size_t kMaxHeadBytes = size_t{8} << 30;
constexpr uint64_t kMaxSamples = std::numeric_limits<uint32_t>::max();

std::filesystem::path data_path(const std::filesystem::path& folder, uint64_t key) {
  return folder / ("order-" + hex64(key) + ".bin");
}
std::filesystem::path head_path(const std::filesystem::path& folder, uint64_t key) {
  return folder / ("order-" + hex64(key) + ".head");
}

/// A renaming replaces a file, and nothing else.
void clear_for_file(const std::filesystem::path& path) {
  std::error_code failure;
  if (std::filesystem::is_directory(std::filesystem::symlink_status(path, failure))) {
    std::filesystem::remove_all(path, failure);
  }
}

/// Lengths of all pairs, straight from the mapped files.
class PairLengths {
 public:
  PairLengths(const std::filesystem::path& folder, const CorpusMeta& meta)
      : starts_(open_checked(folder, meta, kStartsFile)),
        src_lens_(open_checked(folder, meta, kSrcLensFile)) {}
  /// To be called first. @return the name of the file that is damaged, "" for none
  std::string damaged(int64_t threads) const {
    if (!starts_.is_whole(threads)) return kStartsFile;
    return src_lens_.is_whole(threads) ? "" : kSrcLensFile;
  }
  uint32_t src(uint64_t pair) const { return array<uint32_t>(src_lens_)[pair]; }
  uint32_t tgt(uint64_t pair) const {
    const uint64_t* starts = array<uint64_t>(starts_);
    return static_cast<uint32_t>(starts[pair + 1] - starts[pair] - src(pair));
  }

 private:
  template <class T>
  static const T* array(const CheckedFile& file) {
    return reinterpret_cast<const T*>(file.unchecked().data());
  }
  CheckedFile starts_, src_lens_;
};

/// Calls visit(pair) once for every sample, in the order of sample ids.
template <class Visit>
void for_each_sample(const CorpusMeta& meta, const SampleWeights& weights, Visit visit) {
  const uint64_t stream = mix64(weights.seed, streams::kSampleWeights);
  uint64_t pair = 0;
  for (size_t input = 0; input < meta.segment_ends.size(); ++input) {
    const double weight = weights.weights.empty() ? 1.0 : weights.weights[input];
    const double whole = std::floor(weight);
    for (; pair < meta.segment_ends[input]; ++pair) {
      const double draw = static_cast<double>(mix64(stream, pair) >> 11) * 0x1.0p-53;
      const auto times = static_cast<uint64_t>(whole) + (draw < weight - whole ? 1 : 0);
      for (uint64_t i = 0; i < times; ++i) visit(pair);
    }
  }
}

/// Stable counting sort of `from` into `to` by a length of at most `longest`.
template <class Length>
void counting_sort(std::span<const uint32_t> from, uint32_t* to, uint64_t longest, Length length) {
  std::vector<uint64_t> places(longest + 2, 0);
  for (const uint32_t sample : from) ++places[length(sample) + 1];
  for (size_t i = 1; i < places.size(); ++i) places[i] += places[i - 1];
  for (const uint32_t sample : from) to[places[length(sample)]++] = sample;
}

struct Totals {
  uint64_t samples = 0, src_tokens = 0, tgt_tokens = 0;
};

Totals count_samples(const CorpusMeta& meta, const SampleWeights& weights,
                     const PairLengths& lengths) {
  Totals totals;
  for_each_sample(meta, weights, [&](uint64_t pair) {
    ++totals.samples;
    totals.src_tokens += lengths.src(pair);
    totals.tgt_tokens += lengths.tgt(pair);
    if (totals.samples > kMaxSamples) {
      throw Error(ExitCode::kBadData, "an epoch has more than 4,294,967,295 samples",
                  "lower data.train_weights, or train on a part of the corpus");
    }
  });
  if (totals.samples == 0) {
    throw Error(ExitCode::kBadData, "data.train_weights leave no pair of the corpus",
                "raise a weight");
  }
  return totals;
}

}  // namespace

uint64_t SampleWeights::key() const {
  bool fractional = false, trivial = true;
  for (const double weight : weights) {
    trivial = trivial && weight == 1.0;
    fractional = fractional || weight != std::floor(weight);
  }
  if (trivial) return 0;
  const uint64_t hash = xxh3_64(weights.data(), weights.size() * sizeof(double));
  return fractional ? mix64(hash, seed) : hash;
}

std::optional<CorpusOrder> CorpusOrder::find(const std::filesystem::path& folder,
                                             const CorpusMeta& meta, uint64_t weights_key,
                                             int64_t threads, std::string& damaged) {
  std::error_code failure;
  const auto head = head_path(folder, weights_key), data = data_path(folder, weights_key);
  // The head is written last: without one there may be the data of a process that was killed.
  if (!std::filesystem::exists(head, failure)) return std::nullopt;
  auto order = read_head(head, meta);
  if (!order) {
    damaged = head.filename().string();
    return std::nullopt;
  }
  const uint64_t bytes = order->num_samples_ * sizeof(uint32_t) * (order->has_pairs_ ? 2 : 1);
  const bool has_size =
      std::filesystem::file_size(data, failure) == bytes && !failure;  // of a regular file alone
  if (has_size) order->file_.emplace(data, std::move(order->sums_));
  if (has_size && order->file_->is_whole(threads)) return order;
  damaged = data.filename().string();
  return std::nullopt;
}

std::optional<CorpusOrder> CorpusOrder::read_head(const std::filesystem::path& path,
                                                  const CorpusMeta& meta) {
  if (!is_readable_whole(path, kMaxHeadBytes)) return std::nullopt;
  const auto words = unseal_words(read_file(path, kMaxHeadBytes));
  if (!words || words->size() < kFixedWords) return std::nullopt;
  const std::vector<uint64_t>& w = *words;
  if (w[0] != kOrderMagic || w[1] != kCorpusVersion || w[2] != meta.key) return std::nullopt;
  const size_t runs_end = kFixedWords + 2 * w[7];
  if (w[7] > w.size() || runs_end > w.size()) return std::nullopt;
  CorpusOrder order;
  order.num_samples_ = w[3];
  order.src_tokens_ = w[4];
  order.tgt_tokens_ = w[5];
  order.has_pairs_ = w[6] != 0;
  // The last one is empty and stands at the end.
  for (size_t i = kFixedWords; i + 2 < runs_end; i += 2) {
    const std::array<uint32_t, 2> lengths{static_cast<uint32_t>(w[i]),
                                          static_cast<uint32_t>(w[i] >> 32)};
    order.runs_.add(lengths, w[i + 3]);
  }
  order.sums_.assign(w.begin() + static_cast<std::ptrdiff_t>(runs_end), w.end());
  return order;
}

bool CorpusOrder::build(const std::filesystem::path& folder, const CorpusMeta& meta,
                        const SampleWeights& weights, int64_t threads, std::string& damaged) {
  const uint64_t key = weights.key();
  const auto data = data_path(folder, key), head = head_path(folder, key);
  const auto tmp = folder / ".tmp-order", scratch = folder / ".tmp-sort";
  const PairLengths lengths(folder, meta);
  if (const std::string broken = lengths.damaged(threads); !broken.empty()) {
    damaged = broken;
    return false;
  }
  const Totals totals = count_samples(meta, weights, lengths);
  const uint64_t n = totals.samples;
  std::vector<uint64_t> words{kOrderMagic,       kCorpusVersion,    meta.key,           n,
                              totals.src_tokens, totals.tgt_tokens, key != 0 ? 1u : 0u, 0};
  {
    const WritableMap by_src(scratch, 2 * n * sizeof(uint32_t));
    WritableMap out(tmp, n * sizeof(uint32_t) * (key != 0 ? 2 : 1));
    auto* const half_sorted = reinterpret_cast<uint32_t*>(by_src.data());
    auto* const sorted = reinterpret_cast<uint32_t*>(out.data());
    // Samples in their first order, then by source length, then by target length.
    uint32_t* const pair_of = key != 0 ? sorted + n : half_sorted + n;
    uint64_t next = 0;
    for_each_sample(meta, weights,
                    [&](uint64_t pair) { pair_of[next++] = static_cast<uint32_t>(pair); });
    const auto src = [&](uint32_t sample) { return lengths.src(pair_of[sample]); };
    const auto tgt = [&](uint32_t sample) { return lengths.tgt(pair_of[sample]); };
    for (uint64_t i = 0; i < n; ++i) sorted[i] = static_cast<uint32_t>(i);
    counting_sort({sorted, n}, half_sorted, meta.max_src, src);
    counting_sort({half_sorted, n}, sorted, meta.max_tgt, tgt);
    uint64_t last = std::numeric_limits<uint64_t>::max();
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t shape = uint64_t{tgt(sorted[i])} << 32 | src(sorted[i]);
      if (shape != last) words.insert(words.end(), {shape, i});
      last = shape;
    }
    words.insert(words.end(), {0, n});
    words[kFixedWords - 1] = (words.size() - kFixedWords) / 2;
    BlockSums sums;
    sums.update(out.data(), n * sizeof(uint32_t) * (key != 0 ? 2 : 1));
    for (const uint64_t sum : sums.finish()) words.push_back(sum);
    out.finish();
  }
  std::filesystem::remove(scratch);
  for (const auto& place : {data, head}) clear_for_file(place);
  rename_path(tmp, data);
  write_file_atomic(head, seal_words(std::move(words)));  // makes the data valid
  return true;
}

}  // namespace stretto::data
