#include "metrics/edit_rate.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace stretto::metrics {
namespace {

constexpr int kMaxShiftSize = 10;
constexpr int kMaxShiftDistance = 50;
constexpr int kBeamWidth = 25;
constexpr int kMaxShiftCandidates = 1000;
constexpr size_t kMaxCells = size_t{1} << 26;  // half a gigabyte: segments of 8,000 words each
constexpr int kInfinity = 1 << 29;             // leaves room for adding costs

using WordIds = std::vector<uint32_t>;

enum class Edit : uint8_t { kUndefined, kKeep, kSubstitute, kInsert, kDelete };

struct Cell {
  int cost = kInfinity;
  Edit edit = Edit::kUndefined;
};

/// Word edit distance from hypotheses of one length to one reference, within a beam around the
/// diagonal. Successive hypotheses of a shift search share long prefixes, and a row depends on
/// nothing but the prefix, so rows of the prefix shared with the hypothesis before are kept.
class BeamDistance {
 public:
  BeamDistance(std::span<const uint32_t> reference, size_t hypothesis_length)
      : reference_(reference),
        columns_(reference.size() + 1),
        rows_(hypothesis_length + 1),
        cells_(rows_ * columns_),
        length_ratio_(hypothesis_length > 0 ? static_cast<double>(reference.size()) /
                                                  static_cast<double>(hypothesis_length)
                                            : 1.0),
        // Very unequal lengths would leave rows of a narrow beam without overlap.
        beam_width_(kBeamWidth < length_ratio_ / 2
                        ? static_cast<int64_t>(std::ceil(length_ratio_ / 2 + kBeamWidth))
                        : kBeamWidth) {
    for (size_t j = 0; j < columns_; ++j) cells_[j] = {static_cast<int>(j), Edit::kInsert};
  }

  int distance(const WordIds& hypothesis) {
    const auto [known, unused] =
        std::mismatch(last_.begin(), last_.end(), hypothesis.begin(), hypothesis.end());
    for (size_t i = static_cast<size_t>(known - last_.begin()) + 1; i < rows_; ++i) {
      fill_row(i, hypothesis[i - 1]);
    }
    last_ = hypothesis;
    return cells_.back().cost;
  }

  /// The edits behind the last distance, in order.
  std::vector<Edit> trace() const {
    std::vector<Edit> edits;
    size_t i = rows_ - 1, j = columns_ - 1;
    while (i > 0 || j > 0) {
      const Edit edit = cells_[i * columns_ + j].edit;
      if (edit == Edit::kUndefined) throw std::logic_error("edit distance left its beam");
      edits.push_back(edit);
      if (edit != Edit::kInsert) --i;
      if (edit != Edit::kDelete) --j;
    }
    std::reverse(edits.begin(), edits.end());
    return edits;
  }

 private:
  void fill_row(size_t i, uint32_t word) {
    Cell* row = &cells_[i * columns_];
    const Cell* above = row - columns_;
    std::fill(row, row + columns_, Cell{});
    const auto columns = static_cast<int64_t>(columns_);
    const auto diagonal = static_cast<int64_t>(std::floor(static_cast<double>(i) * length_ratio_));
    const int64_t begin = std::max<int64_t>(0, diagonal - beam_width_);
    // The last row always reaches the end, where the distance is read.
    const int64_t end = i + 1 == rows_ ? columns : std::min(columns, diagonal + beam_width_);
    for (int64_t j = begin; j < end; ++j) {
      if (j == 0) {
        row[j] = {above[j].cost + 1, Edit::kDelete};
        continue;
      }
      const bool same = word == reference_[static_cast<size_t>(j - 1)];
      // The order of preference among equal costs is tercom's, seen from the other side.
      relax(row[j], above[j - 1].cost + (same ? 0 : 1), same ? Edit::kKeep : Edit::kSubstitute);
      relax(row[j], above[j].cost + 1, Edit::kDelete);
      relax(row[j], row[j - 1].cost + 1, Edit::kInsert);
    }
  }

  static void relax(Cell& cell, int cost, Edit edit) {
    if (cost < cell.cost) cell = {cost, edit};
  }

