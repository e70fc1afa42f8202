#include "train/prepared.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "parallel/out_of_memory.h"

namespace stretto::train {
namespace {

at::Tensor sent(const at::Tensor& tensor, at::Device device) {
  if (tensor.device().type() == device.type()) return tensor;
  if (!device.is_cuda() || tensor.is_pinned()) return tensor.to(device, /*non_blocking=*/true);
  // Not by copy_(), which would start threads for a large one.
  const at::Tensor dense = tensor.contiguous();
  const at::Tensor pinned = at::empty(dense.sizes(), dense.options().pinned_memory(true));
  if (dense.nbytes() > 0) {
    std::memcpy(pinned.mutable_data_ptr(), dense.const_data_ptr(), dense.nbytes());
  }
  return pinned.to(device, /*non_blocking=*/true);
}

template <class T>
at::Tensor values_of(const data::Ragged<T>& column,
                     const std::shared_ptr<const data::Batch>& batch) {
  std::vector<int64_t> sizes{column.num_rows()};
  if (column.width != 1) sizes.push_back(column.width);
  const auto type = c10::CppTypeToScalarType<T>::value;
  if (std::is_floating_point_v<T> || column.values.empty()) {
    const at::Tensor copy = at::empty(sizes, type);
    std::ranges::copy(column.values, copy.mutable_data_ptr<T>());
    return copy;
  }
  // Nothing writes to it: see Prepared.
  return at::from_blob(
      const_cast<T*>(column.values.data()), sizes, [batch](void*) {}, type);
}

}  // namespace

at::Tensor Prepared::column(size_t number) const {
  return std::visit([&](const auto& values) { return values_of(values, batch_); },
                    batch_->columns.at(number));
}

void Prepared::send(at::Device device) {
  const auto take = [&](at::Tensor& tensor) {
    if (tensor.defined()) tensor = sent(tensor, device);
  };
  for (nn::PackedRows& rows : rows_) {
    // All members, which the compiler counts.
    auto& [ids, positions, row_keys, offsets, dropped_words, segments] = rows;
    for (at::Tensor* one :
         std::array{&ids, &positions, &row_keys, &offsets.values, &dropped_words, &segments}) {
      take(*one);
    }
  }
  for (at::Tensor& tensor : tensors_) take(tensor);
}

Prepared Preparation::make(data::Batch batch) const {
  const at::NoGradGuard no_grad;
  if (!prepare || batch.num_sequences() == 0) return Prepared(std::move(batch));
  return prepare(std::move(batch));
}

Prepared Preparation::now(data::Batch batch) const {
  Prepared made = make(std::move(batch));
  made.send(device);
  return made;
}

Prepared Preparation::ahead(data::Batch batch) const {
  at::get_num_threads();   // the first of a thread sets OpenMP's number
  omp_set_num_threads(1);  // of this thread's loops: the other cores compute
  Prepared made = make(std::move(batch));
  try {
    made.send(device);
  } catch (const std::exception& error) {
    if (!parallel::is_out_of_memory(error)) throw;
  }
  return made;
}

}  // namespace stretto::train
