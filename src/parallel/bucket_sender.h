#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "distributed/process_group.h"
#include "parallel/buckets.h"

namespace stretto::parallel {

/// What the processes do with the gradients of a bucket: dist.strategy.
enum class Strategy { kAllReduce, kSharded, kParameterServer };

/// "all_reduce" | "sharded" | "parameter_server"; others throw Error(kUsage).
Strategy strategy_named(const std::string& name);

/// Sends buckets of the gradients, one after the other, and puts the sums back in their place.
///
/// A bucket of one range that is not compressed is sent from where it lies in the arena. Others are
/// gathered in a staging buffer first. Compressed gradients are divided by the number of processes
/// before they are rounded, so that their sum is a mean and cannot leave the range of the half type
/// when the gradients do not, and are multiplied back after it.
///
/// On a GPU the staging runs on a stream of its own, which waits for the gradients of the bucket;
/// the collective waits for that stream alone, so that it runs beside what backward still computes.
class BucketSender {
 public:
  struct Setup {
    Strategy strategy = Strategy::kAllReduce;
    std::string compress = "none";      ///< dist.compress
    std::vector<int64_t> slice_begins;  ///< for sharded
    Range kept;                         ///< where this process needs the sum
  };

  BucketSender(at::Tensor grads, distributed::ProcessGroup channel, Setup setup);

  /// Takes the memory that buckets of so many elements need, so that sending them asks for none.
  void reserve(int64_t elements);

  /// A mark behind the work that computes gradients on the caller's stream; null on the CPU.
  std::shared_ptr<c10::Event> mark() const;
  /// The sum over this process's gradients in the bucket, before they are sent.
  double sum_of_squares(const Bucket& bucket, const std::shared_ptr<c10::Event>& ready) const;
  /// Returns when the sums stand in the arena, where they are kept. Afterwards what is not kept is
  /// unspecified.
  /// @return bytes handed to the process group
  int64_t send(const Bucket& bucket, const std::shared_ptr<c10::Event>& ready);

 private:
  int64_t transfer(const Bucket& bucket);
  void gather(const Bucket& bucket, at::Tensor& wire);
  void collect(const Bucket& bucket, const at::Tensor& wire);
  void spread(const Bucket& bucket, const at::Tensor& wire);
  bool compresses() const { return wire_type_ != grads_.scalar_type(); }

  at::Tensor grads_;
  distributed::ProcessGroup channel_;
  Setup setup_;
  at::ScalarType wire_type_;
  at::Tensor share_;    // 1 / processes
  at::Tensor staging_;  // [elements of the largest bucket that is staged], wire_type_
  at::Tensor scratch_;  // [elements of one step of the division], type of the gradients
  std::optional<c10::Stream> stream_;
};

}  // namespace stretto::parallel
