#include "distill/word_pairs.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/atomic_file.h"
#include "base/text.h"
#include "data/lines.h"

namespace stretto::distill {
namespace {

constexpr uint32_t kEmptyWord = 0;

class WordIds {
 public:
  uint32_t id(const std::string& word) {
    const auto [found, is_new] = ids_.try_emplace(word, uint32_t(words_.size()));
    if (is_new) words_.push_back(word);
    return found->second;
  }
  const std::string& word(uint32_t id) const { return words_[id]; }
  size_t size() const { return words_.size(); }

 private:
  std::unordered_map<std::string, uint32_t> ids_;
  std::vector<std::string> words_;
};

struct WordLines {
  WordIds source_words, label_words;
  std::vector<std::vector<uint32_t>> sources, labels;  ///< sources begin with the empty word
  int64_t words = 0, bytes = 0;                        ///< of all labels
};

// Mean length of a word in bytes above which a language seems to be written without spaces: a
// letter has three bytes in many scripts.
constexpr int64_t kLongestWords = 30;

bool is_ascii_punctuation(char c) {
  return std::ispunct(static_cast<unsigned char>(c)) != 0 && static_cast<unsigned char>(c) < 128;
}

// "(word)," is four words.
void add_words_of_token(std::string_view token, std::vector<std::string>& words) {
  size_t begin = 0, end = token.size();
  for (; begin < end && is_ascii_punctuation(token[begin]); ++begin) {
    words.emplace_back(1, token[begin]);
  }
  const size_t inner = begin;
  while (end > inner && is_ascii_punctuation(token[end - 1])) --end;
  if (end > inner) words.emplace_back(token.substr(inner, end - inner));
  for (; end < token.size(); ++end) words.emplace_back(1, token[end]);
}

std::vector<uint32_t> ids_of_words(std::string_view line, bool splits_punctuation, WordIds& ids) {
  std::vector<uint32_t> found;
  for (const auto& word : words_of(line, splits_punctuation)) {
    if (word.size() <= experiment::kMostWordBytes) found.push_back(ids.id(word));
  }
  return found;
}

void read_word_lines(const experiment::LabelledText& text, const WordPairOptions& options,
                     WordLines& read) {
  data::LineReader sources(text.text), labels(text.labels);
  const auto most = static_cast<size_t>(options.max_words);
  std::string_view source, label;
  while (std::ssize(read.sources) < options.max_lines && sources.next(source) &&
         labels.next(label)) {
    auto label_ids = ids_of_words(label, options.splits_punctuation, read.label_words);
    read.words += std::ssize(label_ids);
    read.bytes += std::ssize(label);
    auto source_ids = ids_of_words(source, options.splits_punctuation, read.source_words);
    if (label_ids.empty() || label_ids.size() > most || source_ids.size() > most) continue;
    source_ids.insert(source_ids.begin(), kEmptyWord);
    read.sources.push_back(std::move(source_ids));
    read.labels.push_back(std::move(label_ids));
  }
}

// p(label word | source word), of pairs that stand in a line together: a sorted row for each source
// word.
class LexicalTable {
 public:
  explicit LexicalTable(const WordLines& lines) : lines_(lines) {
    collect();
    probabilities_.assign(labels_.size(), 1.0F);
    counts_.assign(labels_.size(), 0.0);
  }

  void improve() {
    std::fill(counts_.begin(), counts_.end(), 0.0);
    for (size_t i = 0; i < lines_.sources.size(); ++i) expect(lines_.sources[i], lines_.labels[i]);
    for (size_t row = 0; row + 1 < begins_.size(); ++row) {
      double sum = 0;
      for (size_t k = begins_[row]; k < begins_[row + 1]; ++k) sum += counts_[k];
      for (size_t k = begins_[row]; k < begins_[row + 1]; ++k) {
        probabilities_[k] = sum > 0 ? static_cast<float>(counts_[k] / sum) : 0.0F;
      }
    }
  }

  /// The likeliest label words of a source word.
  std::vector<std::pair<double, uint32_t>> best_of(uint32_t source,
                                                   const WordPairOptions& options) const {
    std::vector<std::pair<double, uint32_t>> found;
    for (size_t k = begins_[source]; k < begins_[source + 1]; ++k) {
      const double p = probabilities_[k];
      if (p >= options.min_probability) found.emplace_back(p, labels_[k]);
    }
    std::sort(found.begin(), found.end(), [&](const auto& a, const auto& b) {
      if (a.first != b.first) return a.first > b.first;
      return lines_.label_words.word(a.second) < lines_.label_words.word(b.second);
    });
    if (std::ssize(found) > options.best) found.resize(static_cast<size_t>(options.best));
    return found;
  }

