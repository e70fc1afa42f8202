#include "text/sentencepiece_check.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/allowance.h"
#include "base/error.h"

namespace stretto::text {
namespace {

constexpr int64_t kMaxPieces = 2'000'000;
constexpr size_t kMaxPieceBytes = 4096;
constexpr int kMaxPieceType = 6;
constexpr uint64_t kOrdinary = 1, kUserDefined = 4;
// A line has at most 1 MB, so that a sum of scores stays finite.
constexpr float kMaxScore = 1e30f;

[[noreturn]] void fail(std::string_view where, const std::string& what) {
  throw Error(ExitCode::kBadData, std::string(where) + ": not a SentencePiece model: " + what,
              "give a .model file as written by spm_train or by `stretto tokenizer`");
}

/// One field of a protobuf message on the wire.
struct Field {
  uint32_t number = 0;
  int wire_type = 0;
  uint64_t value = 0;      ///< wire types 0, 1, 5
  std::string_view bytes;  ///< wire type 2
};

/// Walks the fields of one message. Groups (wire types 3 and 4) have no place in this format.
class Wire {
 public:
  Wire(std::string_view bytes, std::string_view where) : rest_(bytes), where_(where) {}

  bool next(Field& field) {
    if (rest_.empty()) return false;
    const uint64_t tag = varint();
    field = {};
    field.number = static_cast<uint32_t>(tag >> 3);
    field.wire_type = static_cast<int>(tag & 7);
    if (field.number == 0 || (tag >> 32) != 0) fail(where_, "a field has no valid number");
    switch (field.wire_type) {
      case 0:
        field.value = varint();
        break;
      case 1:
        field.value = fixed(8);
        break;
      case 2:
        field.bytes = take(varint());
        break;
      case 5:
        field.value = fixed(4);
        break;
      default:
        fail(where_, "a field has an unknown wire type");
    }
    return true;
  }

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) fail(where_, "it ends in the middle of a number");
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    fail(where_, "a number is longer than ten bytes");
  }

  std::string_view take(uint64_t size) {
    if (size > rest_.size()) fail(where_, "a field is longer than what is left of the file");
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  uint64_t fixed(size_t size) {
    const std::string_view taken = take(size);
    uint64_t value = 0;
    std::memcpy(&value, taken.data(), size);
    return value;
  }

  std::string_view rest_;
  std::string_view where_;
};

void require_type(const Field& field, int wire_type, std::string_view where) {
  if (field.wire_type != wire_type) {
    fail(where, "field " + std::to_string(field.number) + " has the wrong type");
  }
}

/// What the library holds for a field, and for a piece: its message, its names, and its part of the
/// double array, which is built from a word graph.
constexpr uint64_t kLibraryFieldBytes = 96, kLibraryPieceBytes = 160, kDartsBytes = 64;

/// Takes what the library makes of a message and of those in it.
void take_fields(std::string_view message, std::string_view where, Allowance& allowance) {
  Wire wire(message, where);
  Field field;
  while (wire.next(field)) {
    allowance.take(kLibraryFieldBytes + 2 * field.bytes.size(), "the settings in it");
  }
}

/// @return its type
uint64_t check_piece(std::string_view message, int64_t index, std::string_view where,
                     Allowance& allowance) {
  allowance.take(kLibraryPieceBytes, "its pieces");
  uint64_t type = kOrdinary;
  const std::string name = "piece " + std::to_string(index);
  Wire wire(message, where);
  Field field;
  while (wire.next(field)) {
    if (field.number == 1) {
      require_type(field, 2, where);
      if (field.bytes.size() > kMaxPieceBytes) {
        fail(where, name + " has " + std::to_string(field.bytes.size()) +
                        " bytes; at most 4096 are allowed");
      }
      allowance.take(kDartsBytes * field.bytes.size(), "its pieces");
    } else if (field.number == 2) {
      require_type(field, 5, where);
      const auto bits = static_cast<uint32_t>(field.value);
      float score = 0;
      std::memcpy(&score, &bits, sizeof score);
      if (!std::isfinite(score) || std::fabs(score) > kMaxScore) {
        fail(where, name + " has a score that is not a usable number");
      }
    } else if (field.number == 3) {
      require_type(field, 0, where);
      if (field.value == 0 || field.value > kMaxPieceType)
        fail(where, name + " has an unknown type");
      type = field.value;
    }
  }
  return type;
}

/// What a model is, by its trainer's settings; the library takes one that does not say for unigram.
SubwordModel::Kind kind_of(std::string_view trainer, std::string_view where) {
  auto kind = SubwordModel::Kind::kUnigram;
  Wire wire(trainer, where);
  Field field;
  while (wire.next(field)) {
    if (field.number != 3 || field.wire_type != 0) continue;
    kind = field.value == 1   ? SubwordModel::Kind::kUnigram
           : field.value == 2 ? SubwordModel::Kind::kBpe
                              : SubwordModel::Kind::kNone;
  }
  return kind;
}

void check_normalizer(std::string_view message, std::string_view where) {
  Wire wire(message, where);
  Field field;
  while (wire.next(field)) {
    if (field.number != 2) continue;
    require_type(field, 2, where);
    if (!field.bytes.empty()) check_charsmap(field.bytes, where);
  }
}

/// The bit fields of one unit of a Darts-clone double array.
struct Unit {
  uint32_t bits;
  bool has_leaf() const { return ((bits >> 8) & 1) != 0; }
  uint32_t value() const { return bits & 0x7FFFFFFFu; }
  uint32_t label() const { return bits & 0x800000FFu; }
  uint32_t offset() const { return (bits >> 10) << ((bits & 0x200u) >> 6); }
};

}  // namespace

