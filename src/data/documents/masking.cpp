#include "data/documents/masking.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "text/encoded_text.h"

namespace stretto::data {
namespace {

using Part = text::SequenceTemplate::Part;

std::vector<bool> specials_of(const text::Tokenizer& tokenizer) {
  std::vector<bool> special(static_cast<size_t>(tokenizer.size()));
  const auto add = [&](int64_t id) {
    if (id >= 0) special.at(static_cast<size_t>(id)) = true;
  };
  const auto ids = tokenizer.specials();
  for (const int64_t id : {ids.pad, ids.unk, ids.bos, ids.eos, ids.mask}) add(id);
  for (const auto& slot : text::template_of(tokenizer).single) {
    if (slot.part == Part::kSpecial) add(slot.id);
  }
  return special;
}

}  // namespace

Masker::Masker(const text::Tokenizer& tokenizer, const MaskRules& rules)
    : rules_(rules), mask_id_(tokenizer.specials().mask), is_special_(specials_of(tokenizer)) {
  if (mask_id_ < 0) {
    throw Error(ExitCode::kUsage, "the tokenizer has no mask token",
                "use tokenizer.type = \"wordpiece\" or \"byte_bpe\", or a model with [MASK] or "
                "<mask>");
  }
  for (int64_t id = 0; id < tokenizer.size(); ++id) {
    if (!is_special(id)) words_.push_back(id);
    if (rules.whole_words) continues_word_.push_back(tokenizer.continues_word(id));
  }
}

std::vector<Masker::Unit> Masker::units_of(std::span<const int64_t> ids) const {
  std::vector<Unit> units;
  for (uint32_t i = 0; i < ids.size(); ++i) {
    if (is_special(ids[i])) continue;
    const bool goes_on = rules_.whole_words && !units.empty() && units.back().end == i &&
                         continues_word_[static_cast<size_t>(ids[i])];
    if (goes_on) {
      ++units.back().end;
    } else {
      units.push_back({i, i + 1});
    }
  }
  return units;
}

void Masker::mask(std::span<int64_t> ids, uint64_t key, std::vector<int64_t>& positions,
                  std::vector<int64_t>& labels) const {
  auto units = units_of(ids);
  if (units.empty()) return;
  RandomStream random(key);
  size_t tokens = 0;
  for (const Unit& unit : units) tokens += unit.end - unit.begin;
  const double share = rules_.probability * static_cast<double>(tokens) + random.uniform();
  const auto wanted = std::max<size_t>(1, static_cast<size_t>(std::floor(share)));
  const size_t first = positions.size();
  for (size_t i = 0; i < units.size() && positions.size() - first < wanted; ++i) {
    std::swap(units[i], units[i + random.below(units.size() - i)]);
    const Unit unit = units[i];
    const size_t chosen = positions.size() - first;
    if (chosen > 0 && chosen + (unit.end - unit.begin) > wanted) continue;
    for (uint32_t at = unit.begin; at < unit.end; ++at) positions.push_back(at);
  }
  std::sort(positions.begin() + static_cast<std::ptrdiff_t>(first), positions.end());
  for (size_t i = first; i < positions.size(); ++i) {
    int64_t& id = ids[static_cast<size_t>(positions[i])];
    labels.push_back(id);
    const double fate = random.uniform();
    if (fate < rules_.mask) {
      id = mask_id_;
    } else if (fate < rules_.mask + rules_.random) {
      id = words_[random.below(words_.size())];
    }
  }
}

}  // namespace stretto::data
