#include "families/speech_recognition/transcript_errors.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/text.h"
#include "metrics/edit_alignment.h"
#include "metrics/speech_text.h"
#include "metrics/text_units.h"
#include "text/code_points.h"

namespace stretto::tasks {
namespace {

using Units = std::vector<std::u32string>;

constexpr const char* kNoWord = "-";

std::u32string normalised(const std::string& text, const std::string& normalize) {
  return metrics::find_normalization(normalize)(metrics::decode_utf8(text));
}

metrics::EditCounts counts_of(const Units& reference, const Units& hypothesis) {
  metrics::Vocabulary numbers;
  const auto reference_ids = numbers.ids(reference), hypothesis_ids = numbers.ids(hypothesis);
  return metrics::count_edits(reference_ids, hypothesis_ids);
}

std::string utf8(std::u32string_view word) {
  std::string text;
  for (const char32_t c : word) text::append_utf8(text, c);
  return text;
}

std::string in_a_column(std::string text) {
  for (char& c : text) {
    if (c == '\t' || c == '\n' || c == '\r') c = ' ';
  }
  return text;
}

}  // namespace

TranscriptErrors transcript_errors(const std::string& reference, const std::string& hypothesis,
                                   const std::string& normalize) {
  const std::u32string wanted = normalised(reference, normalize);
  const std::u32string found = normalised(hypothesis, normalize);
  return {
      .words = counts_of(metrics::words_of_transcript(wanted), metrics::words_of_transcript(found)),
      .characters = counts_of(metrics::characters_of_transcript(wanted),
                              metrics::characters_of_transcript(found))};
}

double error_rate(const metrics::EditCounts& counts) {
  const auto length = static_cast<double>(counts.hits + counts.substitutions + counts.deletions);
  const auto errors = static_cast<double>(counts.errors());
  return 100 * (length > 0 ? errors / length : errors);
}

std::string utterance_table(const std::vector<UtteranceResult>& results,
                            const std::string& normalize) {
  std::string table =
      "id\tseconds\twords\tsubstitutions\tdeletions\tinsertions\tloss\treference\thypothesis\n";
  for (const auto& result : results) {
    std::vector<std::string> columns{result.id, fixed(result.seconds, 3)};
    if (result.is_read) {
      const auto words = transcript_errors(result.reference, result.hypothesis, normalize).words;
      for (const int64_t count : {words.hits + words.substitutions + words.deletions,
                                  words.substitutions, words.deletions, words.insertions}) {
        columns.push_back(std::to_string(count));
      }
      columns.push_back(std::isnan(result.loss) ? kNoWord : fixed(result.loss, 6));
    } else {
      columns.insert(columns.end(), 5, kNoWord);
    }
    columns.push_back(result.reference);
    columns.push_back(result.hypothesis);
    for (std::string& column : columns) column = in_a_column(std::move(column));
    table += join(columns, "\t") + "\n";
  }
  return table;
}

void Confusions::add(const std::string& reference, const std::string& hypothesis) {
  const Units wanted = metrics::words_of_transcript(normalised(reference, normalize_));
  const Units found = metrics::words_of_transcript(normalised(hypothesis, normalize_));
  metrics::Vocabulary numbers;
  const auto wanted_ids = numbers.ids(wanted), found_ids = numbers.ids(found);
  for (const auto& pair : metrics::align_edits(wanted_ids, found_ids)) {
    if (pair.edit == metrics::Edit::kHit) continue;
    const auto word = [](const Units& words, int64_t place) {
      return place < 0 ? std::string(kNoWord) : utf8(words[static_cast<size_t>(place)]);
    };
    ++counts_[{word(wanted, pair.reference), word(found, pair.hypothesis)}];
  }
}

std::string Confusions::text() const {
  std::vector<std::pair<std::pair<std::string, std::string>, int64_t>> sorted(counts_.begin(),
                                                                              counts_.end());
  std::ranges::stable_sort(sorted,
                           [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [words, count] : sorted) {
    text += std::to_string(count) + "\t" + in_a_column(words.first) + "\t" +
            in_a_column(words.second) + "\n";
  }
  return text;
}

}  // namespace stretto::tasks
