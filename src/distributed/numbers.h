#pragma once

#include <span>

#include "distributed/process_group.h"

namespace stretto::distributed {

/// A few numbers in host memory, whatever memory the group's collectives work on. Collective.
///
/// Adds over ranks, in place; every rank gets the same bits.
void sum_numbers(const ProcessGroup& group, std::span<double> numbers);

/// `table` has size() rows of equal length; each rank has filled its own, and gets the others'.
void gather_numbers(const ProcessGroup& group, std::span<double> table);

}  // namespace stretto::distributed
