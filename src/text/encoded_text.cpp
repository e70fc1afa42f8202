#include "text/encoded_text.h"

#include <algorithm>
#include <stdexcept>

#include "base/error.h"
#include "base/text.h"

namespace stretto::text {
namespace {

using Part = SequenceTemplate::Part;
using Slots = std::vector<SequenceTemplate::Slot>;

bool has_specials(const Slots& slots) {
  return std::any_of(slots.begin(), slots.end(),
                     [](const auto& slot) { return slot.part == Part::kSpecial; });
}

int64_t count_specials(const Slots& slots) {
  return std::count_if(slots.begin(), slots.end(),
                       [](const auto& slot) { return slot.part == Part::kSpecial; });
}

EncodedText filled(const Slots& slots, const std::vector<int64_t>& first,
                   const std::vector<int64_t>& second) {
  EncodedText text;
  for (const auto& slot : slots) {
    if (slot.part == Part::kSpecial) {
      text.ids.push_back(slot.id);
    } else {
      const auto& ids = slot.part == Part::kFirst ? first : second;
      text.ids.insert(text.ids.end(), ids.begin(), ids.end());
    }
    text.segments.resize(text.ids.size(), slot.segment);
  }
  return text;
}

}  // namespace

SequenceTemplate template_of(const Tokenizer& tokenizer) {
  SequenceTemplate found = tokenizer.sequences();
  if (has_specials(found.single)) return found;
  const SpecialIds specials = tokenizer.specials();
  Slots single, pair;
  const auto add_special = [&](Slots& slots, int64_t id, int64_t segment) {
    if (id >= 0) slots.push_back({.part = Part::kSpecial, .id = id, .segment = segment});
  };
  for (Slots* slots : {&single, &pair}) {
    add_special(*slots, specials.bos, 0);
    slots->push_back({});
    add_special(*slots, specials.eos, 0);
  }
  pair.push_back({.part = Part::kSecond, .segment = 1});
  add_special(pair, specials.eos, 1);
  return {.single = std::move(single), .pair = std::move(pair)};
}

TextEncoder::TextEncoder(const Tokenizer& tokenizer, const TextBound& bound)
    : tokenizer_(tokenizer),
      bound_(bound),
      template_(template_of(tokenizer)),
      num_specials_(count_specials(template_.single)),
      num_pair_specials_(count_specials(template_.pair)) {
  const int64_t of_one = num_specials_ + 1, of_pair = num_pair_specials_ + 2;
  const int64_t least = bound.pairs ? std::max(of_one, of_pair) : of_one;
  if (bound.max_tokens >= least) return;
  const bool is_pair = bound.pairs && of_pair >= of_one;
  throw Error(ExitCode::kUsage,
              "a bound of " + counted(bound.max_tokens, "token") + " leaves no room for text: " +
                  counted(is_pair ? num_pair_specials_ : num_specials_, "special token") +
                  " around a " + (is_pair ? "pair" : "text"),
              "raise it to at least " + std::to_string(least));
}

EncodedText TextEncoder::encode(std::string_view text) const {
  std::vector<int64_t> ids;
  tokenizer_.encode(text, ids);
  return place(std::move(ids));
}

EncodedText TextEncoder::encode(std::string_view first, std::string_view second) const {
  std::vector<int64_t> first_ids, second_ids;
  tokenizer_.encode(first, first_ids);
  tokenizer_.encode(second, second_ids);
  return place(std::move(first_ids), std::move(second_ids));
}

EncodedText TextEncoder::place(std::vector<int64_t> text) const {
  const int64_t cut_off = cut(text, bound_.max_tokens - num_specials_);
  EncodedText placed = filled(template_.single, text, {});
  placed.num_cut = cut_off;
  return placed;
}

EncodedText TextEncoder::place(std::vector<int64_t> first, std::vector<int64_t> second) const {
  if (!bound_.pairs) throw std::logic_error("a pair for an encoder of single texts");
  const int64_t cut_off = cut_pair(first, second);
  EncodedText placed = filled(template_.pair, first, second);
  placed.num_cut = cut_off;
  return placed;
}

/// @return how many tokens it takes off
int64_t TextEncoder::cut(std::vector<int64_t>& ids, int64_t most) const {
  const auto size = static_cast<int64_t>(ids.size());
  if (size <= most) return 0;
  const int64_t over = size - most;
  if (bound_.side == TextBound::Side::kStart) {
    ids.erase(ids.begin(), ids.begin() + over);
  } else {
    ids.resize(static_cast<size_t>(most));
  }
  return over;
}

int64_t TextEncoder::cut_pair(std::vector<int64_t>& first, std::vector<int64_t>& second) const {
  const int64_t room = bound_.max_tokens - num_pair_specials_;
  const auto a = static_cast<int64_t>(first.size()), b = static_cast<int64_t>(second.size());
  if (a + b <= room) return 0;
  if (bound_.which == TextBound::Which::kLongest) {
    // Both end up equally long, unless one is short: then the other has the rest. An odd token
    // belongs to the longer one, or to the second: as in the package tokenizers.
    const int64_t shorter = std::min({a, b, room / 2}), longer = room - shorter;
    return a <= b ? cut(first, shorter) + cut(second, longer)
                  : cut(first, longer) + cut(second, shorter);
  }
  const bool is_first = bound_.which == TextBound::Which::kFirst;
  const int64_t kept = is_first ? b : a;
  if (kept >= room) {
    throw Error(ExitCode::kBadData,
                std::string("the ") + (is_first ? "second" : "first") + " text of a pair has " +
                    counted(kept, "token") + ", and leaves no room for the other within " +
                    std::to_string(bound_.max_tokens),
                "raise the bound, or cut the longer text of a pair");
  }
  return is_first ? cut(first, room - kept) : cut(second, room - kept);
}

}  // namespace stretto::text
