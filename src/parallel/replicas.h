#pragma once

#include <cstdint>

#include "distributed/process_group.h"

namespace stretto::parallel {

/// What must be the same on every rank after an update.
struct Replica {
  int64_t step = 0;
  double grad_norm = 0;
  uint64_t weights = 0;  ///< hash of the parameters
};

/// All ranks hold the same weights, unless memory, a cable or a program failed silently. Compares
/// norm and weights bit by bit; collective, with one message of 32 bytes from each rank.
///
/// Throws Error(kNumeric) on all ranks that names those which differ from the majority.
void require_equal_replicas(const distributed::ProcessGroup& group, const Replica& mine);

}  // namespace stretto::parallel
