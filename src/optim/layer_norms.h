#pragma once

#include <vector>

#include "kernels/optimizer/step_numbers.h"
#include "optim/groups.h"

namespace stretto::optim {

/// Sums of squares of whole tensors, from those of the blocks in a slice: one entry for each slot
/// of the arena. The sums of blocks are brought together with update.sum_over_ranks, which a slice
/// that is not the whole arena needs (TORCH_CHECK), and added in the order of the arena. Where
/// slices begin at multiples of kernels::kStepBlock, as those of parallel::GradientReducer do, the
/// bits are those of one process.
///
/// @param parts  one entry for each of layout.blocks(), or `lists` such lists, one after another,
///               of which as many lists of slots come back
std::vector<kernels::SquareSums> of_whole_tensors(const Layout& layout,
                                                  const std::vector<kernels::SquareSums>& parts,
                                                  const UpdateStep& update, size_t lists = 1);

}  // namespace stretto::optim
