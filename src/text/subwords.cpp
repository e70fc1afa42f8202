#include "text/subwords.h"

#include <array>
#include <stdexcept>
#include <utility>

namespace stretto::text {
namespace {

constexpr std::string_view kBpeMark = "@@", kWordPieceMark = "##";

struct Kind {
  Subwords subwords;
  const char* name;
};
constexpr std::array<Kind, 4> kSubwordKinds{{{Subwords::kNone, "none"},
                                             {Subwords::kBpe, "bpe"},
                                             {Subwords::kSentencePiece, "sentencepiece"},
                                             {Subwords::kWordPiece, "wordpiece"}}};

/// A mark by itself is a token like any other.
Subwords mark_of(std::string_view token) {
  if (token.starts_with(kWordStart)) return Subwords::kSentencePiece;
  if (token.size() <= kBpeMark.size()) return Subwords::kNone;
  if (token.ends_with(kBpeMark)) return Subwords::kBpe;
  return token.starts_with(kWordPieceMark) ? Subwords::kWordPiece : Subwords::kNone;
}

std::string join_bpe(std::string_view line) {
  std::string out;
  out.reserve(line.size());
  for (size_t begin = 0; begin < line.size();) {
    const size_t mark = line.find("@@ ", begin);
    const size_t end = mark == std::string_view::npos ? line.size() : mark;
    out += line.substr(begin, end - begin);
    begin = mark == std::string_view::npos ? line.size() : mark + 3;
  }
  if (out.ends_with(kBpeMark)) out.resize(out.size() - kBpeMark.size());
  return out;
}

std::string join_sentencepiece(std::string_view line) {
  std::string out;
  out.reserve(line.size());
  for (size_t i = 0; i < line.size();) {
    if (line.substr(i).starts_with(kWordStart)) {
      if (!out.empty()) out += ' ';
      i += kWordStart.size();
    } else {
      if (line[i] != ' ') out += line[i];
      ++i;
    }
  }
  return out;
}

std::string join_wordpiece(std::string_view line) {
  std::string out;
  out.reserve(line.size());
  for (size_t i = 0; i < line.size();) {
    const bool at_start = i == 0 && line.starts_with(kWordPieceMark);
    if (at_start || line.substr(i).starts_with(" ##")) {
      i += kWordPieceMark.size() + (at_start ? 0 : 1);
    } else {
      out += line[i++];
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> subwords_names() {
  std::vector<std::string> names;
  for (const Kind& kind : kSubwordKinds) names.emplace_back(kind.name);
  return names;
}

const char* name_of(Subwords subwords) {
  return kSubwordKinds.at(static_cast<size_t>(subwords)).name;
}

Subwords subwords_named(std::string_view name) {
  for (const Kind& kind : kSubwordKinds) {
    if (name == kind.name) return kind.subwords;
  }
  throw std::invalid_argument("[subwords] unknown kind `" + std::string(name) + "`");
}

std::string join_subwords(std::string_view line, Subwords subwords) {
  switch (subwords) {
    case Subwords::kBpe:
      return join_bpe(line);
    case Subwords::kSentencePiece:
      return join_sentencepiece(line);
    case Subwords::kWordPiece:
      return join_wordpiece(line);
    case Subwords::kNone:
      break;
  }
  return std::string(line);
}

Subwords find_subwords(std::span<const std::string> tokens) {
  constexpr size_t kOneIn = 20;
  std::array<size_t, kSubwordKinds.size()> counts{};
  for (const std::string& token : tokens) ++counts.at(static_cast<size_t>(mark_of(token)));
  auto best = Subwords::kNone;
  size_t most = 0;
  for (const Kind& kind : kSubwordKinds) {
    const size_t count = counts.at(static_cast<size_t>(kind.subwords));
    if (kind.subwords == Subwords::kNone || count * kOneIn < tokens.size() || count <= most) {
      continue;
    }
    best = kind.subwords;
    most = count;
  }
  return best;
}

}  // namespace stretto::text
