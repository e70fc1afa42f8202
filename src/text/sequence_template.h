#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace stretto::text {

/// What a pretrained model expects around one text, and around and between two: `[CLS] A [SEP] B
/// [SEP]`.
struct SequenceTemplate {
  enum class Part : uint8_t { kFirst, kSecond, kSpecial };
  struct Slot {
    Part part = Part::kFirst;
    int64_t id = -1;      ///< of a special token
    int64_t segment = 0;  ///< BERT's token type
    bool operator==(const Slot&) const = default;
  };
  std::vector<Slot> single = {{}};
  std::vector<Slot> pair = {{}, {.part = Part::kSecond, .segment = 1}};
  bool operator==(const SequenceTemplate&) const = default;

  /// Ids of the special tokens in front of one text.
  std::vector<int64_t> front() const {
    std::vector<int64_t> ids;
    for (const Slot& slot : single) {
      if (slot.part == Part::kFirst) break;
      ids.push_back(slot.id);
    }
    return ids;
  }
  /// The same template with these in front of one text, and of the first of two.
  void set_front(const std::vector<int64_t>& ids) {
    std::vector<Slot> slots;
    for (const int64_t id : ids) slots.push_back({.part = Part::kSpecial, .id = id});
    for (auto* all : {&single, &pair}) {
      all->erase(all->begin(), std::ranges::find(*all, Part::kFirst, &Slot::part));
      all->insert(all->begin(), slots.begin(), slots.end());
    }
  }
};

}  // namespace stretto::text
