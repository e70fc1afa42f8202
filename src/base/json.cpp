#include "base/json.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
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

// Walks over the text once without building anything. The library alone would take the last of two
// equal keys and recurse without limit when a deep value is copied or freed.
class Guard : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool start_array(size_t) override { return enter(); }
  bool end_array() override { return leave(); }

  bool key(string_t& name) override {
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
  bool enter() {
    if (keys_.size() == kMaxDepth) {
      reason_ = "nested deeper than " + std::to_string(kMaxDepth) + " levels";
      return false;
    }
    keys_.emplace_back();
    return true;
  }
  bool leave() {
    keys_.pop_back();
    return true;
  }
  // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error …": the end.
  static std::string describe(std::string_view what) {
    const size_t at = what.find(": ");
    return printable(at == std::string_view::npos ? what : what.substr(at + 2), 300);
  }

  std::vector<std::set<std::string>> keys_;
  size_t offset_ = SIZE_MAX;
  std::string reason_;
};

constexpr const char* kRemedy =
    "it is damaged or was changed by another program: put back a whole copy of it";

}  // namespace

nlohmann::json parse_json(std::string_view bytes, std::string_view where, size_t max_bytes,
                          size_t part_at) {
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
  Guard guard;
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

}  // namespace stretto
