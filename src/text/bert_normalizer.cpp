#include "text/bert_normalizer.h"

#include <algorithm>

#include "text/code_points.h"

namespace stretto::text {
namespace {

class Output {
 public:
  Output(NormalizedText& out, bool with_origin) : out_(out), with_origin_(with_origin) {}

  void append(char c, uint32_t origin) {
    out_.text += c;
    if (with_origin_) out_.origin.push_back(origin);
  }
  void append(char32_t c, uint32_t origin) {
    append_utf8(out_.text, c);
    if (with_origin_) out_.origin.resize(out_.text.size(), origin);
  }

 private:
  NormalizedText& out_;
  bool with_origin_;
};

void append_lower(Output& out, char32_t c, uint32_t origin) {
  out.append(lower(c), origin);
  if (c == 0x130) out.append(char32_t{0x307}, origin);
}

}  // namespace

/// NFD of a stream of characters, without nonspacing marks. Marks wait until the next starter,
/// since canonical order sorts them.
class BertNormalizer::Decomposition {
 public:
  Decomposition(const BertNormalizer& normalizer, Output& out)
      : lowercase_(normalizer.lowercase_), out_(out) {}

  bool is_empty() const { return waiting_.empty(); }

  void add(char32_t c, uint32_t origin) {
    char32_t parts[4];
    const int count = decompose(c, parts);
    for (int i = 0; i < count; ++i) {
      const uint8_t order = combining_class(parts[i]);
      if (order == 0) flush();
      waiting_.push_back({parts[i], order, i == 0});
      if (i == 0) origins_.push_back(origin);
    }
  }

  void flush() {
    std::stable_sort(waiting_.begin(), waiting_.end(),
                     [](const Part& a, const Part& b) { return a.order < b.order; });
    size_t next = 0;
    for (const Part& part : waiting_) {
      // Places belong to the original characters in their order, not to the parts that moved.
      if (part.is_first) last_origin_ = origins_[next++];
      if (is_nonspacing_mark(part.c)) continue;
      if (lowercase_) {
        append_lower(out_, part.c, last_origin_);
      } else {
        out_.append(part.c, last_origin_);
      }
    }
    waiting_.clear();
    origins_.clear();
  }

 private:
  struct Part {
    char32_t c;
    uint8_t order;
    bool is_first;  ///< of its original character
  };
  bool lowercase_;
  Output& out_;
  std::vector<Part> waiting_;
  std::vector<uint32_t> origins_;
  uint32_t last_origin_ = 0;
};

BertNormalizer::BertNormalizer(const BertNormalizerOptions& options)
    : clean_text_(options.clean_text),
      handle_chinese_chars_(options.handle_chinese_chars),
      strip_accents_(options.strip_accents.value_or(options.lowercase)),
      lowercase_(options.lowercase) {
  for (char32_t c = 0; c < 128; ++c) {
    char32_t becomes = c;
    if (clean_text_) becomes = is_bert_control(c) ? 0 : is_white_space(c) ? U' ' : c;
    ascii_[c] = static_cast<char>(lowercase_ ? lower(becomes) : becomes);
  }
}

void BertNormalizer::normalize(std::string_view line, bool with_origin, NormalizedText& out) const {
  out.text.clear();
  out.origin.clear();
  Output output(out, with_origin);
  Decomposition decomposition(*this, output);
  const auto add = [&](char32_t c, uint32_t origin) {
    if (strip_accents_) {
      decomposition.add(c, origin);
    } else if (lowercase_) {
      append_lower(output, c, origin);
    } else {
      output.append(c, origin);
    }
  };
  for (size_t at = 0; at < line.size();) {
    const auto origin = static_cast<uint32_t>(at);
    const auto byte = static_cast<unsigned char>(line[at]);
    if (byte < 0x80) {
      ++at;
      const char becomes = ascii_[byte];
      if (becomes == '\0' && (clean_text_ || byte != 0)) continue;
      if (!decomposition.is_empty()) decomposition.flush();
      output.append(becomes, origin);
      continue;
    }
    const char32_t c = next_code_point(line, at);
    if (clean_text_ && is_bert_control(c)) continue;
    if (clean_text_ && is_white_space(c)) {
      add(U' ', origin);
    } else if (handle_chinese_chars_ && is_bert_ideograph(c)) {
      for (const char32_t part : {U' ', c, U' '}) add(part, origin);
    } else {
      add(c, origin);
    }
  }
  decomposition.flush();
}

}  // namespace stretto::text
