#include "decoding/shortlist.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"

namespace stretto::decoding {
namespace {

void require_known(const Shortlist::Pair& pair, int64_t num_src, int64_t num_tgt) {
  if (pair.src >= 0 && pair.src < num_src && pair.tgt >= 0 && pair.tgt < num_tgt) return;
  throw Error(ExitCode::kBadData,
              "a shortlist's pair of tokens " + std::to_string(pair.src) + " and " +
                  std::to_string(pair.tgt) + " is outside of vocabularies of " +
                  std::to_string(num_src) + " and " + std::to_string(num_tgt),
              "make it with the tokenizers of this run");
}

}  // namespace

Shortlist::Shortlist(std::vector<Pair> pairs, int64_t num_src, int64_t num_tgt, int64_t num_common,
                     int64_t most_of_token)
    : num_common_(std::clamp<int64_t>(num_common, 0, num_tgt)) {
  for (const Pair& pair : pairs) require_known(pair, num_src, num_tgt);
  std::ranges::stable_sort(pairs, [](const Pair& a, const Pair& b) {
    if (a.src != b.src) return a.src < b.src;
    return a.probability != b.probability ? a.probability > b.probability : a.tgt < b.tgt;
  });
  begins_.push_back(0);
  auto next = pairs.begin();
  for (int64_t src = 0; src < num_src; ++src) {
    const auto first = targets_.size();
    for (; next != pairs.end() && next->src == src; ++next) {
      const auto own = std::span(targets_).subspan(first);
      const auto tgt = static_cast<int32_t>(next->tgt);
      if (std::ssize(own) < most_of_token && std::ranges::find(own, tgt) == own.end()) {
        targets_.push_back(tgt);
      }
    }
    begins_.push_back(std::ssize(targets_));
  }
}

std::vector<int64_t> Shortlist::of(std::span<const int64_t> src,
                                   std::span<const int64_t> always) const {
  std::vector<int64_t> ids;
  for (int64_t id = 0; id < num_common_; ++id) ids.push_back(id);
  ids.insert(ids.end(), always.begin(), always.end());
  for (const int64_t token : src) {
    if (token < 0 || token + 1 >= std::ssize(begins_)) continue;
    const auto at = static_cast<size_t>(token);
    for (int64_t i = begins_[at]; i < begins_[at + 1]; ++i) {
      ids.push_back(targets_[static_cast<size_t>(i)]);
    }
  }
  std::ranges::sort(ids);
  const auto rest = std::ranges::unique(ids);
  ids.erase(rest.begin(), rest.end());
  return ids;
}

}  // namespace stretto::decoding
