#include "data/squad/question_store.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/hash.h"
#include "data/cache_folder.h"
#include "data/cached_inputs.h"
#include "data/sample_store.h"
#include "data/start_memory.h"

namespace stretto::data {
namespace {

/// Part of the keys: a change of the rules of reading, or of the parts, makes new stores.
constexpr uint64_t kQuestionsVersion = 1, kTokensVersion = 1;

/// The parts of a store of questions.
enum QuestionsPart : size_t {
  /// Text and title of each paragraph, then id and text of each question and its answers' texts.
  kTexts,
  kTextEnds,      ///< uint64 [texts]
  kQuestions,     ///< uint64 [3 * questions]: paragraph, number of answers, whether impossible
  kAnswerBegins,  ///< int64 [answers]
  kNumQuestionsParts,
};
/// The words of its head; behind them what was left out.
enum QuestionsWord : size_t { kParagraphs, kSkippedAnswers, kSkippedQuestions, kNumWords };

/// The parts of a store of tokens.
enum TokensPart : size_t {
  kIds,           ///< uint32: all paragraphs, then all questions
  kIdEnds,        ///< uint64 [paragraphs + questions]
  kParagraphIds,  ///< int64 [2 * ids of paragraphs]: the code points that each stands for
  kNumTokensParts,
};

uint64_t questions_key(const CachedInputs& inputs, const SquadReading& reading) {
  std::string text = "questions " + std::to_string(kQuestionsVersion);
  for (const auto& content : inputs.contents) text += "\n" + content;
  text += "\n" + std::to_string(static_cast<int>(reading.bad_answers));
  text += reading.require_answers ? " answered" : "";
  text += reading.bad_samples.skips ? " skip" : "";
  return xxh3_64(text);
}

uint64_t tokens_key(uint64_t questions, const text::Tokenizer& tokenizer) {
  return xxh3_64("question tokens " + std::to_string(kTokensVersion) + "\n" + hex64(questions) +
                 " " + hex64(tokenizer.fingerprint()) + " " + std::to_string(tokenizer.size()));
}

/// @return the words of the head
std::vector<uint64_t> write_questions(const SquadData& data, std::span<const std::string> paths,
                                      SampleStoreWriter& writer) {
  uint64_t end = 0;
  const auto add = [&](std::string_view text) {
    writer.append(kTexts, text);
    writer.append_value<uint64_t>(kTextEnds, end += text.size());
  };
  for (const auto& paragraph : data.paragraphs) {
    add(paragraph.text);
    add(paragraph.title);
  }
  for (const auto& question : data.questions) {
    add(question.id);
    add(question.text);
    for (const uint64_t number : {uint64_t{question.paragraph}, uint64_t{question.answers.size()},
                                  uint64_t{question.is_impossible}}) {
      writer.append_value(kQuestions, number);
    }
    for (const auto& answer : question.answers) {
      add(answer.text);
      writer.append_value(kAnswerBegins, answer.begin);
    }
  }
  std::vector<uint64_t> words{data.paragraphs.size(), static_cast<uint64_t>(data.skipped_answers),
                              static_cast<uint64_t>(data.skipped_questions)};
  append_left_out(words, data.bad, paths);
  return words;
}

/// Takes the texts of a store one after the other.
class StoredTexts {
 public:
  explicit StoredTexts(const SampleStore& store)
      : texts_(store.part(kTexts)), ends_(store.array<uint64_t>(kTextEnds)) {}

  bool next(std::string& text) {
    if (next_ == ends_.size() || ends_[next_] < begin_ || ends_[next_] > texts_.size()) {
      return false;
    }
    text = texts_.substr(begin_, ends_[next_] - begin_);
    begin_ = ends_[next_++];
    return true;
  }
  bool is_at_end() const { return next_ == ends_.size() && begin_ == texts_.size(); }

