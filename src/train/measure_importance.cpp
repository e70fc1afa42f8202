#include "train/measure_importance.h"

#include <algorithm>
#include <vector>

#include "train/prepared.h"

namespace stretto::train {

void measure_importance(Task& task, optim::Arena& arena, int64_t micro_batches,
                        compress::PartImportance& importance) {
  const Preparation preparation = preparation_of(task, arena.params().device());
  const auto& batches = task.train_batches();
  task.model().eval();
  for (int64_t i = 0; i < std::min(micro_batches, batches.num_batches()); ++i) {
    const Prepared prepared = preparation.now(batches.load(/*epoch=*/0, i));
    arena.zero_grads();
    const Sums sums = task.loss(prepared, {});
    objective(sums.losses, std::vector<double>(sums.losses.size(), 1.0)).backward();
    importance.add_gradients(arena);
  }
  arena.zero_grads();
}

}  // namespace stretto::train
