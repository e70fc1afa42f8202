#include "text/space_marks.h"

#include <unicode/bytestream.h>
#include <unicode/edits.h>
#include <unicode/normalizer2.h>
#include <unicode/stringpiece.h>
#include <unicode/uniset.h>
#include <unicode/unistr.h>

#include <cstdint>
#include <string>

#include "text/code_points.h"
#include "text/subwords.h"

namespace stretto::text {
namespace {

bool is_marked_before(std::string_view text, TokenizerSpec::SpacePrefix prefix, bool is_first) {
  using Prefix = TokenizerSpec::SpacePrefix;
  const bool begins_with_space = text.starts_with(' ') || text.starts_with(kWordStart);
  switch (prefix) {
    case Prefix::kDoubled:
      return true;
    case Prefix::kAlways:
      return !begins_with_space;
    case Prefix::kFirst:
      return is_first && !begins_with_space;
    case Prefix::kNever:
      break;
  }
  return false;
}

/// Each byte has the place of its character.
void append_as_it_is(std::string_view text, uint32_t first, NormalizedText& out) {
  uint32_t begin = 0;
  for (uint32_t at = 0; at < text.size(); ++at) {
    if (!continues_code_point(text[at])) begin = at;
    out.origin.push_back(first + begin);
  }
}

/// By the characters of Unicode 9, as the reference has it: later ones stay where they are. Null
/// where ICU has no data.
const icu::Normalizer2* composition() {
  static UErrorCode status = U_ZERO_ERROR;
  static const icu::Normalizer2* const kForm = icu::Normalizer2::getNFCInstance(status);
  if (U_FAILURE(status)) return nullptr;
  static const icu::UnicodeSet kKnown(icu::UnicodeString("[:age=9.0:]"), status);
  static const icu::FilteredNormalizer2 kKnownForm(*kForm, kKnown);
  return U_FAILURE(status) ? nullptr : &kKnownForm;
}

}  // namespace

void mark_spaces(std::string_view text, TokenizerSpec::SpacePrefix prefix, bool is_first,
                 bool with_origin, NormalizedText& out) {
  out.text.clear();
  out.origin.clear();
  const auto append = [&](std::string_view added, uint32_t origin) {
    out.text += added;
    if (with_origin) out.origin.resize(out.text.size(), origin);
  };
  if (is_marked_before(text, prefix, is_first)) append(kWordStart, 0);
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    next_code_point(text, at);
    const bool is_space = text[begin] == ' ';
    append(is_space ? kWordStart : text.substr(begin, at - begin), static_cast<uint32_t>(begin));
  }
}

void compose(std::string_view text, bool with_origin, NormalizedText& out) {
  out.text.clear();
  out.origin.clear();
  const icu::StringPiece given(text.data(), static_cast<int32_t>(text.size()));
  UErrorCode status = U_ZERO_ERROR;
  const auto* form = composition();
  if (form == nullptr || form->isNormalizedUTF8(given, status)) {
    out.text = text;
    if (with_origin) append_as_it_is(text, 0, out);
    return;
  }
  icu::Edits edits;
  icu::StringByteSink<std::string> sink(&out.text);
  form->normalizeUTF8(0, given, sink, with_origin ? &edits : nullptr, status);
  if (!with_origin) return;
  auto each = edits.getFineIterator();
  while (each.next(status)) {
    const auto from = static_cast<uint32_t>(each.sourceIndex());
    if (each.hasChange()) {
      out.origin.resize(out.origin.size() + static_cast<size_t>(each.newLength()), from);
    } else {
      append_as_it_is(text.substr(from, static_cast<size_t>(each.oldLength())), from, out);
    }
  }
}

}  // namespace stretto::text
