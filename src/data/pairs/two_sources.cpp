#include "data/pairs/two_sources.h"

#include <algorithm>
#include <utility>

namespace stretto::data {

void join_sources(std::string_view first, std::string_view second, std::string& joined) {
  joined.assign(first);
  joined += '\t';
  joined += second;
  std::replace(joined.begin(), joined.end(), '\t', ' ');
  joined[first.size()] = '\t';
}

std::optional<SourceTexts> split_sources(std::string_view joined) {
  const size_t tab = joined.find('\t');
  if (tab == std::string_view::npos) return std::nullopt;
  return SourceTexts{.first = joined.substr(0, tab), .second = joined.substr(tab + 1)};
}

bool encode_sources(const text::Tokenizer& tokenizer, std::string_view joined,
                    std::vector<int64_t>& ids) {
  const auto texts = split_sources(joined);
  if (!texts) return false;
  const text::SpecialIds specials = tokenizer.specials();
  const size_t begin = ids.size();
  const auto append = [&](std::string_view text) {
    const size_t before = ids.size();
    tokenizer.encode(text, ids);
    // What a text spells is no boundary.
    const auto own = ids.begin() + static_cast<std::ptrdiff_t>(before);
    if (specials.unk >= 0) {
      std::replace(own, ids.end(), specials.eos, specials.unk);
    } else {
      ids.erase(std::remove(own, ids.end(), specials.eos), ids.end());
    }
    return ids.size() > before;
  };
  bool whole = append(texts->first);
  ids.push_back(specials.eos);
  whole = append(texts->second) && whole;
  if (!whole) ids.resize(begin);
  return whole;
}

int64_t cut_sources(std::vector<int64_t>& ids, int64_t most, int64_t eos) {
  const auto size = static_cast<int64_t>(ids.size());
  if (size <= most) return 0;
  const auto first = static_cast<int64_t>(end_of_first_source(ids, eos));
  const int64_t left = most - 1, both = size - 1;  // without the boundary
  const int64_t of_first = std::max<int64_t>(1, left * first / both);
  const int64_t of_second = left - of_first;
  std::vector<int64_t> cut(ids.begin(), ids.begin() + of_first);
  cut.push_back(eos);
  cut.insert(cut.end(), ids.begin() + first + 1, ids.begin() + first + 1 + of_second);
  ids = std::move(cut);
  return size - most;
}

size_t end_of_first_source(std::span<const int64_t> ids, int64_t eos) {
  return static_cast<size_t>(std::find(ids.begin(), ids.end(), eos) - ids.begin());
}

std::string decode_sources(const text::Tokenizer& tokenizer, const std::vector<int64_t>& ids) {
  const auto boundary =
      static_cast<std::ptrdiff_t>(end_of_first_source(ids, tokenizer.specials().eos));
  std::string joined;
  join_sources(tokenizer.decode({ids.begin(), ids.begin() + boundary}),
               tokenizer.decode({ids.begin() + boundary, ids.end()}), joined);
  return joined;
}

std::string readable_sources(const text::Tokenizer& tokenizer, std::string_view joined) {
  const auto texts = split_sources(joined);
  if (!texts) return tokenizer.readable(joined);
  return tokenizer.readable(texts->first) + "\t" + tokenizer.readable(texts->second);
}

}  // namespace stretto::data
