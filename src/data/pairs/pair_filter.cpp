#include "data/pairs/pair_filter.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "data/pairs/pair_faults.h"
#include "data/pairs/parallel_input.h"
#include "data/pairs/two_sources.h"

namespace stretto::data {
namespace {

constexpr std::array<FilterKind, 6> kKinds{{
    {"empty", true, &FilterCounts::empty, &FilterCounts::first_empty},
    {"too long", true, &FilterCounts::too_long, &FilterCounts::first_too_long},
    {"ratio", true, &FilterCounts::ratio, &FilterCounts::first_ratio},
    {"invalid UTF-8", true, &FilterCounts::invalid_utf8, &FilterCounts::first_invalid_utf8},
    {"truncated", false, &FilterCounts::truncated, &FilterCounts::first_truncated},
    {"repaired UTF-8", false, &FilterCounts::replaced, &FilterCounts::first_replaced},
}};

/// A PairFault with the place of one side's line; of a TSV file all sides are one line.
[[noreturn]] void throw_bad_side(const PairPlace& place, Side side, const std::string& what,
                                 const std::string& advice) {
  const std::string_view name = side == Side::kTarget         ? place.tgt_name
                                : side == Side::kSecondSource ? place.src2_name
                                                              : place.src_name;
  const bool own_file = name != place.src_name;
  throw PairFault(
      SampleError(std::string(name), ":" + std::to_string(place.line) + ": " + what, advice),
      own_file ? side : Side::kSource);
}

/// Both texts of a source line that has two.
std::optional<SourceTexts> two_texts(const PairRules& rules, std::string_view src) {
  return rules.two_sources ? split_sources(src) : std::nullopt;
}

/// Of a source that is not UTF-8 as a whole: whose text is not; the first of two such ones.
Side ill_formed_source(const PairRules& rules, std::string_view src) {
  const auto texts = two_texts(rules, src);
  return texts && is_valid_utf8(texts->first) ? Side::kSecondSource : Side::kSource;
}

/// Of a source without tokens: whose text has none; the first of two such ones.
Side empty_source(const PairRules& rules, const text::Tokenizer& tokenizer, std::string_view src) {
  const auto texts = two_texts(rules, src);
  std::vector<int64_t> ids;
  if (texts) tokenizer.encode(texts->first, ids);
  return ids.empty() ? Side::kSource : Side::kSecondSource;
}

void add_first(const FirstLines& more, FirstLines& all) {
  auto free = std::find_if(all.begin(), all.end(), [](const auto& l) { return l.line == 0; });
  for (const FilteredLine& line : more) {
    if (line.line == 0 || free == all.end()) return;
    *free++ = line;
  }
}

/// Counts one pair, and lists it while there is room.
void note(int64_t& count, FirstLines& first, const PairPlace& place, Side side) {
  ++count;
  add_first({FilteredLine{place.input, place.line, side}}, first);
}

/// Range of the second byte after `lead`, and how many bytes follow; 0 = never a lead.
struct Lead {
  int following = 0;
  unsigned char low = 0x80, high = 0xBF;
};

Lead lead_of(unsigned char byte) {
  if (byte >= 0xC2 && byte <= 0xDF) return {.following = 1};
  if (byte == 0xE0) return {.following = 2, .low = 0xA0};
  if (byte == 0xED) return {.following = 2, .high = 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {.following = 2};
  if (byte == 0xF0) return {.following = 3, .low = 0x90};
  if (byte == 0xF4) return {.following = 3, .high = 0x8F};
  if (byte >= 0xF1 && byte <= 0xF3) return {.following = 3};
  return {};
}

/// What a rule did to the two sides of a pair.
struct ChangedSides {
  bool src = false, tgt = false;
  bool any() const { return src || tgt; }
};

/// Makes one side well-formed: the target, or the source with all its texts.
/// @return false when the pair is to be skipped
bool repair(const PairRules& rules, std::string_view text, const PairPlace& place, Side side,
            std::string& out, bool& replaced) {
  if (is_valid_utf8(text)) {
    out.assign(text);
    return true;
  }
  const InvalidUtf8 rule = rules.invalid_utf8;
  if (rule == InvalidUtf8::kError) {
    if (side == Side::kSource) side = ill_formed_source(rules, text);
    throw_bad_side(place, side, "this line is not valid UTF-8",
                   "save the file as UTF-8, or set data.invalid_utf8 to \"skip\" or \"replace\"");
  }
  if (rule == InvalidUtf8::kSkip) return false;
  out = replace_invalid_utf8(text);
  replaced = true;
  return true;
}

/// Ends the sentence and applies the bound. @return false when the pair is to be skipped
bool finish_side(const PairRules& rules, const PairPlace& place, Side side, int64_t eos,
                 std::vector<int64_t>& ids, int64_t& cut) {
  const TooLong rule = rules.too_long;
  const bool target = side == Side::kTarget;
  const int64_t max_tokens = target ? rules.max_tgt_tokens : rules.max_src_tokens;
  const auto tokens = static_cast<int64_t>(ids.size()) + 1;
  if (tokens > max_tokens) {
    if (rule == TooLong::kSkip) return false;
    if (rule == TooLong::kError) {
      const std::string key = target ? "data.max_tgt_tokens" : "data.max_src_tokens";
      throw_bad_side(place, side,
                     "this sentence has " + std::to_string(tokens) + " tokens, more than " + key +
                         " = " + std::to_string(max_tokens),
                     "raise " + key + ", or set data.too_long to \"skip\" or \"truncate\"");
    }
    cut = tokens - max_tokens;
    if (rules.two_sources && !target) {
      cut_sources(ids, max_tokens - 1, eos);
    } else {
      ids.resize(static_cast<size_t>(max_tokens - 1));
    }
  }
  ids.push_back(eos);
  return true;
}

/// Counts one side of a kept pair. @param ids  with end-of-sentence
void count_side(std::string_view text, const std::vector<int64_t>& ids, int64_t cut,
                const text::SpecialIds& specials, TextCounts& counts) {
  bool inside = false;
  for (const char c : text) {
    const bool space = c == ' ' || (c >= '\t' && c <= '\r');
    if (!space && !inside) ++counts.words;
    inside = !space;
  }
  // Two sources have two end-of-sentences.
  counts.pieces +=
      static_cast<int64_t>(ids.size()) - std::count(ids.begin(), ids.end(), specials.eos);
  counts.unknown += std::count(ids.begin(), ids.end(), specials.unk);
  counts.cut += cut;
}

}  // namespace

PairRules rules_for(const DataOptions& options, Split split) {
  PairRules rules{.max_src_tokens = options.max_src_tokens,
                  .max_tgt_tokens = options.max_tgt_tokens};
  rules.two_sources = has_two_sources(options);
  const bool training = split == Split::kTrain;
  if (options.invalid_utf8 == "error") {
    rules.invalid_utf8 = InvalidUtf8::kError;
  } else if (options.invalid_utf8 == "replace" || !training) {
    rules.invalid_utf8 = InvalidUtf8::kReplace;
  }
  if (!training || options.too_long == "truncate") {
    rules.too_long = TooLong::kTruncate;
  } else if (options.too_long == "error") {
    rules.too_long = TooLong::kError;
  }
  if (training) rules.max_ratio = options.max_ratio;
  return rules;
}

std::span<const FilterKind> filter_kinds() {
  return kKinds;
}

void add_counts(const FilterCounts& more, FilterCounts& all) {
  all.kept += more.kept;
  for (const FilterKind& kind : kKinds) {
    all.*kind.count += more.*kind.count;
    add_first(more.*kind.first, all.*kind.first);
  }
}

void count_pair(const text::TokenizerPair& tokenizers, const EncodedPair& pair, TextCounts& src,
                TextCounts& tgt) {
  count_side(pair.src_text, pair.src, pair.src_cut, tokenizers.src->specials(), src);
  count_side(pair.tgt_text, pair.tgt, pair.tgt_cut, tokenizers.tgt->specials(), tgt);
}

void add_counts(const TextCounts& more, TextCounts& all) {
  all.words += more.words;
  all.pieces += more.pieces;
  all.unknown += more.unknown;
  all.cut += more.cut;
}

double TextCounts::unknown_rate() const {
  return pieces > 0 ? static_cast<double>(unknown) / static_cast<double>(pieces) : 0;
}

double TextCounts::pieces_per_word() const {
  // Words are those of the whole text.
  return words > 0 ? static_cast<double>(pieces + cut) / static_cast<double>(words) : 0;
}

double TextCounts::cut_rate() const {
  return cut > 0 ? static_cast<double>(cut) / static_cast<double>(pieces + cut) : 0;
}

std::string cut_text(const TextCounts& src, const TextCounts& tgt) {
  if (src.cut == 0 && tgt.cut == 0) return "";
  return percent_text(src.cut_rate()) + " of the source's tokens, " + percent_text(tgt.cut_rate()) +
         " of the target's";
}

bool encode_pair(const PairRules& rules, const text::TokenizerPair& tokenizers,
                 std::string_view src, std::string_view tgt, const PairPlace& place,
                 EncodedPair& out, FilterCounts& counts) {
  ChangedSides replaced;
  out.src_cut = out.tgt_cut = 0;
  const bool src_text = repair(rules, src, place, Side::kSource, out.src_text, replaced.src);
  if (!src_text || !repair(rules, tgt, place, Side::kTarget, out.tgt_text, replaced.tgt)) {
    note(counts.invalid_utf8, counts.first_invalid_utf8, place,
         src_text ? Side::kTarget : ill_formed_source(rules, src));
    return false;
  }
  out.src.clear();
  out.tgt.clear();
  if (rules.two_sources) {
    encode_sources(*tokenizers.src, out.src_text, out.src);
  } else {
    tokenizers.src->encode(out.src_text, out.src);
  }
  tokenizers.tgt->encode(out.tgt_text, out.tgt);
  if (out.src.empty() || out.tgt.empty()) {
    note(counts.empty, counts.first_empty, place,
         out.src.empty() ? empty_source(rules, *tokenizers.src, out.src_text) : Side::kTarget);
    return false;
  }
  const int64_t src_eos = tokenizers.src->specials().eos, tgt_eos = tokenizers.tgt->specials().eos;
  const bool src_fits = finish_side(rules, place, Side::kSource, src_eos, out.src, out.src_cut);
  if (!src_fits || !finish_side(rules, place, Side::kTarget, tgt_eos, out.tgt, out.tgt_cut)) {
    note(counts.too_long, counts.first_too_long, place, src_fits ? Side::kTarget : Side::kSource);
    return false;
  }
  const size_t shorter = std::min(out.src.size(), out.tgt.size());
  const size_t longer = std::max(out.src.size(), out.tgt.size());
  if (rules.max_ratio > 0 &&
      static_cast<double>(longer) > rules.max_ratio * static_cast<double>(shorter)) {
    note(counts.ratio, counts.first_ratio, place,
         out.tgt.size() > out.src.size() ? Side::kTarget : Side::kSource);
    return false;
  }
  ++counts.kept;
  if (replaced.any()) {
    note(counts.replaced, counts.first_replaced, place,
         replaced.src ? ill_formed_source(rules, src) : Side::kTarget);
  }
  if (out.src_cut > 0 || out.tgt_cut > 0) {
    note(counts.truncated, counts.first_truncated, place,
         out.src_cut > 0 ? Side::kSource : Side::kTarget);
  }
  return true;
}

void require_utf8(const PairRules& rules, std::string_view src, std::string_view tgt,
                  const PairPlace& place) {
  if (rules.invalid_utf8 != InvalidUtf8::kError) return;
  std::string text;
  bool replaced = false;
  repair(rules, src, place, Side::kSource, text, replaced);
  repair(rules, tgt, place, Side::kTarget, text, replaced);
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 8);
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80) {
      out += text[i++];
      continue;
    }
    const Lead lead = lead_of(byte);
    size_t length = 1;
    bool whole = lead.following > 0;
    for (int k = 0; whole && k < lead.following; ++k) {
      const size_t at = i + length;
      const auto next = at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
      whole = k == 0 ? next >= lead.low && next <= lead.high : next >= 0x80 && next <= 0xBF;
      if (whole) ++length;
    }
    if (whole) {
      out.append(text.substr(i, length));
    } else {
      out += "\xEF\xBF\xBD";
    }
    i += length;
  }
  return out;
}

}  // namespace stretto::data
