#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "data/batch.h"
#include "data/length_batches.h"
#include "data/squad/squad_file.h"
#include "data/squad/windows.h"
#include "data/text_columns.h"
#include "text/tokenizer.h"

/// Questions with windows of their paragraphs as a span model reads them: `[CLS] question [SEP]
/// window [SEP]`, by the template of the tokenizer.
namespace stretto::data {

/// The columns of a batch behind those of data/text_columns.h.
enum SpanColumn : size_t {
  /// uint8, one for each row: 1 where an answer may begin and end, and at the row of no answer.
  kAllowedRows = kFirstOwnColumn,
  /// Two values for each sequence: the rows in it at which the answer begins and ends; of no answer
  /// both are the row for that.
  kAnswerRows = kFirstOwnColumn + 1,
};
/// A batch that windows can be appended to.
Batch empty_window_batch();

/// A text as ids, and the code points of it that each stands for.
struct TextTokens {
  std::vector<int64_t> ids;
  std::vector<Span> code_points;  ///< of each id, in ascending order
};
/// Throws Error(kUsage) where the tokenizer does not know its offsets.
TextTokens tokenize(std::string_view text, const text::Tokenizer& tokenizer);

/// All texts of some questions, as a tokenizer has them.
struct QuestionTokens {
  std::vector<TextTokens> paragraphs;           ///< as SquadData::paragraphs
  std::vector<std::vector<int64_t>> questions;  ///< ids, as SquadData::questions
};
/// Throws as tokenize().
QuestionTokens tokenize_questions(const SquadData& data, const text::Tokenizer& tokenizer,
                                  int64_t threads = 1);

/// How a question and a window become one sequence.
class PairLayout {
 public:
  /// Throws Error(kUsage) for a template without a special token, at which no answer has its
  /// scores, or without the question or the paragraph.
  explicit PairLayout(const text::SequenceTemplate& sequences);

  int64_t num_specials() const { return std::ssize(slots_) - 2; }
  /// The row of no answer, and that of the window's first token, behind so many of the question.
  int64_t none_row(int64_t question_tokens) const;
  int64_t first_row(int64_t question_tokens) const;
  const std::vector<text::SequenceTemplate::Slot>& slots() const { return slots_; }

 private:
  int64_t row_of(size_t slot, int64_t question_tokens) const;

  std::vector<text::SequenceTemplate::Slot> slots_;
  size_t none_slot_ = 0, window_slot_ = 0;
};

/// What a window teaches.
enum class WindowLabel : uint8_t {
  kAnswer,   ///< its answer
  kNone,     ///< that it has none: the question is impossible, or the answer lies elsewhere
  kUnknown,  ///< nothing: it is not stated how the question is answered, or no token has the answer
};

struct QuestionWindow {
  size_t question = 0;  ///< its place in SquadData::questions
  Span tokens;          ///< of the paragraph
  WindowLabel label = WindowLabel::kUnknown;
  Span answer = {};  ///< tokens of the paragraph, with kAnswer
};

/// All windows of all questions, in the order of the questions.
class QuestionWindows {
 public:
  /// The first answer of each question is the one that is learned.
  /// Throws as tokenize() and PairLayout do, and Error(kUsage) where a window has no room for a
  /// token of the paragraph.
  /// @param options  num_specials does not count: the tokenizer has its own
  QuestionWindows(SquadData data, const text::Tokenizer& tokenizer, const WindowOptions& options);
  /// @param tokens  as tokenize_questions() makes them
  QuestionWindows(std::shared_ptr<const SquadData> data, QuestionTokens tokens,
                  const text::SequenceTemplate& sequences, const WindowOptions& options);

  const SquadData& data() const { return *data_; }
  const SquadQuestion& question(size_t number) const { return data_->questions[number]; }
  const SquadParagraph& paragraph_of(size_t question) const {
    return data_->paragraphs[data_->questions[question].paragraph];
  }
  const TextTokens& tokens_of(size_t question) const {
    return paragraphs_[data_->questions[question].paragraph];
  }
  size_t num_questions() const { return data_->questions.size(); }

  int64_t num_windows() const { return std::ssize(windows_); }
  const QuestionWindow& window(int64_t number) const {
    return windows_[static_cast<size_t>(number)];
  }
  /// The numbers of a question's windows.
  Span windows_of(size_t question) const {
    return {.begin = first_window_[question], .end = first_window_[question + 1]};
  }
  /// Rows of a window's sequence; the place of no answer and of its first token among them.
  int64_t num_rows(int64_t window) const;
  int64_t none_row(int64_t window) const;
  int64_t first_row(int64_t window) const;

  /// Appends a window to a batch of empty_window_batch(): all columns, with its number as id. The
  /// answer of a window with kUnknown is the row of no answer.
  void append(int64_t window, Batch& batch) const;

  /// Rows of all windows, and those of them that have an id. No window is made for it.
  int64_t num_rows() const;
  int64_t count_rows(int64_t id) const;
  /// A hash of all that the windows are made of. No window is made for it.
  uint64_t hash() const;

  /// Questions that lost their end, and the tokens of those ends.
  int64_t num_cut_questions() const { return num_cut_questions_; }
  int64_t num_cut_tokens() const { return num_cut_tokens_; }
  /// Questions whose answer shares no character with a token.
  int64_t num_unreachable() const { return num_unreachable_; }

 private:
  void cut(QuestionTokens tokens, const WindowOptions& options);
  void add_windows(size_t question, const WindowOptions& options);
  int64_t question_tokens(int64_t window) const;
  void fill_rows(int64_t window, Batch& batch) const;

  std::shared_ptr<const SquadData> data_;
  PairLayout layout_;
  std::vector<TextTokens> paragraphs_;
  std::vector<std::vector<int64_t>> questions_;  ///< ids, cut to those that are kept
  std::vector<QuestionWindow> windows_;
  std::vector<int64_t> first_window_{0};
  int64_t num_cut_questions_ = 0, num_cut_tokens_ = 0, num_unreachable_ = 0;
};

/// Windows that teach something, in the order of their lengths.
class WindowSamples : public LengthSamples {
 public:
  explicit WindowSamples(std::shared_ptr<const QuestionWindows> windows);

  const LengthRuns& runs() const override { return order_.runs; }
  int64_t sample_at(uint64_t position) const override {
    return known_[order_.samples[static_cast<size_t>(position)]];
  }
  Batch empty_batch() const override { return empty_window_batch(); }
  void append(int64_t /*epoch*/, int64_t sample, Batch& batch) const override {
    windows_->append(sample, batch);
  }
  int64_t size() const { return std::ssize(known_); }

 private:
  std::shared_ptr<const QuestionWindows> windows_;
  std::vector<int64_t> known_;  ///< numbers of the windows
  LengthOrder order_;
};

}  // namespace stretto::data
