#pragma once

#include <span>
#include <string>
#include <vector>

#include "distributed/process_group.h"

namespace stretto::distributed {

/// Something that must be the same on all ranks: {"configuration", "1f0c…"}.
struct Fact {
  std::string name, value;
};

/// What differs between ranks, one line for each name, empty when nothing does:
/// "program version: 0.1.0 on ranks 0, 2-3; 0.1.1 on rank 1".
std::string disagreement(std::span<const std::vector<Fact>> by_rank);

/// "0, 2-5, 7", of ranks in ascending order.
std::string rank_list(std::span<const int> ranks);

/// Compares the facts of all ranks. Collective. Throws Error(kUsage) on every rank, with what
/// differs.
void require_agreement(const ProcessGroup& group, const std::vector<Fact>& facts);

}  // namespace stretto::distributed