  std::span<const uint32_t> reference_;
  size_t columns_;
  size_t rows_;
  std::vector<Cell> cells_;
  double length_ratio_;
  int64_t beam_width_;
  WordIds last_;
};

/// Where each reference word lies in the hypothesis, and which words on either side are wrong.
struct Alignment {
  std::vector<int> hypothesis_of;  ///< -1 before the first word
  std::vector<char> hypothesis_wrong;
  std::vector<char> reference_wrong;
};

Alignment align(const std::vector<Edit>& edits) {
  Alignment out;
  int position = -1;
  for (const Edit edit : edits) {
    const char wrong = edit == Edit::kKeep ? 0 : 1;
    if (edit != Edit::kInsert) {
      ++position;
      out.hypothesis_wrong.push_back(wrong);
    }
    if (edit != Edit::kDelete) {
      out.hypothesis_of.push_back(position);
      out.reference_wrong.push_back(wrong);
    }
  }
  return out;
}

bool any(const std::vector<char>& flags, int start, int length) {
  const auto begin = flags.begin() + start;
  return std::find(begin, begin + length, 1) != begin + length;
}

/// `words` with the block [start, start + length) moved to before `target`; a target inside the
/// block moves the block on by that many words.
WordIds shifted(const WordIds& words, int start, int length, int target) {
  WordIds out = words;
  const auto at = [&out](int i) {
    return out.begin() + std::min<int>(i, static_cast<int>(out.size()));
  };
  if (target < start) {
    std::rotate(at(target), at(start), at(start + length));
  } else if (target > start + length) {
    std::rotate(at(start), at(start + length), at(target));
  } else {
    std::rotate(at(start), at(start + length), at(length + target));
  }
  return out;
}

struct Shift {
  int gain = 0, length = 0, start = 0, target = 0;
  WordIds words;

  /// Largest gain, then longest block, then earliest block, then earliest target.
  bool operator>(const Shift& other) const {
    return std::tuple(gain, length, -start, -target) >
           std::tuple(other.gain, other.length, -other.start, -other.target);
  }
};

/// One round of the greedy search: tries every block of words that both sides share.
class ShiftSearch {
 public:
  ShiftSearch(std::span<const uint32_t> reference, BeamDistance& distance)
      : reference_(reference), distance_(distance) {}

  /// The best shift, or none when no block qualifies. `candidates` counts over all rounds.
  std::optional<Shift> best(const WordIds& words, int& candidates) {
    best_.reset();
    distance_before_ = distance_.distance(words);
    alignment_ = align(distance_.trace());
    const int num_words = static_cast<int>(words.size());
    const int num_reference = static_cast<int>(reference_.size());
    for (int start = 0; start < num_words; ++start) {
      const int from = std::max(0, start - kMaxShiftDistance);
      const int to = std::min(num_reference, start + kMaxShiftDistance + 1);
      for (int at = from; at < to; ++at) {
        for (int length = 1; length <= kMaxShiftSize; ++length) {
          const int end = start + length, reference_end = at + length;
          if (end > num_words || reference_end > num_reference) break;
          if (words[end - 1] != reference_[reference_end - 1]) break;
          if (!worth_trying(start, at, length)) continue;
          try_targets(words, start, at, length, candidates);
          if (candidates >= kMaxShiftCandidates) return best_;
        }
      }
    }
    return best_;
  }

 private:
  /// Some word of the block must be wrong where it is, some must be missing where it would go, and
  /// it must not go into itself.
  bool worth_trying(int start, int at, int length) const {
    const int aligned = alignment_.hypothesis_of[at];
    return any(alignment_.hypothesis_wrong, start, length) &&
           any(alignment_.reference_wrong, at, length) &&
           !(start <= aligned && aligned < start + length);
  }

  void try_targets(const WordIds& words, int start, int at, int length, int& candidates) {
    int previous = -1;
    for (int offset = -1; offset < length; ++offset) {
      const int reference_word = at + offset;
      const int target = reference_word < 0 ? 0 : alignment_.hypothesis_of[reference_word] + 1;
      if (target == previous) continue;
      previous = target;
      Shift shift{0, length, start, target, shifted(words, start, length, target)};
      shift.gain = distance_before_ - distance_.distance(shift.words);
      ++candidates;
      if (!best_ || shift > *best_) best_ = std::move(shift);
    }
  }

  std::span<const uint32_t> reference_;
  BeamDistance& distance_;
  int distance_before_ = 0;
  Alignment alignment_;
  std::optional<Shift> best_;
};

}  // namespace

int64_t translation_edits(std::span<const uint32_t> hypothesis,
                          std::span<const uint32_t> reference) {
  if (reference.empty()) return static_cast<int64_t>(hypothesis.size());
  if ((hypothesis.size() + 1) > kMaxCells / (reference.size() + 1)) {
    throw Error(ExitCode::kBadData,
                "a segment is too long for TER: " +
                    counted(static_cast<int64_t>(hypothesis.size()), "word") + " against " +
                    std::to_string(reference.size()),
                "segments are lines; look for line ends that were lost");
  }
  BeamDistance distance(reference, hypothesis.size());
  ShiftSearch search(reference, distance);
  WordIds words(hypothesis.begin(), hypothesis.end());
  int64_t shifts = 0;
  int candidates = 0;
  while (true) {
    std::optional<Shift> shift = search.best(words, candidates);
    // sacreBLEU gives up the shift during whose search the limit was met.
    if (candidates >= kMaxShiftCandidates || !shift || shift->gain <= 0) break;
    ++shifts;
    words = std::move(shift->words);
  }
  return shifts + distance.distance(words);
}

}  // namespace stretto::metrics
