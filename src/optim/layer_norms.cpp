#include "optim/layer_norms.h"

namespace stretto::optim {

std::vector<kernels::SquareSums> of_whole_tensors(const Layout& layout,
                                                  const std::vector<kernels::SquareSums>& parts,
                                                  const UpdateStep& update) {
  TORCH_CHECK(layout.is_whole() || update.sum_over_ranks,
              "[optim] norms of tensors need sum_over_ranks when a slice is stepped");
  const size_t num_slots = layout.num_slots();
  std::vector<double> flat(2 * num_slots);
  for (size_t i = 0; i < parts.size(); ++i) {
    const size_t slot = layout.tensors()[i].slot;
    flat[2 * slot] = parts[i].weight;
    flat[2 * slot + 1] = parts[i].update;
  }
  if (update.sum_over_ranks) update.sum_over_ranks(flat);
  std::vector<kernels::SquareSums> sums(num_slots);
  for (size_t slot = 0; slot < num_slots; ++slot) {
    sums[slot] = {flat[2 * slot], flat[2 * slot + 1]};
  }
  return sums;
}

}  // namespace stretto::optim