void check_charsmap(std::string_view blob, std::string_view where) {
  uint32_t trie_bytes = 0;
  if (blob.size() <= sizeof trie_bytes) fail(where, "its normalisation table is too short");
  std::memcpy(&trie_bytes, blob.data(), sizeof trie_bytes);
  blob.remove_prefix(sizeof trie_bytes);
  if (trie_bytes == 0 || trie_bytes % 4 != 0 || trie_bytes >= blob.size()) {
    fail(where, "the size of its normalisation table is wrong");
  }
  const std::string_view strings = blob.substr(trie_bytes);
  if (strings.back() != '\0') fail(where, "its normalisation table does not end properly");
  std::vector<Unit> units(trie_bytes / 4);
  std::memcpy(units.data(), blob.data(), trie_bytes);

  // A look-up goes from a node's base to (base XOR byte) for any byte, and on from there when the
  // label fits: all of these places, for all nodes that can be reached, have to exist.
  std::vector<bool> seen(units.size(), false);
  std::vector<uint32_t> nodes{0};
  seen[0] = true;
  while (!nodes.empty()) {
    const uint32_t node = nodes.back();
    nodes.pop_back();
    const uint32_t base = node ^ units[node].offset();
    if ((base | 0xFFu) >= units.size())
      fail(where, "its normalisation table points outside itself");
    if (node != 0 && units[node].has_leaf() && units[base].value() >= strings.size()) {
      fail(where, "a replacement lies outside its normalisation table");
    }
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const uint32_t child = base ^ byte;
      if (units[child].label() != byte || seen[child]) continue;
      seen[child] = true;
      nodes.push_back(child);
    }
  }
}

SentencePieceKinds check_sentencepiece_model(std::string_view bytes, std::string_view where) {
  if (bytes.empty()) fail(where, "the file is empty");
  if (bytes.size() > kMaxSentencePieceBytes) fail(where, "it is larger than 512 MiB");
  int64_t num_pieces = 0;
  SentencePieceKinds kinds;
  Allowance allowance(std::string(where), bytes.size());
  Wire wire(bytes, where);
  Field field;
  while (wire.next(field)) {
    if (field.number == 0 || field.number > 5) continue;
    require_type(field, 2, where);
    if (field.number == 1) {
      if (num_pieces == kMaxPieces) fail(where, "it has more than 2,000,000 pieces");
      const uint64_t type = check_piece(field.bytes, num_pieces++, where, allowance);
      kinds.is_ordinary.push_back(type == kOrdinary);
      kinds.is_user_defined.push_back(type == kUserDefined);
      continue;
    }
    take_fields(field.bytes, where, allowance);
    if (field.number == 2) {
      kinds.model = kind_of(field.bytes, where);
    } else if (field.number == 3 || field.number == 5) {
      check_normalizer(field.bytes, where);
    }
  }
  if (num_pieces == 0) fail(where, "it has no pieces");
  return kinds;
}

}  // namespace stretto::text
