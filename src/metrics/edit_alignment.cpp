#include "metrics/edit_alignment.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace stretto::metrics {
namespace {

using Words = std::span<const uint32_t>;

constexpr int64_t kMostTablePairs = int64_t{1} << 28;

/// The last step of the best alignment of each two beginnings.
class StepTable {
 public:
  StepTable(Words reference, Words hypothesis)
      : width_(hypothesis.size() + 1), steps_((reference.size() + 1) * width_) {
    std::vector<int32_t> row(width_);  // errors of the alignments with i words of the reference
    for (size_t j = 1; j < width_; ++j) {
      row[j] = static_cast<int32_t>(j);
      at(0, j) = Edit::kInsertion;
    }
    for (size_t i = 1; i <= reference.size(); ++i) {
      int32_t diagonal = row[0];
      ++row[0];
      at(i, 0) = Edit::kDeletion;
      for (size_t j = 1; j < width_; ++j) {
        const int32_t above = row[j], left = row[j - 1];
        const bool is_equal = reference[i - 1] == hypothesis[j - 1];
        const int32_t paired = diagonal + (is_equal ? 0 : 1);
        row[j] = std::min({paired, above + 1, left + 1});
        if (row[j] == above + 1) {
          at(i, j) = Edit::kDeletion;
        } else if (left < diagonal) {
          at(i, j) = Edit::kInsertion;
        } else {
          at(i, j) = is_equal ? Edit::kHit : Edit::kSubstitution;
        }
        diagonal = above;
      }
    }
  }

  Edit& at(size_t i, size_t j) { return steps_[i * width_ + j]; }

 private:
  size_t width_;
  std::vector<Edit> steps_;  ///< [reference + 1, hypothesis + 1]
};

void require_small_table(Words reference, Words hypothesis) {
  const auto longer = static_cast<int64_t>(std::max(reference.size(), hypothesis.size())) + 1;
  const auto shorter = static_cast<int64_t>(std::min(reference.size(), hypothesis.size())) + 1;
  if (longer <= kMostTablePairs / shorter) return;
  throw Error(
      ExitCode::kBadData,
      "a segment of " + with_thousands(longer) + " words or characters is too long to be aligned",
      "give one sentence or utterance a line");
}

}  // namespace

std::vector<AlignedPair> align_edits(Words reference, Words hypothesis) {
  const auto starts = std::ranges::mismatch(reference, hypothesis);
  const auto before = static_cast<size_t>(starts.in1 - reference.begin());
  const Words rest = reference.subspan(before), other = hypothesis.subspan(before);
  const auto ends = std::mismatch(rest.rbegin(), rest.rend(), other.rbegin(), other.rend());
  const auto behind = static_cast<size_t>(ends.first - rest.rbegin());
  const Words middle = rest.first(rest.size() - behind);
  const Words other_middle = other.first(other.size() - behind);
  require_small_table(middle, other_middle);
  StepTable steps(middle, other_middle);

  std::vector<AlignedPair> pairs;  // from the end on
  auto i = static_cast<int64_t>(reference.size()), j = static_cast<int64_t>(hypothesis.size());
  for (size_t k = 0; k < behind; ++k) pairs.push_back({Edit::kHit, --i, --j});
  const auto begin = static_cast<int64_t>(before);
  while (i > begin || j > begin) {
    const Edit edit = steps.at(static_cast<size_t>(i - begin), static_cast<size_t>(j - begin));
    AlignedPair pair{.edit = edit};
    if (edit != Edit::kInsertion) pair.reference = --i;
    if (edit != Edit::kDeletion) pair.hypothesis = --j;
    pairs.push_back(pair);
  }
  while (i > 0) pairs.push_back({Edit::kHit, --i, --j});
  std::ranges::reverse(pairs);
  return pairs;
}

}  // namespace stretto::metrics
