#include <unordered_map>

#include "text/tokenizer.h"

namespace stretto::text {

std::vector<int64_t> match_pieces(const Tokenizer& now, const Tokenizer& before) {
  // Of a piece that stands in a vocabulary twice the later id is the one that is given.
  std::unordered_map<std::string, int64_t> ids;
  for (int64_t id = kEos + 1; id < before.size(); ++id) ids[before.piece(id)] = id;
  std::vector<int64_t> matched;
  for (int64_t id = 0; id < now.size(); ++id) {
    const auto found = id <= kEos ? ids.end() : ids.find(now.piece(id));
    matched.push_back(id <= kEos ? id : found == ids.end() ? -1 : found->second);
  }
  return matched;
}

}  // namespace stretto::text
