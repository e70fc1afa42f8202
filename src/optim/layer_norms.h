#pragma once

#include <vector>

#include "kernels/step_numbers.h"
#include "optim/groups.h"

namespace stretto::optim {

/// Sums of squares of whole tensors, from those of their parts in a slice: one entry for each slot
/// of the arena, added over the processes with update.sum_over_ranks. A slice that is not the whole
/// arena needs that function (TORCH_CHECK).
///
/// @param parts  one entry for each of layout.tensors()
std::vector<kernels::SquareSums> of_whole_tensors(const Layout& layout,
                                                  const std::vector<kernels::SquareSums>& parts,
                                                  const UpdateStep& update);

}  // namespace stretto::optim
