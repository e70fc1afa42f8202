// From a plan and tensors to the launches of cuda_adafactor.cu.
#include "kernels/optimizer/cuda_adafactor.h"

#include <cmath>

#include "kernels/cuda/bridge.h"
#include "kernels/optimizer/cuda_adafactor_launch.h"

namespace stretto::kernels::cuda {
namespace {

at::Tensor room_for(size_t bytes, at::Device device) {
  return at::empty({static_cast<int64_t>(bytes)}, at::device(device).dtype(at::kByte));
}

template <class Chunk>
at::Tensor on_device(const std::vector<Chunk>& chunks, at::Device device) {
  at::Tensor bytes = room_for(chunks.size() * sizeof(Chunk), device);
  if (!chunks.empty())
    bytes.copy_(at::from_blob(const_cast<Chunk*>(chunks.data()), bytes.sizes(), at::kByte));
  return bytes;
}

template <class Chunk>
Chunks<Chunk> chunks_of(const at::Tensor& bytes) {
  return {static_cast<const Chunk*>(bytes.const_data_ptr()),
          bytes.numel() / static_cast<int64_t>(sizeof(Chunk))};
}

}  // namespace

AdafactorTable::AdafactorTable(const AdafactorPlan& plan, at::Device device)
    : tiles_(on_device(plan.tiles, device)),
      folds_(on_device(plan.folds, device)),
      share_chunks_(on_device(plan.shares, device)),
      blocks_(on_device(plan.blocks, device)),
      tensors_(on_device(plan.tensors, device)),
      partials_(at::empty({plan.num_partials}, at::device(device).dtype(at::kFloat))),
      shares_(at::empty({plan.num_shares}, at::device(device).dtype(at::kFloat))),
      sums_(room_for(plan.blocks.size() * sizeof(SquareSums), device)),
      rates_(room_for(plan.tensors.size() * sizeof(FactorRate), device)) {}

void AdafactorTable::step(at::Tensor& params, const at::Tensor& grads, at::Tensor& rows,
                          at::Tensor& columns, const AdafactorStep& step) const {
  AdafactorMemory memory{};
  memory.tiles = chunks_of<FactorTile>(tiles_);
  memory.folds = chunks_of<FactorFold>(folds_);
  memory.share_chunks = chunks_of<FactorShares>(share_chunks_);
  memory.blocks = chunks_of<FactorBlock>(blocks_);
  memory.tensors = chunks_of<FactorTensor>(tensors_);
  memory.partials = partials_.data_ptr<float>();
  memory.shares = shares_.data_ptr<float>();
  memory.sums = static_cast<SquareSums*>(sums_.data_ptr());
  memory.rates = static_cast<FactorRate*>(rates_.data_ptr());
  memory.params = params.data_ptr<float>();
  memory.grads = grads.const_data_ptr<float>();
  memory.rows = rows.data_ptr<float>();
  memory.columns = columns.data_ptr<float>();
  const auto number = static_cast<double>(step.number);
  const AdafactorScalars scalars{static_cast<float>(step.grad_scale),
                                 std::pow(number, kAdafactorDecay), step.lr, 1 / std::sqrt(number)};
  on_stream(params, [&](cudaStream_t stream) { step_adafactor(memory, scalars, stream); });
}

}  // namespace stretto::kernels::cuda
