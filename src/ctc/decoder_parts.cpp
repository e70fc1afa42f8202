#include "ctc/decoder_parts.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "text/ngram/open_ngram_model.h"

namespace stretto::ctc {
namespace {

constexpr double kLn10 = 2.302585092994045684;

void check(const CtcLabels& labels, const CtcOptions& options) {
  const auto size = labels.names.size();
  if (size == 0 || labels.texts.size() != size || labels.begins_word.size() != size ||
      labels.separator >= labels.size()) {
    throw std::invalid_argument("[ctc] labels must have a name, a text and a mark each");
  }
  if (options.method != "beam") return;
  if (options.lexicon_from_lm && !options.lexicon.empty()) {
    throw Error(ExitCode::kUsage, "decode.lexicon_from_lm: decode.lexicon names a lexicon, too",
                "leave one of the two out");
  }
  if (options.lexicon_from_lm && (options.lm.empty() || options.lm_unit != "words")) {
    throw Error(ExitCode::kUsage, "decode.lexicon_from_lm: there is no language model of words",
                "set decode.lm, with decode.lm_unit = \"words\"");
  }
  const bool has_words = labels.separator >= 0 || options.lexicon_from_lm ||
                         !options.lexicon.empty() ||
                         std::find(labels.begins_word.begin(), labels.begins_word.end(), true) !=
                             labels.begins_word.end();
  if (!options.lm.empty() && options.lm_unit == "words" && !has_words) {
    throw Error(ExitCode::kUsage,
                "decode.lm_unit: no label of the model separates words, so that a language model "
                "of words scores nothing",
                "set decode.lexicon, or take a model of labels with decode.lm_unit = \"labels\"");
  }
  if (!options.hot_words.empty() && !has_words) {
    throw Error(ExitCode::kUsage,
                "decode.hot_words: no label of the model separates words, and a hot word counts "
                "between ends of words",
                "set decode.lexicon, or leave the hot words out");
  }
  if (options.nbest > options.beam_size) {
    throw Error(ExitCode::kUsage,
                "decode.nbest: must be at most decode.beam_size (" +
                    std::to_string(options.beam_size) + "), got " + std::to_string(options.nbest),
                "raise decode.beam_size, or lower decode.nbest");
  }
}

/// The token of a separator in a language model of labels, whose tokens have spaces between.
int32_t separator_token(const text::NgramModel& lm) {
  for (const std::string_view name : {"|", "<space>", "\xE2\x96\x81", "_", "<sp>"}) {
    if (const uint32_t index = lm.index(name); index != 0) return static_cast<int32_t>(index);
  }
  return -1;
}

int32_t known_token(const text::NgramModel& lm, std::string_view word) {
  const uint32_t index = lm.index(word);
  return index == 0 ? -1 : static_cast<int32_t>(index);
}

std::vector<int32_t> label_tokens(const text::NgramModel& lm, const CtcLabels& labels,
                                  const std::string& path) {
  std::vector<int32_t> tokens;
  int64_t known = 0;
  for (int64_t i = 0; i < labels.size(); ++i) {
    const std::string& name = labels.names[static_cast<size_t>(i)];
    int32_t token = known_token(lm, name);
    if (token < 0 && i == labels.separator) token = separator_token(lm);
    if (token >= 0) ++known;
    tokens.push_back(token);
  }
  if (known == 0) {
    throw Error(ExitCode::kBadData, path + ": the language model knows none of the model's labels",
                "decode.lm_unit = \"words\" if its tokens are words");
  }
  return tokens;
}

/// Words of the language model that can be spelled.
std::vector<text::LexiconEntry> lexicon_of_lm(const text::NgramModel& lm,
                                              const text::Speller& spell, const std::string& path,
                                              int64_t& left_out) {
  if (!lm.has_strings()) {
    throw Error(ExitCode::kBadData,
                path + ": the file of KenLM has no words, but hashes of them alone",
                "make it again with build_binary, without -v, or set decode.lexicon");
  }
  std::vector<text::LexiconEntry> entries;
  for (uint32_t i = 1; i < lm.num_words(); ++i) {
    if (i == lm.begin_index() || i == lm.end_index()) continue;
    text::LexiconEntry entry;
    entry.word = lm.word(i);
    entry.labels = spell(entry.word);
    if (entry.labels.empty()) {
      ++left_out;
    } else {
      entries.push_back(std::move(entry));
    }
  }
  if (entries.empty()) {
    throw Error(ExitCode::kBadData,
                path + ": the model's labels can spell no word of the language model",
                "its words are written in the letters of the training text, in their case");
  }
  return entries;
}

/// flashlight's lexicons end each word with the separator, which ends words here anyway.
void strip_separators(std::vector<text::LexiconEntry>& lexicon, const CtcLabels& labels,
                      int64_t& left_out) {
  const auto separator = static_cast<int32_t>(labels.separator);
  for (text::LexiconEntry& entry : lexicon) {
    auto& spelling = entry.labels;
    while (separator >= 0 && !spelling.empty() && spelling.back() == separator) spelling.pop_back();
    while (separator >= 0 && !spelling.empty() && spelling.front() == separator)
      spelling.erase(spelling.begin());
  }
  const auto is_out = [&](const text::LexiconEntry& entry) {
    return entry.labels.empty() ||
           std::any_of(entry.labels.begin(), entry.labels.end(), [&](int32_t label) {
             return label < 0 || label >= labels.size() || label == separator;
           });
  };
  left_out += static_cast<int64_t>(std::erase_if(lexicon, is_out));
}

bool is_hot(const CtcOptions& options, const std::string& word) {
  return std::any_of(options.hot_words.begin(), options.hot_words.end(),
                     [&](const std::string& hot) { return trim(hot) == word; });
}

/// What a search adds for each word at most before it knows what stands in front of it.
std::vector<float> word_scores(const DecoderParts& parts) {
  std::vector<float> scores;
  for (size_t i = 0; i < parts.lexicon.size(); ++i) {
    double score = is_hot(parts.options, parts.lexicon[i].word) ? parts.options.hot_weight : 0;
    if (parts.lm_unit == LmUnit::kWords) {
      const int32_t token = parts.tokens[i];
      const auto index = static_cast<uint32_t>(std::max(token, 0));
      score += parts.options.alpha * kLn10 * double{parts.lm->unigram(index)};
      if (token < 0) score += parts.options.unknown_score;
    }
    scores.push_back(static_cast<float>(score));
  }
  return scores;
}

void add_lexicon(DecoderParts& parts, const text::Speller& spell) {
  const CtcOptions& options = parts.options;
  if (options.lexicon_from_lm) {
    parts.lexicon = lexicon_of_lm(*parts.lm, spell, options.lm, parts.num_left_out);
  } else if (!options.lexicon.empty()) {
    parts.lexicon =
        text::read_lexicon(options.lexicon, parts.labels.names, spell, parts.num_left_out);
  } else {
    return;
  }
  strip_separators(parts.lexicon, parts.labels, parts.num_left_out);
  if (parts.lexicon.empty()) {
    throw Error(ExitCode::kBadData, options.lexicon + ": no word has a spelling without separators",
                "a word's labels are its letters or pieces, and no space stands among them");
  }
  if (parts.num_left_out > 0) {
    log::warn(counted(parts.num_left_out, "word") + " of " +
              (options.lexicon_from_lm ? options.lm : options.lexicon) +
              " cannot be spelt with the labels of the model, and will never be heard");
  }
  if (parts.lm_unit == LmUnit::kWords) {
    for (const text::LexiconEntry& entry : parts.lexicon)
      parts.tokens.push_back(known_token(*parts.lm, entry.word));
  }
  parts.trie = text::LexiconTrie(parts.lexicon, word_scores(parts));
}

}  // namespace

DecoderParts make_decoder_parts(CtcLabels labels, CtcOptions options, const text::Speller& spell,
                                const std::filesystem::path& cache_dir) {
  check(labels, options);
  DecoderParts parts;
  parts.labels = std::move(labels);
  parts.options = std::move(options);
  if (parts.options.method != "beam") return parts;
  const std::string& path = parts.options.lm;
  if (!path.empty()) {
    parts.lm = text::open_ngram_model(path, cache_dir);
    parts.lm_unit = parts.options.lm_unit == "labels" ? LmUnit::kLabels : LmUnit::kWords;
    if (parts.lm_unit == LmUnit::kLabels)
      parts.tokens = label_tokens(*parts.lm, parts.labels, path);
  }
  add_lexicon(parts, spell);
  if (!parts.options.hot_words.empty())
    parts.hot_words = text::HotWords(parts.options.hot_words, parts.options.hot_weight);
  return parts;
}

}  // namespace stretto::ctc
