#include "base/json.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"

namespace stretto {
namespace {

constexpr size_t kMaxDepth = 64;

/// @param line  of the first byte
std::string place(std::string_view bytes, std::string_view where, size_t line, size_t offset) {
  const std::string_view before = bytes.substr(0, std::min(offset, bytes.size()));
  for (const char c : before) line += c == '\n' ? 1 : 0;
  const size_t line_start =
      before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return std::string(where) + ":" + std::to_string(line) + ":" +
         std::to_string(before.size() - line_start + 1);
}

// Walks over the text once without building anything, and counts what the library would build. The
// library alone would take the last of two equal keys and recurse without limit when a deep value
// is copied or freed.
class Guard : public nlohmann::json_sax<nlohmann::json> {
 public:
  Guard(Allowance& allowance, std::string_view where)
      : allowance_(allowance),
        what_("the JSON of " + std::string(where.substr(where.rfind('/') + 1))) {}

  bool null() override { return value(0); }
  bool boolean(bool) override { return value(0); }
  bool number_integer(number_integer_t) override { return value(0); }
  bool number_unsigned(number_unsigned_t) override { return value(0); }
  bool number_float(number_float_t, const string_t&) override { return value(0); }
  bool string(string_t& text) override { return value(kStringBytes + heap_bytes(text)); }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override { return value(kObjectBytes) && enter(false); }
  bool end_object() override { return leave(); }
  bool start_array(size_t) override { return value(kArrayBytes) && enter(true); }
  bool end_array() override { return leave(); }

  bool key(string_t& name) override {
    allowance_.take(kMemberBytes + heap_bytes(name), what_);
    if (keys_.back().insert(name).second) return true;
    reason_ = "key \"" + printable(name) + "\" stands twice in one object";
    return false;
  }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& fault) override {
    offset_ = position == 0 ? 0 : position - 1;
    reason_ = describe(fault.what());
    return false;
  }

  size_t offset() const { return offset_; }
  const std::string& reason() const { return reason_; }

 private:
  // What the library allocates for each, by the sizes of its types.
  static constexpr uint64_t kMemberBytes = 96, kObjectBytes = 64, kArrayBytes = 32,
                            kElementBytes = 32, kStringBytes = 48;

  static uint64_t heap_bytes(const std::string& text) {
    constexpr uint64_t kInPlace = 15, kOfBlock = 24;
    return text.size() > kInPlace ? text.size() + kOfBlock : 0;
  }
  /// A value stands in its object's member, or is one more element of its list.
  bool value(uint64_t num_bytes) {
    allowance_.take(num_bytes + (!in_list_.empty() && in_list_.back() ? kElementBytes : 0), what_);
    return true;
  }
  bool enter(bool is_list) {
    if (keys_.size() == kMaxDepth) {
      reason_ = "nested deeper than " + std::to_string(kMaxDepth) + " levels";
      return false;
    }
    keys_.emplace_back();
    in_list_.push_back(is_list);
    return true;
  }
  bool leave() {
    keys_.pop_back();
    in_list_.pop_back();
    return true;
  }
  // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error …": the end;
  // "[json.exception.out_of_range.406] number overflow parsing '1e999'": all behind the tag.
  static std::string describe(std::string_view what) {
    const size_t tag = what.find("] ");
    if (what.starts_with("[json.") && tag != std::string_view::npos) what.remove_prefix(tag + 2);
    const size_t at = what.find(": ");
    return printable(at == std::string_view::npos ? what : what.substr(at + 2), 300);
  }

  Allowance& allowance_;
  std::string what_;  // an allowance may be that of a folder
  std::vector<std::set<std::string>> keys_;
  std::vector<bool> in_list_;
  size_t offset_ = SIZE_MAX;
  std::string reason_;
};

std::string dumped(const nlohmann::json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

constexpr const char* kChecksum = "checksum";
constexpr int kIndent = 2;

std::string checksum_of(const nlohmann::json& object) {
  auto others = object;
  others.erase(kChecksum);
  return hex64(xxh3_64(dumped(others, -1)));
}

constexpr const char* kRemedy =
    "it is damaged or was changed by another program: put back a whole copy of it";

}  // namespace

nlohmann::json parse_json(std::string_view bytes, std::string_view where, size_t max_bytes,
                          size_t part_at) {
  Allowance allowance{std::string(where)};
  return parse_json(bytes, where, max_bytes, allowance, part_at);
}

nlohmann::json parse_json(std::string_view bytes, std::string_view where, size_t max_bytes,
                          Allowance& allowance, size_t part_at) {
  const size_t first_line = std::max<size_t>(part_at, 1);
  if (max_bytes > 0 && bytes.size() > max_bytes) {
    throw Error(ExitCode::kBadData,
                std::string(where) + ": JSON of " + human_bytes(bytes.size()) + ", at most " +
                    human_bytes(max_bytes) + " is expected",
                kRemedy);
  }
  // The library takes a zero byte for the end and ignores what follows.
  if (const size_t zero = bytes.find('\0'); zero != std::string_view::npos) {
    throw Error(ExitCode::kBadData,
                place(bytes, where, first_line, zero) + ": a zero byte is not JSON", kRemedy);
  }
  allowance.add_read(bytes.size());
  Guard guard(allowance, where);
  if (!nlohmann::json::sax_parse(bytes.begin(), bytes.end(), &guard)) {
    std::string at(where);
    if (guard.offset() != SIZE_MAX) {
      at = place(bytes, where, first_line, guard.offset());
    } else if (part_at > 0) {
      at += ":" + std::to_string(part_at);
    }
    throw Error(ExitCode::kBadData, at + ": " + guard.reason(), kRemedy);
  }
  try {
    return nlohmann::json::parse(bytes.begin(), bytes.end());
  } catch (const nlohmann::json::exception& fault) {
    throw Error(ExitCode::kBadData, std::string(where) + ": " + printable(fault.what(), 300),
                kRemedy);
  }
}

nlohmann::json as_stored(const nlohmann::json& json) {
  return nlohmann::json::parse(dumped(json, -1));
}

std::string sealed_json(nlohmann::json object) {
  object = as_stored(object);
  object[kChecksum] = checksum_of(object);
  return dumped(object, kIndent) + "\n";
}

bool is_intact(const nlohmann::json& object) {
  if (!object.is_object()) return false;
  const auto stored = object.find(kChecksum);
  return stored == object.end() || *stored == nlohmann::json(checksum_of(object));
}

}  // namespace stretto
