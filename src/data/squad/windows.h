#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// Long paragraphs for models of bounded length, as BERT's run_squad cuts them (Devlin et al.
/// 2019): overlapping windows, each with the whole question.
namespace stretto::data {

/// What lies from `begin` to before `end`: tokens, or bytes of a text.
struct Span {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const Span&) const = default;
};

struct WindowOptions {
  int64_t max_tokens = 384;          ///< of a window, with question and special tokens
  int64_t stride = 128;              ///< paragraph tokens from the begin of one window to the next
  int64_t max_question_tokens = 64;  ///< a longer question loses its end
  int64_t num_specials = 3;          ///< [CLS] question [SEP] paragraph [SEP]
};

struct Windows {
  int64_t question_tokens = 0;  ///< of the question that are kept, in each window
  std::vector<Span> spans;      ///< the tokens of the paragraph that each window has
};

/// All tokens of a paragraph are in some window; of two windows neither contains the other. A
/// paragraph that fits, or has no tokens, gives one window. A stride of more than a window's tokens
/// is as one of as many.
/// Throws std::invalid_argument if no token of the paragraph fits, or the stride is below 1.
Windows cut_windows(int64_t question_tokens, int64_t paragraph_tokens,
                    const WindowOptions& options);

/// For each token of the paragraph the window in which it has maximum context: where the smaller of
/// the numbers of tokens before and behind it in the window, plus 0.01 times the window's tokens,
/// is largest; the first such window.
/// @param spans  as cut_windows() gives them
std::vector<size_t> max_context_windows(std::span<const Span> spans);

/// The tokens that share characters with an answer; nullopt if none does.
/// @param offsets  where each token of the paragraph stands, in ascending order
/// @param answer   in the same unit
std::optional<Span> tokens_of_answer(std::span<const Span> offsets, Span answer);

/// An answer's tokens, counted from the first of a window; nullopt unless the window has all of
/// them. Training then teaches that the window has no answer.
std::optional<Span> answer_in_window(Span window, Span answer);

}  // namespace stretto::data
