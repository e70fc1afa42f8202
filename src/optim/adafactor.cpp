#include "optim/adafactor.h"

#include "base/error.h"
#include "kernels/adafactor.h"

namespace stretto::optim {

Adafactor::Adafactor(const OptimOptions& options, const Arena& arena, Slice slice)
    : layout_(options, arena, slice) {
  if (!layout_.is_whole()) {
    throw Error(ExitCode::kUsage, "optim.name: adafactor cannot step a slice of the parameters",
                "set dist.strategy = \"all_reduce\", or use another optimizer");
  }
  row_begins_ = column_begins_ = {0};
  for (const auto& slot : arena.slots()) {
    const bool factored = slot.shape.size() >= 2;
    const int64_t width = factored ? std::max<int64_t>(1, slot.shape.back()) : 1;
    const int64_t height = factored ? std::max<int64_t>(1, slot.shape[slot.shape.size() - 2]) : 1;
    row_begins_.push_back(row_begins_.back() + (factored ? slot.numel / width : 0));
    column_begins_.push_back(column_begins_.back() + slot.numel / height);
  }
  rows_ = torch::zeros({row_begins_.back()}, arena.params().options());
  columns_ = torch::zeros({column_begins_.back()}, arena.params().options());
}

void Adafactor::step(Arena& arena, const UpdateStep& update) {
  const auto range = [](const torch::Tensor& buffer, const std::vector<int64_t>& begins, size_t i) {
    return buffer.narrow(0, begins[i], begins[i + 1] - begins[i]);
  };
  for (const Part& part : layout_.tensors()) {
    const auto& slot = arena.slots()[part.slot];
    const GroupSettings& group = layout_.settings(part);
    kernels::adafactor_step(Arena::view(arena.params(), slot), Arena::view(arena.grads(), slot),
                            range(rows_, row_begins_, part.slot),
                            range(columns_, column_begins_, part.slot),
                            {.grad_scale = update.grad_scale,
                             .lr = update.lr * group.lr_scale,
                             .weight_decay = group.weight_decay,
                             .number = update.number});
  }
}

std::vector<StatePiece> Adafactor::state() {
  return {{"rows", rows_, false}, {"columns", columns_, false}};
}

}  // namespace stretto::optim
