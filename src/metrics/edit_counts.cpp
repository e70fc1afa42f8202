#include "metrics/edit_counts.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace stretto::metrics {
namespace {

using Words = std::span<const uint32_t>;

constexpr int64_t kMaxPairs = int64_t{1} << 33;

/// Where an alignment of two beginnings stands: its errors, and how many of them are deletions. The
/// other counts follow from both and from the lengths.
struct Aligned {
  int32_t errors = 0, deletions = 0;
};

int64_t common_beginning(Words a, Words b) {
  return std::ranges::mismatch(a, b).in1 - a.begin();
}

int64_t common_end(Words a, Words b) {
  const auto ends = std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend());
  return ends.first - a.rbegin();
}

void require_few_pairs(Words reference, Words hypothesis) {
  const auto longer = static_cast<int64_t>(std::max(reference.size(), hypothesis.size()));
  const auto shorter = static_cast<int64_t>(std::min(reference.size(), hypothesis.size()));
  if (shorter == 0 || longer <= kMaxPairs / shorter) return;
  throw Error(
      ExitCode::kBadData,
      "a segment of " + with_thousands(longer) + " words or characters is too long to be aligned",
      "give one sentence or utterance a line");
}

/// One more word of the reference: from the row of the alignments without it to that with it.
void add_word(uint32_t word, Words hypothesis, std::vector<Aligned>& row) {
  Aligned diagonal = row[0];  // both without their last word
  ++row[0].errors;
  ++row[0].deletions;
  for (size_t j = 1; j <= hypothesis.size(); ++j) {
    const Aligned above = row[j],
                  left = row[j - 1];  // one word less of the reference, the hypothesis
    const int32_t paired = diagonal.errors + (word == hypothesis[j - 1] ? 0 : 1);
    const int32_t errors = std::min({paired, above.errors + 1, left.errors + 1});
    if (errors == above.errors + 1) {
      row[j] = {errors, above.deletions + 1};
    } else if (left.errors < diagonal.errors) {
      row[j] = {errors, left.deletions};
    } else {
      row[j] = {errors, diagonal.deletions};
    }
    diagonal = above;
  }
}

}  // namespace

EditCounts count_edits(Words reference, Words hypothesis) {
  const int64_t before = common_beginning(reference, hypothesis);
  reference = reference.subspan(static_cast<size_t>(before));
  hypothesis = hypothesis.subspan(static_cast<size_t>(before));
  const int64_t behind = common_end(reference, hypothesis);
  reference = reference.first(reference.size() - static_cast<size_t>(behind));
  hypothesis = hypothesis.first(hypothesis.size() - static_cast<size_t>(behind));
  require_few_pairs(reference, hypothesis);

  std::vector<Aligned> row(hypothesis.size() + 1);
  for (size_t j = 0; j < row.size(); ++j) row[j].errors = static_cast<int32_t>(j);
  for (const uint32_t word : reference) add_word(word, hypothesis, row);

  const Aligned end = row.back();
  const auto num_reference = static_cast<int64_t>(reference.size());
  const auto num_hypothesis = static_cast<int64_t>(hypothesis.size());
  EditCounts counts{.deletions = end.deletions,
                    .insertions = num_hypothesis - num_reference + end.deletions};
  counts.substitutions = end.errors - counts.deletions - counts.insertions;
  counts.hits = num_reference - counts.deletions - counts.substitutions + before + behind;
  return counts;
}

}  // namespace stretto::metrics
