#include "families/masked_lm/engine/masked_text_view.h"

#include <utility>

#include "base/text.h"

namespace stretto::tasks {
namespace {

/// Appends ids as text, behind a space.
void append_decoded(const text::Tokenizer& tokenizer, std::vector<int64_t>& ids,
                    std::string& text) {
  const std::string part = trim(tokenizer.decode(ids));
  ids.clear();
  if (part.empty()) return;
  if (!text.empty()) text += ' ';
  text += part;
}

}  // namespace

std::string token_text(const text::Tokenizer& tokenizer, int64_t id) {
  const std::string text = trim(tokenizer.decode({id}));
  return text.empty() ? tokenizer.piece(id) : text;
}

std::string masked_text(const text::Tokenizer& tokenizer, const data::Batch& batch,
                        int64_t sequence) {
  const auto ids = data::tokens(batch).sequence(sequence);
  const auto rows = data::masked_rows(batch).sequence(sequence);
  std::string text;
  std::vector<int64_t> between;
  size_t next = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (next == rows.size() || static_cast<size_t>(rows[next]) != i) {
      between.push_back(ids[i]);
      continue;
    }
    ++next;
    append_decoded(tokenizer, between, text);
    if (!text.empty()) text += ' ';
    const bool hidden = ids[i] == tokenizer.specials().mask;
    text += hidden ? tokenizer.piece(ids[i]) : "[" + token_text(tokenizer, ids[i]) + "]";
  }
  append_decoded(tokenizer, between, text);
  return text;
}

report::RowsSample masked_sample(const text::Tokenizer& tokenizer, const data::Batch& batch,
                                 int64_t sequence, const std::vector<Filler>& fillers) {
  std::vector<std::string> guesses, truths;
  for (const Filler& filler : fillers) {
    guesses.push_back(token_text(tokenizer, filler.id) + " (" + fixed(filler.probability, 2) + ")");
  }
  for (const int64_t id : data::masked_labels(batch).sequence(sequence)) {
    truths.push_back(token_text(tokenizer, id));
  }
  return {.rows = {{"Text", masked_text(tokenizer, batch, sequence)},
                   {"Guess", join(guesses, " | ")},
                   {"Truth", join(truths, " | ")}}};
}

}  // namespace stretto::tasks
