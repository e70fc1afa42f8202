#include "text/characters.h"

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "text/code_points.h"
#include "text/json_fields.h"
#include "text/leading_specials.h"
#include "text/spec_parts.h"
#include "text/tokenizer.h"

namespace stretto::text {
namespace {

constexpr std::string_view kJsonSpace = " \t\r\n";

/// Ids are those of the four specials, then those of the characters in the order of the file.
class Characters final : public Tokenizer {
 public:
  Characters(std::string_view bytes, std::string_view where) : fingerprint_(xxh3_64(bytes)) {
    const nlohmann::json json = parse_json(bytes, where, kMaxTokenizerBytes);
    const JsonValue list(json, std::string(where) + ":");
    for (const char* special : kLeadingPieces) pieces_.emplace_back(special);
    for (size_t i = 0; i < list.size(); ++i) add(list.at(i));
    if (size() > kNumLeadingSpecials) return;
    list.refuse("there is no character", "give a list with at least one");
  }

  SpecialIds specials() const override { return kLeadingSpecials; }

  void encode(std::string_view line, std::vector<int64_t>& ids) const override {
    for_each_character(line, [&](int64_t id) { ids.push_back(id); });
  }

  void encode_with_spans(std::string_view line, std::vector<int64_t>& ids,
                         std::vector<CodePointSpan>& spans) const override {
    int64_t place = 0;
    for_each_character(line, [&](int64_t id) {
      ids.push_back(id);
      spans.push_back({place, place + 1});
      ++place;
    });
  }

  std::string decode(const std::vector<int64_t>& ids) const override {
    std::string text;
    for (const int64_t id : ids) {
      if (!is_silent(id)) text += piece(id);
    }
    return text;
  }

  std::string piece(int64_t id) const override {
    return pieces_[static_cast<size_t>(id < 0 || id >= size() ? kLeadingSpecials.unk : id)];
  }
  int64_t size() const override { return std::ssize(pieces_); }
  uint64_t fingerprint() const override { return fingerprint_; }

 private:
  /// Calls `take(id)` for each code point; a byte that is not UTF-8 counts as one.
  template <class Take>
  void for_each_character(std::string_view line, Take take) const {
    std::string repaired;
    if (!is_valid_utf8(line)) line = repaired = repaired_utf8(line, Repair::kEachByte);
    for (size_t at = 0; at < line.size();) {
      const auto found = ids_.find(next_code_point(line, at));
      take(found == ids_.end() ? kLeadingSpecials.unk : found->second);
    }
  }

  void add(const JsonValue& entry) {
    const std::string& text = entry.text();
    size_t at = 0;
    const char32_t character = text.empty() ? U'\0' : next_code_point(text, at);
    if (text.empty() || at != text.size()) {
      entry.refuse("expected one character, got `" + printable(text, 60) + "`",
                   "give a list of characters, each a string");
    }
    if (!ids_.emplace(character, size()).second) {
      entry.refuse("the character `" + printable(text, 60) + "` stands here again",
                   "name each character once");
    }
    pieces_.push_back(text);
  }

  std::vector<std::string> pieces_;
  std::unordered_map<char32_t, int64_t> ids_;
  uint64_t fingerprint_;
};

}  // namespace

bool is_character_file(std::string_view bytes) {
  const size_t first = bytes.find_first_not_of(kJsonSpace);
  if (first == std::string_view::npos || bytes[first] != '[') return false;
  // The first piece of a SentencePiece model, whose length may be a bracket, begins with a line
  // feed and its own length, which is smaller by some bytes and no quote.
  const size_t second = bytes.find_first_not_of(kJsonSpace, first + 1);
  return second != std::string_view::npos && (bytes[second] == '"' || bytes[second] == ']');
}

std::string train_characters(const std::vector<std::string>& lines, int64_t most) {
  std::map<char32_t, int64_t> counts;
  for (const std::string& line : lines) {
    if (!is_valid_utf8(line)) continue;
    for (size_t at = 0; at < line.size();) ++counts[next_code_point(line, at)];
  }
  if (counts.empty()) {
    throw Error(ExitCode::kBadData, "there is no text to take characters from",
                "look at the training text that [data] names: it holds no usable line");
  }
  std::vector<std::pair<char32_t, int64_t>> chosen(counts.begin(), counts.end());
  if (std::ssize(chosen) > most) {
    std::ranges::stable_sort(chosen, std::ranges::greater(), &std::pair<char32_t, int64_t>::second);
    chosen.resize(static_cast<size_t>(most));
    std::ranges::sort(chosen);
  }
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [character, count] : chosen) {
    std::string text;
    append_utf8(text, character);
    list.push_back(std::move(text));
  }
  return list.dump() + "\n";
}

std::shared_ptr<const Tokenizer> make_characters(std::string_view bytes, std::string_view where) {
  return std::make_shared<Characters>(bytes, where);
}

}  // namespace stretto::text
