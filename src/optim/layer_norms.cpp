#include "optim/layer_norms.h"

namespace stretto::optim {

std::vector<kernels::SquareSums> of_whole_tensors(const Layout& layout,
                                                  const std::vector<kernels::SquareSums>& parts,
                                                  const UpdateStep& update, size_t lists) {
  TORCH_CHECK(layout.is_whole() || update.sum_over_ranks,
              "[optim] norms of tensors need sum_over_ranks when a slice is stepped");
  const auto& mine = layout.blocks();
  const auto& all = layout.block_slots();
  TORCH_CHECK(parts.size() == lists * mine.size(), "[optim] ", parts.size(), " sums for ", lists,
              " times ", mine.size(), " blocks");
  std::vector<double> flat(2 * lists * all.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    const size_t block = i / mine.size() * all.size() + mine[i % mine.size()].block;
    flat[2 * block] = parts[i].weight;
    flat[2 * block + 1] = parts[i].update;
  }
  // One process has a block and the others add zeros, which is exact.
  if (update.sum_over_ranks) update.sum_over_ranks(flat);
  std::vector<kernels::SquareSums> sums(lists * layout.num_slots());
  for (size_t block = 0; block < lists * all.size(); ++block) {
    auto& sum = sums[block / all.size() * layout.num_slots() + all[block % all.size()]];
    sum.weight += flat[2 * block];
    sum.update += flat[2 * block + 1];
  }
  return sums;
}

}  // namespace stretto::optim
