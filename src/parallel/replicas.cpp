#include "parallel/replicas.h"

#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "distributed/agreement.h"

namespace stretto::parallel {

void require_equal_replicas(const distributed::ProcessGroup& group, const Replica& mine) {
  const auto bits = std::bit_cast<uint64_t>(mine.grad_norm);
  const auto seen = group.all_gather_bytes(hex64(bits) + hex64(mine.weights));
  std::map<std::string, size_t> votes;
  for (const auto& value : seen) votes[value] += 1;
  if (votes.size() == 1) return;
  const auto common = std::max_element(votes.begin(), votes.end(),
                                       [](auto& a, auto& b) { return a.second < b.second; });
  const bool majority = 2 * common->second > seen.size();
  std::vector<int> odd;
  for (size_t rank = 0; rank < seen.size(); ++rank) {
    if (!majority || seen[rank] != common->first) odd.push_back(static_cast<int>(rank));
  }
  const std::string ranks = distributed::rank_list(odd);
  throw Error(ExitCode::kNumeric,
              "step " + std::to_string(mine.step) + ": gradient norm or weights of " +
                  (majority ? "rank " + ranks + " differ from those of the other processes"
                            : "ranks " + ranks + " differ, and there is no majority"),
              "memory or a network card of that machine may be faulty: leave it out, and go on "
              "from the last checkpoint");
}

}  // namespace stretto::parallel
