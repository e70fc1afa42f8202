#include <array>
#include <unordered_map>

#include "text/tokenizer.h"

namespace stretto::text {
namespace {

constexpr std::array<int64_t SpecialIds::*, 5> kSpecialKinds{
    &SpecialIds::pad, &SpecialIds::unk, &SpecialIds::bos, &SpecialIds::eos, &SpecialIds::mask};

bool is_special(const SpecialIds& specials, int64_t id) {
  for (const auto kind : kSpecialKinds) {
    if (specials.*kind == id) return true;
  }
  return false;
}

}  // namespace

std::vector<int64_t> match_pieces(const Tokenizer& now, const Tokenizer& before) {
  const SpecialIds own = now.specials(), others = before.specials();
  // A piece that stands in a vocabulary twice gets the later of its ids.
  std::unordered_map<std::string, int64_t> ids;
  for (int64_t id = 0; id < before.size(); ++id) {
    if (!is_special(others, id)) ids[before.piece(id)] = id;
  }
  std::vector<int64_t> matched(static_cast<size_t>(now.size()), -1);
  for (int64_t id = 0; id < now.size(); ++id) {
    if (is_special(own, id)) continue;
    const auto found = ids.find(now.piece(id));
    if (found != ids.end()) matched[static_cast<size_t>(id)] = found->second;
  }
  for (const auto kind : kSpecialKinds) {
    const int64_t id = own.*kind;
    if (id >= 0 && others.*kind >= 0) matched.at(static_cast<size_t>(id)) = others.*kind;
  }
  return matched;
}

}  // namespace stretto::text
