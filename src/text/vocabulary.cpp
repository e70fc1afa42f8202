#include <algorithm>
#include <span>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "text/code_points.h"
#include "text/leading_specials.h"
#include "text/tokenizer.h"

namespace stretto::text {
namespace {

constexpr size_t kMaxTokens = 10'000'000;
constexpr std::string_view kOverwrite = " #fairseq:overwrite";

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

/// True for "17", "-3.25", "1e-05": a count, or the score of a piece.
bool is_number(std::string_view text) {
  bool digits = false;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      digits = true;
    } else if (c != '-' && c != '+' && c != '.' && c != 'e' && c != 'E') {
      return false;
    }
  }
  return digits;
}

struct Entry {
  std::string_view token;
  bool overwrite = false;
};

Entry parse_line(std::string_view line, const std::string& place) {
  Entry entry;
  while (!line.empty() && is_space(line.back())) line.remove_suffix(1);
  if (line.ends_with(kOverwrite)) {
    entry.overwrite = true;
    line.remove_suffix(kOverwrite.size());
  }
  const size_t gap = line.find_last_of(" \t");
  if (gap != std::string_view::npos && is_number(line.substr(gap + 1))) line = line.substr(0, gap);
  if (line.empty() || std::any_of(line.begin(), line.end(), is_space)) {
    throw Error(ExitCode::kBadData, place + ": expected `token` or `token count`",
                "a vocabulary has one token a line, without spaces in it, optionally with a count");
  }
  if (line.find('\0') != std::string_view::npos || !is_valid_utf8(line)) {
    throw Error(ExitCode::kBadData, place + ": this token is not UTF-8 text",
                "save the vocabulary as UTF-8");
  }
  entry.token = line;
  return entry;
}

class Vocabulary final : public Tokenizer {
 public:
  Vocabulary(std::string_view file, std::string_view where, const std::string& subwords)
      : fingerprint_(xxh3_64(file)) {
    for (const char* special : kLeadingPieces) add(special);
    if (file.starts_with(kByteOrderMark)) file.remove_prefix(kByteOrderMark.size());
    for (int64_t number = 1; !file.empty(); ++number) {
      const size_t end = std::min(file.find('\n'), file.size());
      add_line(file.substr(0, end), std::string(where) + ":" + std::to_string(number));
      file.remove_prefix(std::min(end + 1, file.size()));
    }
    if (std::ssize(tokens_) == kNumLeadingSpecials) {
      throw Error(ExitCode::kBadData, std::string(where) + ": the vocabulary has no tokens",
                  "give a file with one token a line");
    }
    subwords_ = subwords == "auto" ? find_subwords(std::span(tokens_).subspan(kNumLeadingSpecials))
                                   : subwords_named(subwords);
  }

  SpecialIds specials() const override { return kLeadingSpecials; }

  void encode(std::string_view line, std::vector<int64_t>& ids) const override {
    for_each_token(line, [&](size_t, size_t, int64_t id) { ids.push_back(id); });
  }

  void encode_with_spans(std::string_view line, std::vector<int64_t>& ids,
                         std::vector<CodePointSpan>& spans) const override {
    const auto before = code_points_before(line);
    for_each_token(line, [&](size_t begin, size_t end, int64_t id) {
      ids.push_back(id);
      spans.push_back({before[begin], before[end]});
    });
  }

  std::string decode(const std::vector<int64_t>& ids) const override {
    std::string text;
    for (const int64_t id : ids) {
      if (is_silent(id)) continue;
      if (!text.empty()) text += ' ';
      text += piece(id);
    }
    return readable(text);
  }

  std::string piece(int64_t id) const override {
    return tokens_[static_cast<size_t>(id < 0 || id >= size() ? kLeadingSpecials.unk : id)];
  }
  int64_t size() const override { return static_cast<int64_t>(tokens_.size()); }
  uint64_t fingerprint() const override { return fingerprint_; }
  Subwords subwords() const override { return subwords_; }

 private:
  /// Calls `take(begin, end, id)` with the bytes of each token.
  template <class Take>
  void for_each_token(std::string_view line, Take take) const {
    std::string token;  // one buffer for all look-ups
    for (size_t begin = 0; begin < line.size();) {
      if (is_space(line[begin])) {
        ++begin;
        continue;
      }
      size_t end = begin;
      while (end < line.size() && !is_space(line[end])) ++end;
      token.assign(line.substr(begin, end - begin));
      const auto found = ids_.find(token);
      // A special that stands in the text is text, not a command to the model.
      const bool is_known = found != ids_.end() && found->second >= kNumLeadingSpecials;
      take(begin, end, is_known ? found->second : kLeadingSpecials.unk);
      begin = end;
    }
  }

  void add(std::string_view token) {
    ids_[std::string(token)] = static_cast<int64_t>(tokens_.size());
    tokens_.emplace_back(token);
  }

  void add_line(std::string_view line, const std::string& place) {
    if (std::all_of(line.begin(), line.end(), is_space)) return;
    const Entry entry = parse_line(line, place);
    const auto found = ids_.find(std::string(entry.token));
    if (found != ids_.end() && !entry.overwrite) {
      // A special that the file lists has its place already.
      if (found->second < kNumLeadingSpecials) return;
      throw Error(ExitCode::kBadData,
                  place + ": token `" + printable(entry.token, 60) + "` stands here again",
                  "remove one of the two lines, or mark this one with `#fairseq:overwrite`");
    }
    if (tokens_.size() >= kMaxTokens) {
      throw Error(ExitCode::kBadData, place + ": more than 10,000,000 tokens",
                  "is this a vocabulary? It has one token a line");
    }
    // As in fairseq, an overwriting line gets a new id and the earlier one is never given again.
    add(entry.token);
  }

  std::vector<std::string> tokens_;
  std::unordered_map<std::string, int64_t> ids_;
  uint64_t fingerprint_;
  Subwords subwords_ = Subwords::kNone;
};

}  // namespace

std::shared_ptr<const Tokenizer> make_vocabulary(std::string_view file_bytes,
                                                 std::string_view where,
                                                 const std::string& subwords) {
  return std::make_shared<Vocabulary>(file_bytes, where, subwords);
}

}  // namespace stretto::text
