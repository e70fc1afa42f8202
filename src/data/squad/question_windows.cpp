#include "data/squad/question_windows.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "data/on_threads.h"
#include "data/squad/code_points.h"
#include "text/encoded_text.h"

namespace stretto::data {
namespace {

using Part = text::SequenceTemplate::Part;

size_t slot_of(const std::vector<text::SequenceTemplate::Slot>& slots, Part part,
               const char* missing) {
  const auto is_it = [part](const auto& slot) { return slot.part == part; };
  const auto found = std::find_if(slots.begin(), slots.end(), is_it);
  if (found != slots.end()) return static_cast<size_t>(found - slots.begin());
  throw Error(ExitCode::kUsage,
              std::string("tokenizer: its template for two texts has no ") + missing,
              "take a tokenizer of BERT or RoBERTa: `[CLS] question [SEP] paragraph [SEP]`");
}

Span characters_of(const SquadAnswer& answer) {
  return {.begin = answer.begin, .end = answer.begin + CodePoints(answer.text).size()};
}

}  // namespace

Batch empty_window_batch() {
  Batch batch = text_batch();
  batch.columns.emplace_back(Ragged<uint8_t>{});  // kAllowedRows
  batch.columns.emplace_back(PackedTokens{});     // kAnswerRows
  return batch;
}

TextTokens tokenize(std::string_view text, const text::Tokenizer& tokenizer) {
  TextTokens tokens;
  std::vector<text::CodePointSpan> spans;
  tokenizer.encode_with_spans(text, tokens.ids, spans);
  tokens.code_points.reserve(spans.size());
  for (const auto& [begin, end] : spans) tokens.code_points.push_back({.begin = begin, .end = end});
  return tokens;
}

QuestionTokens tokenize_questions(const SquadData& data, const text::Tokenizer& tokenizer,
                                  int64_t threads) {
  constexpr size_t kTogether = 64;
  QuestionTokens tokens;
  tokens.paragraphs.resize(data.paragraphs.size());
  tokens.questions.resize(data.questions.size());
  const size_t num_texts = data.paragraphs.size() + data.questions.size();
  for_each_on_threads((num_texts + kTogether - 1) / kTogether, threads, [&](size_t part) {
    for (size_t i = part * kTogether; i < std::min(num_texts, (part + 1) * kTogether); ++i) {
      if (i < data.paragraphs.size()) {
        tokens.paragraphs[i] = tokenize(data.paragraphs[i].text, tokenizer);
      } else {
        const size_t question = i - data.paragraphs.size();
        tokenizer.encode(data.questions[question].text, tokens.questions[question]);
      }
    }
  });
  return tokens;
}

PairLayout::PairLayout(const text::SequenceTemplate& sequences)
    : slots_(sequences.pair),
      none_slot_(slot_of(slots_, Part::kSpecial, "special token, where no answer has its score")),
      window_slot_(slot_of(slots_, Part::kSecond, "second text")) {
  slot_of(slots_, Part::kFirst, "first text");
}

int64_t PairLayout::row_of(size_t slot, int64_t question_tokens) const {
  int64_t row = 0;
  for (size_t i = 0; i < slot; ++i) row += slots_[i].part == Part::kFirst ? question_tokens : 1;
  return row;
}

int64_t PairLayout::none_row(int64_t question_tokens) const {
  return row_of(none_slot_, question_tokens);
}

int64_t PairLayout::first_row(int64_t question_tokens) const {
  return row_of(window_slot_, question_tokens);
}

QuestionWindows::QuestionWindows(SquadData data, const text::Tokenizer& tokenizer,
                                 const WindowOptions& options)
    : data_(std::make_shared<const SquadData>(std::move(data))),
      layout_(text::template_of(tokenizer)) {
  cut(tokenize_questions(*data_, tokenizer), options);
}

QuestionWindows::QuestionWindows(std::shared_ptr<const SquadData> data, QuestionTokens tokens,
                                 const text::SequenceTemplate& sequences,
                                 const WindowOptions& options)
    : data_(std::move(data)), layout_(sequences) {
  cut(std::move(tokens), options);
}

void QuestionWindows::cut(QuestionTokens tokens, const WindowOptions& options) {
  WindowOptions own = options;
  own.num_specials = layout_.num_specials();
  if (own.max_tokens - own.num_specials - own.max_question_tokens < 1) {
    throw Error(ExitCode::kUsage,
                "data.max_text_tokens: " + counted(own.max_tokens, "token") +
                    " have no room for a paragraph behind a question of " +
                    std::to_string(own.max_question_tokens) + " and " +
                    counted(own.num_specials, "special token"),
                "raise data.max_text_tokens, or lower data.max_question_tokens");
  }
  paragraphs_ = std::move(tokens.paragraphs);
  questions_ = std::move(tokens.questions);
  for (size_t i = 0; i < data_->questions.size(); ++i) add_windows(i, own);
}

void QuestionWindows::add_windows(size_t question, const WindowOptions& options) {
  const auto& asked = data_->questions[question];
  auto& ids = questions_[question];
  const auto& paragraph = tokens_of(question);
  const auto cut = cut_windows(std::ssize(ids), std::ssize(paragraph.ids), options);
  const int64_t cut_tokens = std::ssize(ids) - cut.question_tokens;
  num_cut_questions_ += cut_tokens > 0 ? 1 : 0;
  num_cut_tokens_ += cut_tokens;
  ids.resize(static_cast<size_t>(cut.question_tokens));
  std::optional<Span> answer;
  if (!asked.answers.empty()) {
    answer = tokens_of_answer(paragraph.code_points, characters_of(asked.answers.front()));
    num_unreachable_ += answer ? 0 : 1;
  }
  for (const Span& tokens : cut.spans) {
    QuestionWindow window{.question = question, .tokens = tokens};
    if (answer && answer_in_window(tokens, *answer)) {
      window.label = WindowLabel::kAnswer;
      window.answer = *answer;
    } else if (answer || asked.is_impossible) {
      window.label = WindowLabel::kNone;
    }
    windows_.push_back(window);
  }
  first_window_.push_back(std::ssize(windows_));
}

int64_t QuestionWindows::question_tokens(int64_t window) const {
  return std::ssize(questions_[this->window(window).question]);
}

int64_t QuestionWindows::num_rows(int64_t window) const {
  return layout_.num_specials() + question_tokens(window) + this->window(window).tokens.size();
}

int64_t QuestionWindows::none_row(int64_t window) const {
  return layout_.none_row(question_tokens(window));
}

int64_t QuestionWindows::first_row(int64_t window) const {
  return layout_.first_row(question_tokens(window));
}

int64_t QuestionWindows::num_rows() const {
  int64_t rows = 0;
  for (int64_t i = 0; i < num_windows(); ++i) rows += num_rows(i);
  return rows;
}

int64_t QuestionWindows::count_rows(int64_t id) const {
  const auto& slots = layout_.slots();
  const auto of_specials = std::count_if(slots.begin(), slots.end(), [&](const auto& slot) {
    return slot.part == Part::kSpecial && slot.id == id;
  });
  int64_t rows = of_specials * num_windows();
  std::vector<int64_t> before;  // each token of a paragraph
  size_t counted_paragraph = data_->paragraphs.size();
  for (size_t question = 0; question < questions_.size(); ++question) {
    const size_t paragraph = data_->questions[question].paragraph;
    if (std::exchange(counted_paragraph, paragraph) != paragraph) {
      before.assign(1, 0);
      for (const int64_t token : paragraphs_[paragraph].ids) {
        before.push_back(before.back() + (token == id ? 1 : 0));
      }
    }
    const auto& ids = questions_[question];
    const int64_t of_question = std::count(ids.begin(), ids.end(), id);
    const Span windows = windows_of(question);
    for (int64_t i = windows.begin; i < windows.end; ++i) {
      const Span tokens = window(i).tokens;
      rows += of_question + before[static_cast<size_t>(tokens.end)] -
              before[static_cast<size_t>(tokens.begin)];
    }
  }
  return rows;
}

uint64_t QuestionWindows::hash() const {
  Xxh3Stream hash;
  const auto add = [&](const std::vector<int64_t>& numbers) {
    const auto size = static_cast<int64_t>(numbers.size());
    hash.update(&size, sizeof size);
    hash.update(numbers.data(), numbers.size() * sizeof(int64_t));
  };
  for (const auto& slot : layout_.slots()) {
    add({static_cast<int64_t>(slot.part), slot.id, slot.segment});
  }
  for (const auto& paragraph : paragraphs_) add(paragraph.ids);
  for (size_t i = 0; i < questions_.size(); ++i) {
    add(questions_[i]);
    add({static_cast<int64_t>(data_->questions[i].paragraph)});
  }
  for (const auto& [question, tokens, label, answer] : windows_) {
    add({static_cast<int64_t>(question), tokens.begin, tokens.end, static_cast<int64_t>(label),
         answer.begin, answer.end});
  }
  return hash.digest();
}

void QuestionWindows::append(int64_t window, Batch& batch) const {
  const auto& [question, tokens, label, answer] = this->window(window);
  fill_rows(window, batch);
  const int64_t none = none_row(window), first = first_row(window);
  auto& allowed = batch.column<uint8_t>(kAllowedRows);
  for (int64_t row = 0; row < num_rows(window); ++row) {
    const bool in_window = row >= first && row < first + tokens.size();
    allowed.values.push_back(row == none || in_window ? 1 : 0);
  }
  allowed.close_sequence();
  const bool has_answer = label == WindowLabel::kAnswer;
  batch.column<int64_t>(kAnswerRows)
      .append({has_answer ? first + answer.begin - tokens.begin : none,
               has_answer ? first + answer.end - 1 - tokens.begin : none});
  batch.sample_ids.push_back(window);
}

void QuestionWindows::fill_rows(int64_t window, Batch& batch) const {
  const auto& [question, tokens, label, answer] = this->window(window);
  auto& ids = batch.column<int64_t>(kTokens);
  auto& segments = batch.column<int64_t>(kSegments);
  const auto add = [&](std::span<const int64_t> part, int64_t segment) {
    ids.values.insert(ids.values.end(), part.begin(), part.end());
    segments.values.insert(segments.values.end(), part.size(), segment);
  };
  const std::span<const int64_t> paragraph = tokens_of(question).ids;
  for (const auto& slot : layout_.slots()) {
    if (slot.part == Part::kSpecial) {
      add({&slot.id, 1}, slot.segment);
    } else if (slot.part == Part::kFirst) {
      add(questions_[question], slot.segment);
    } else {
      add(paragraph.subspan(static_cast<size_t>(tokens.begin), static_cast<size_t>(tokens.size())),
          slot.segment);
    }
  }
  ids.close_sequence();
  segments.close_sequence();
}

WindowSamples::WindowSamples(std::shared_ptr<const QuestionWindows> windows)
    : windows_(std::move(windows)) {
  std::vector<uint32_t> lengths;
  for (int64_t i = 0; i < windows_->num_windows(); ++i) {
    if (windows_->window(i).label == WindowLabel::kUnknown) continue;
    known_.push_back(i);
    lengths.push_back(static_cast<uint32_t>(windows_->num_rows(i)));
  }
  order_ = order_by_length({lengths});
}

}  // namespace stretto::data