 private:
  void collect() {
    std::vector<uint64_t> pairs;
    size_t limit = size_t{1} << 24;
    const auto keep_once = [&] {
      std::sort(pairs.begin(), pairs.end());
      pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
    };
    for (size_t i = 0; i < lines_.sources.size(); ++i) {
      for (const uint64_t source : lines_.sources[i]) {
        for (const uint32_t label : lines_.labels[i]) pairs.push_back(source << 32 | label);
      }
      if (pairs.size() < limit) continue;
      keep_once();
      limit = 2 * pairs.size() + (size_t{1} << 24);
    }
    keep_once();
    begins_.assign(lines_.source_words.size() + 1, 0);
    for (const uint64_t pair : pairs) {
      ++begins_[(pair >> 32) + 1];
      labels_.push_back(static_cast<uint32_t>(pair));
    }
    for (size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
  }

  size_t place_of(uint32_t source, uint32_t label) const {
    const auto at = [&](size_t k) { return labels_.begin() + static_cast<std::ptrdiff_t>(k); };
    const auto found = std::lower_bound(at(begins_[source]), at(begins_[source + 1]), label);
    return static_cast<size_t>(found - labels_.begin());
  }

  void expect(const std::vector<uint32_t>& sources, const std::vector<uint32_t>& labels) {
    for (const uint32_t label : labels) {
      places_.clear();
      double sum = 0;
      for (const uint32_t source : sources) {
        places_.push_back(place_of(source, label));
        sum += probabilities_[places_.back()];
      }
      if (sum <= 0) continue;
      for (const size_t place : places_) counts_[place] += probabilities_[place] / sum;
    }
  }

  const WordLines& lines_;
  std::vector<size_t> begins_;    ///< of the row of each source word
  std::vector<uint32_t> labels_;  ///< rows
  std::vector<float> probabilities_;
  std::vector<double> counts_;
  std::vector<size_t> places_;  ///< of one label word
};

}  // namespace

std::vector<std::string> words_of(std::string_view line, bool splits_punctuation) {
  constexpr std::string_view kSpace = " \t", kPieceMark = "\u2581";
  std::vector<std::string> words;
  for (size_t begin = line.find_first_not_of(kSpace); begin != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(kSpace, begin), line.size());
    const auto token = line.substr(begin, end - begin);
    if (!splits_punctuation) {
      words.emplace_back(token);
    } else if (token.find(kPieceMark) == std::string_view::npos) {
      add_words_of_token(token, words);  // a file with other words would be one of pieces
    }
    begin = line.find_first_not_of(kSpace, end);
  }
  return words;
}

std::vector<WordPair> find_word_pairs(const std::vector<experiment::LabelledText>& texts,
                                      const WordPairOptions& options) {
  WordLines lines;
  lines.source_words.id("");  // kEmptyWord
  for (const auto& text : texts) read_word_lines(text, options, lines);
  if (lines.bytes > kLongestWords * lines.words) return {};
  LexicalTable table(lines);
  for (int i = 0; i < options.rounds; ++i) table.improve();
  std::vector<WordPair> pairs;
  std::map<std::string_view, uint32_t> by_word;
  for (uint32_t i = 1; i < lines.source_words.size(); ++i) by_word[lines.source_words.word(i)] = i;
  for (const auto& [word, id] : by_word) {
    for (const auto& [probability, label] : table.best_of(id, options)) {
      pairs.push_back({std::string(word), lines.label_words.word(label), probability});
    }
  }
  return pairs;
}

void write_word_pairs(const std::filesystem::path& path, const std::vector<WordPair>& pairs) {
  AtomicFile file(path);
  std::string bytes;
  for (const auto& pair : pairs) {
    bytes += pair.source + "\t" + pair.label + "\t" + shortest(pair.probability) + "\n";
    if (bytes.size() < (size_t{1} << 20)) continue;
    file.write(bytes);
    bytes.clear();
  }
  file.write(bytes);
  file.publish();
}

}  // namespace stretto::distill
