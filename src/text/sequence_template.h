#pragma once

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
};

}  // namespace stretto::text
