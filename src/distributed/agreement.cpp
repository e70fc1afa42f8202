#include "distributed/agreement.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"

namespace stretto::distributed {
namespace {

constexpr const char* kMissing = "(not known)";

std::string value_of(const std::vector<Fact>& facts, const std::string& name) {
  for (const auto& fact : facts) {
    if (fact.name == name) return fact.value;
  }
  return kMissing;
}

std::vector<std::string> all_names(std::span<const std::vector<Fact>> by_rank) {
  std::vector<std::string> names;
  for (const auto& facts : by_rank) {
    for (const auto& fact : facts) {
      if (std::find(names.begin(), names.end(), fact.name) == names.end()) {
        names.push_back(fact.name);
      }
    }
  }
  return names;
}

/// Ranks that have the same value, in order of the first of them.
struct RankGroup {
  std::string value;
  std::vector<int> ranks;
};

std::vector<RankGroup> rank_groups(std::span<const std::vector<Fact>> by_rank,
                                   const std::string& name) {
  std::vector<RankGroup> found;
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    const std::string value = value_of(by_rank[rank], name);
    auto rank_group = std::find_if(found.begin(), found.end(),
                                   [&](const RankGroup& one) { return one.value == value; });
    if (rank_group == found.end()) rank_group = found.insert(found.end(), {value, {}});
    rank_group->ranks.push_back(static_cast<int>(rank));
  }
  return found;
}

}  // namespace

std::string rank_list(std::span<const int> ranks) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    std::string part = std::to_string(ranks[i]);
    if (end - i == 2) part += ", " + std::to_string(ranks[end - 1]);
    if (end - i > 2) part += "-" + std::to_string(ranks[end - 1]);
    parts.push_back(part);
    i = end;
  }
  return join(parts, ", ");
}

std::string disagreement(std::span<const std::vector<Fact>> by_rank) {
  std::vector<std::string> lines;
  for (const auto& name : all_names(by_rank)) {
    const auto found = rank_groups(by_rank, name);
    if (found.size() < 2) continue;
    std::vector<std::string> parts;
    for (const auto& rank_group : found) {
      parts.push_back(printable(rank_group.value) + " on rank" +
                      (rank_group.ranks.size() == 1 ? " " : "s ") + rank_list(rank_group.ranks));
    }
    lines.push_back(name + ": " + join(parts, "; "));
  }
  return join(lines, "\n");
}

void require_agreement(const ProcessGroup& group, const std::vector<Fact>& facts) {
  if (group.size() == 1) return;
  auto mine = nlohmann::json::array();
  for (const auto& fact : facts) mine.push_back({fact.name, fact.value});
  const auto dumped =
      mine.dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace);
  // Of many facts on many ranks a hash each is enough while they agree.
  const auto hashes = group.all_gather_bytes(hex64(xxh3_64(dumped)));
  if (std::all_of(hashes.begin(), hashes.end(),
                  [&](const std::string& hash) { return hash == hashes[0]; })) {
    return;
  }
  std::vector<std::vector<Fact>> by_rank;
  for (const auto& text : group.all_gather_bytes(dumped)) {
    auto& theirs = by_rank.emplace_back();
    for (const auto& pair : parse_json(text, "facts of a rank", 1 << 20)) {
      theirs.push_back({pair.at(0).get<std::string>(), pair.at(1).get<std::string>()});
    }
  }
  throw Error(ExitCode::kUsage, "the processes were not started alike: " + disagreement(by_rank),
              "start all of them with the same program, configuration and data");
}

}  // namespace stretto::distributed