 private:
  std::string_view texts_;
  std::span<const uint64_t> ends_;
  size_t next_ = 0, begin_ = 0;
};

/// Nothing where the parts do not belong together.
std::optional<SquadData> questions_of(const SampleStore& store,
                                      std::span<const std::string> paths) {
  const auto& words = store.words();
  const auto rows = store.array<uint64_t>(kQuestions);
  const auto begins = store.array<int64_t>(kAnswerBegins);
  if (words.size() < kNumWords || rows.size() % 3 != 0) return std::nullopt;
  if (words[kParagraphs] > store.array<uint64_t>(kTextEnds).size()) return std::nullopt;
  SquadData data;
  data.skipped_answers = static_cast<int64_t>(words[kSkippedAnswers]);
  data.skipped_questions = static_cast<int64_t>(words[kSkippedQuestions]);
  size_t at = kNumWords;
  if (!take_left_out(words, at, paths, data.bad) || at != words.size()) return std::nullopt;
  StoredTexts texts(store);
  data.paragraphs.resize(words[kParagraphs]);
  for (auto& paragraph : data.paragraphs) {
    if (!texts.next(paragraph.text) || !texts.next(paragraph.title)) return std::nullopt;
  }
  size_t answer = 0;
  data.questions.resize(rows.size() / 3);
  for (size_t i = 0; i < data.questions.size(); ++i) {
    auto& question = data.questions[i];
    const auto row = rows.subspan(3 * i, 3);
    if (row[0] >= data.paragraphs.size() || row[1] > begins.size() - answer) return std::nullopt;
    question.paragraph = row[0];
    question.is_impossible = row[2] != 0;
    if (!texts.next(question.id) || !texts.next(question.text)) return std::nullopt;
    question.answers.resize(row[1]);
    for (auto& each : question.answers) {
      if (!texts.next(each.text)) return std::nullopt;
      each.begin = begins[answer++];
    }
  }
  if (!texts.is_at_end() || answer != begins.size()) return std::nullopt;
  return data;
}

/// The questions of these files by a name for this process; what was left out names its files.
std::string name_in_memory(uint64_t key, const std::vector<std::string>& paths) {
  std::string name = "questions " + hex64(key);
  for (const auto& path : paths) name += "\n" + path;
  return name;
}

/// Nothing where the files cannot be told apart, or the system refuses to keep them: then reading
/// says what is wrong with them.
std::optional<StoredQuestions> questions_in_cache(const std::vector<std::string>& paths,
                                                  const SquadReading& reading,
                                                  const QuestionCache& cache,
                                                  std::string& refusal) {
  std::optional<StoredQuestions> found;
  refusal = refusal_of([&] {
    const auto inputs = open_cached_inputs(cache.dir, paths);
    if (!inputs) return;
    const uint64_t key = questions_key(*inputs, reading);
    const std::string name = name_in_memory(key, paths);
    if (auto held = std::static_pointer_cast<const SquadData>(StartMemory::find_read(name))) {
      found = {.data = std::move(held), .key = key, .from_cache = true};
      return;
    }
    std::optional<SquadData> data;
    const auto store = open_samples({.root = inputs->root,
                                     .kind = "questions",
                                     .key = key,
                                     .num_parts = kNumQuestionsParts,
                                     .threads = cache.threads},
                                    [&](SampleStoreWriter& writer) {
                                      data = read_squad(paths, reading);
                                      inputs->files.check_unchanged();
                                      return write_questions(*data, paths, writer);
                                    });
    if (!data) data = questions_of(store, paths);
    if (!data) return;
    found = {.data = std::make_shared<const SquadData>(std::move(*data)),
             .key = key,
             .from_cache = store.from_cache()};
    StartMemory::keep_read(name, found->data);
  });
  return found;
}

std::vector<uint64_t> write_tokens(const QuestionTokens& tokens, SampleStoreWriter& writer) {
  uint64_t end = 0;
  std::vector<uint32_t> ids;
  const auto add = [&](const std::vector<int64_t>& of_text) {
    ids.assign(of_text.begin(), of_text.end());
    writer.append_values<uint32_t>(kIds, ids);
    writer.append_value<uint64_t>(kIdEnds, end += ids.size());
  };
  for (const auto& paragraph : tokens.paragraphs) {
    add(paragraph.ids);
    for (const Span& span : paragraph.code_points) {
      writer.append_value(kParagraphIds, span.begin);
      writer.append_value(kParagraphIds, span.end);
    }
  }
  for (const auto& question : tokens.questions) add(question);
  return {};
}

std::optional<QuestionTokens> tokens_of(const SampleStore& store, const SquadData& data) {
  const auto ids = store.array<uint32_t>(kIds);
  const auto ends = store.array<uint64_t>(kIdEnds);
  const auto spans = store.array<int64_t>(kParagraphIds);
  const size_t num_paragraphs = data.paragraphs.size();
  if (ends.size() != num_paragraphs + data.questions.size() ||
      !std::is_sorted(ends.begin(), ends.end()) || (ends.empty() ? 0 : ends.back()) != ids.size() ||
      spans.size() != 2 * (num_paragraphs == 0 ? 0 : ends[num_paragraphs - 1])) {
    return std::nullopt;
  }
  QuestionTokens tokens;
  tokens.paragraphs.resize(num_paragraphs);
  tokens.questions.resize(data.questions.size());
  uint64_t begin = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    const auto some = ids.subspan(begin, ends[i] - begin);
    auto& of_text =
        i < num_paragraphs ? tokens.paragraphs[i].ids : tokens.questions[i - num_paragraphs];
    of_text.assign(some.begin(), some.end());
    for (uint64_t id = begin; i < num_paragraphs && id < ends[i]; ++id) {
      tokens.paragraphs[i].code_points.push_back(
          {.begin = spans[2 * id], .end = spans[2 * id + 1]});
    }
    begin = ends[i];
  }
  return tokens;
}

}  // namespace

StoredQuestions open_squad(std::span<const std::string> paths, const SquadReading& reading,
                           const QuestionCache& cache) {
  const std::vector<std::string> names(paths.begin(), paths.end());
  std::string refusal;
  auto found = questions_in_cache(names, reading, cache, refusal);
  if (!found) {
    return {.data = std::make_shared<const SquadData>(read_squad(paths, reading)),
            .refusal = refusal};
  }
  // A store may have been made under another bound.
  if (reading.bad_samples.skips) require_within(reading.bad_samples, found->data->bad);
  return std::move(*found);
}

QuestionTokens open_question_tokens(const StoredQuestions& questions,
                                    const text::Tokenizer& tokenizer, const QuestionCache& cache) {
  std::optional<QuestionTokens> tokens;
  const auto make = [&] { return tokenize_questions(*questions.data, tokenizer, cache.threads); };
  if (questions.key == 0) return make();
  refusal_of([&] {
    const auto store = open_samples({.root = open_cache(cache.dir),
                                     .kind = "question_tokens",
                                     .key = tokens_key(questions.key, tokenizer),
                                     .num_parts = kNumTokensParts,
                                     .threads = cache.threads},
                                    [&](SampleStoreWriter& writer) {
                                      tokens = make();
                                      return write_tokens(*tokens, writer);
                                    });
    if (!tokens) tokens = tokens_of(store, *questions.data);
  });
  return tokens ? std::move(*tokens) : make();
}

}  // namespace stretto::data
