#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "data/batch.h"
#include "nn/packed_rows.h"

namespace stretto::train {

/// A micro-batch with the tensors that were made of it ahead of its forward pass: Task::prepare().
///
/// Tensors are made on the CPU, on any thread, and send() takes them to the device of the model.
/// They are only read: some stand on the memory of the batch, which lives as long as the last of
/// them.
class Prepared {
 public:
  /// A batch without tensors.
  explicit Prepared(data::Batch batch)
      : batch_(std::make_shared<const data::Batch>(std::move(batch))) {}

  const data::Batch& batch() const { return *batch_; }
  operator const data::Batch&() const { return *batch_; }

  void add(nn::PackedRows rows) { rows_.push_back(std::move(rows)); }
  void add(at::Tensor tensor) { tensors_.push_back(std::move(tensor)); }
  /// What was added, by number. Throws std::out_of_range where there is less.
  const nn::PackedRows& rows(size_t number = 0) const { return rows_.at(number); }
  const at::Tensor& tensor(size_t number = 0) const { return tensors_.at(number); }
  size_t num_tensors() const { return tensors_.size(); }

  /// The values of a column, on the CPU: [rows], or [rows, width] where a row has more than one;
  /// int64, float or uint8. Integers stand on the memory of the batch. Floats are copied to where
  /// tensors begin: products may round by the alignment of what they read.
  at::Tensor column(size_t number) const;

  /// Takes all tensors to the device, where they are not there yet. To a GPU they go from pinned
  /// memory without blocking, in order with what its current stream computes. Throws as libtorch
  /// does where the device has no memory left; then some have gone, and another call goes on.
  void send(at::Device device);

 private:
  std::shared_ptr<const data::Batch> batch_;
  std::vector<nn::PackedRows> rows_;
  std::vector<at::Tensor> tensors_;
};

/// Makes the tensors of a batch, as Task::prepare() does; called by several threads at once.
using Prepare = std::function<Prepared(data::Batch batch)>;

/// How the batches of a model are made ready: a function of a batch, whatever the thread.
struct Preparation {
  Prepare prepare = {};          ///< empty: batches get no tensors
  at::Device device = at::kCPU;  ///< of the model

  /// With tensors on the CPU; a batch without a sample gets none.
  Prepared make(data::Batch batch) const;
  /// With tensors on the device, for the thread that computes.
  Prepared now(data::Batch batch) const;
  /// The same on a thread of a loader, whose operators of libtorch then have one thread. Tensors
  /// for which the device has no memory stay on the CPU: send() fails again where a smaller batch
  /// helps.
  Prepared ahead(data::Batch batch) const;
};

}  // namespace stretto::train
