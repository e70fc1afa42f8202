#include "optim/adafactor.h"

#include "base/error.h"

namespace stretto::optim {
namespace {

/// A slot that has elements as matrices of its last two dimensions; begins of moments are 0.
kernels::AdafactorTensor matrices_of(const Arena::Slot& slot, const GroupSettings& group) {
  kernels::AdafactorTensor tensor{.begin = slot.offset,
                                  .columns = slot.numel,
                                  .factored = slot.shape.size() >= 2,
                                  .lr_scale = group.lr_scale,
                                  .weight_decay = group.weight_decay};
  if (!tensor.factored) return tensor;
  tensor.columns = slot.shape.back();
  tensor.rows = slot.shape[slot.shape.size() - 2];
  tensor.matrices = slot.numel / (tensor.rows * tensor.columns);
  return tensor;
}

std::vector<kernels::AdafactorTensor> tensors_of(const OptimOptions& options, const Arena& arena,
                                                 Slice slice) {
  const Layout layout(options, arena, slice);
  if (!layout.is_whole()) {
    throw Error(ExitCode::kUsage, "optim.name: adafactor cannot step a slice of the parameters",
                "set dist.strategy = \"all_reduce\", or use another optimizer");
  }
  for (const auto& slot : arena.slots()) {
    if (slot.begins == 0) continue;
    throw Error(ExitCode::kUsage,
                "train.unfreeze: adafactor steps all tensors at once, `" + slot.name + "` too",
                "use another optimizer, or train.freeze");
  }
  std::vector<kernels::AdafactorTensor> tensors;
  int64_t rows = 0, columns = 0;
  for (const Part& part : layout.tensors()) {
    kernels::AdafactorTensor& tensor =
        tensors.emplace_back(matrices_of(arena.slots()[part.slot], layout.settings(part)));
    tensor.row_moments = rows;
    tensor.column_moments = columns;
    rows = tensor.row_moments_end();
    columns = tensor.column_moments_end();
  }
  return tensors;
}

}  // namespace

Adafactor::Adafactor(const OptimOptions& options, const Arena& arena, Slice slice)
    : tensors_(tensors_of(options, arena, slice)),
      rows_(torch::zeros({tensors_.num_row_moments()}, arena.params().options())),
      columns_(torch::zeros({tensors_.num_column_moments()}, arena.params().options())) {}

void Adafactor::step(Arena& arena, const UpdateStep& update) {
  tensors_.step(arena.params(), arena.grads(), rows_, columns_,
                {.grad_scale = update.grad_scale, .lr = update.lr, .number = update.number});
}

std::vector<StateTensor> Adafactor::state() {
  return {{"rows", rows_, false}, {"columns", columns_, false}};
}

}  // namespace stretto::optim
