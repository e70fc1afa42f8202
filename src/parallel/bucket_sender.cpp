#include "parallel/bucket_sender.h"

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "kernels/kernels.h"
#include "parallel/tensor_buffer.h"

namespace stretto::parallel {
namespace {

// On a CPU copies and conversions go in steps that stay in the cache and are too small for ATen to
// call other threads: those compute.
constexpr int64_t kHostStep = int64_t{1} << 14;

at::ScalarType wire_type(const std::string& compress, at::ScalarType plain) {
  if (compress == "bf16") return at::kBFloat16;
  if (compress == "fp16") return at::kHalf;
  return plain;
}

template <class Body>
void in_steps(int64_t count, int64_t step, Body body) {
  for (int64_t begin = 0; begin < count; begin += step) body(begin, std::min(step, count - begin));
}

}  // namespace

Strategy strategy_named(const std::string& name) {
  if (name == "all_reduce") return Strategy::kAllReduce;
  if (name == "sharded") return Strategy::kSharded;
  if (name == "parameter_server") return Strategy::kParameterServer;
  throw Error(ExitCode::kUsage, "dist.strategy: unknown strategy `" + name + "`",
              "known: all_reduce, sharded, parameter_server");
}

BucketSender::BucketSender(at::Tensor grads, distributed::ProcessGroup channel, Setup setup)
    : grads_(std::move(grads)),
      channel_(std::move(channel)),
      setup_(std::move(setup)),
      wire_type_(wire_type(setup_.compress, grads_.scalar_type())),
      share_(at::scalar_tensor(1.0 / channel_.size(), grads_.options())) {
  if (!grads_.is_cpu()) {
    const c10::impl::VirtualGuardImpl device(grads_.device().type());
    stream_ = device.getStreamFromGlobalPool(grads_.device(), /*isHighPriority=*/true);
  }
}

void BucketSender::reserve(int64_t elements) {
  staging_ = at::empty({elements}, grads_.options().dtype(wire_type_));
  if (!compresses()) return;
  const int64_t step = grads_.is_cpu() ? std::min(kHostStep, elements) : elements;
  scratch_ = at::empty({step}, grads_.options());
}

std::shared_ptr<c10::Event> BucketSender::mark() const {
  if (!stream_) return nullptr;
  const c10::impl::VirtualGuardImpl device(grads_.device().type());
  auto event = std::make_shared<c10::Event>(grads_.device().type());
  event->record(device.getStream(grads_.device()));
  return event;
}

double BucketSender::sum_of_squares(const Bucket& bucket,
                                    const std::shared_ptr<c10::Event>& ready) const {
  std::optional<c10::StreamGuard> on_own_stream;
  if (stream_) {
    on_own_stream.emplace(*stream_);
    if (ready) ready->block(*stream_);
  }
  double sum = 0;
  for (const Range& range : bucket.ranges) {
    sum += kernels::sum_of_squares(grads_.narrow(0, range.begin, range.size()));
  }
  return sum;
}

int64_t BucketSender::send(const Bucket& bucket, const std::shared_ptr<c10::Event>& ready) {
  if (!stream_) return transfer(bucket);
  const c10::StreamGuard on_own_stream(*stream_);
  if (ready) ready->block(*stream_);
  return transfer(bucket);
}

int64_t BucketSender::transfer(const Bucket& bucket) {
  const at::NoGradGuard no_grad;
  const bool staged = compresses() || bucket.ranges.size() > 1;
  at::Tensor wire = staged ? staging_.narrow(0, 0, bucket.size())
                           : grads_.narrow(0, bucket.ranges[0].begin, bucket.size());
  if (staged) gather(bucket, wire);
  collect(bucket, wire);
  if (staged) spread(bucket, wire);
  if (stream_) stream_->synchronize();
  return static_cast<int64_t>(wire.nbytes());
}

void BucketSender::collect(const Bucket& bucket, const at::Tensor& wire) {
  switch (setup_.strategy) {
    case Strategy::kAllReduce:
      return channel_.all_reduce(buffer_of(wire));
    case Strategy::kSharded:
      return channel_.reduce_scatter(buffer_of(wire), cut_by_slices(bucket, setup_.slice_begins));
    case Strategy::kParameterServer:
      return channel_.reduce(buffer_of(wire), /*root=*/0);
  }
}

void BucketSender::gather(const Bucket& bucket, at::Tensor& wire) {
  int64_t offset = 0;
  for (const Range& range : bucket.ranges) {
    const int64_t step = grads_.is_cpu() ? kHostStep : range.size();
    in_steps(range.size(), step, [&](int64_t begin, int64_t count) {
      const at::Tensor from = grads_.narrow(0, range.begin + begin, count);
      at::Tensor to = wire.narrow(0, offset + begin, count);
      if (compresses()) {
        at::Tensor scaled = scratch_.narrow(0, 0, count);
        at::mul_out(scaled, from, share_);
        to.copy_(scaled);
      } else {
        to.copy_(from);
      }
    });
    offset += range.size();
  }
}

void BucketSender::spread(const Bucket& bucket, const at::Tensor& wire) {
  int64_t offset = 0;  // of the range in the bucket
  for (const Range& range : bucket.ranges) {
    const Range kept{std::max(range.begin, setup_.kept.begin),
                     std::min(range.end, setup_.kept.end)};
    const int64_t step = grads_.is_cpu() ? kHostStep : range.size();
    in_steps(kept.size(), step, [&](int64_t begin, int64_t count) {
      const int64_t at = kept.begin + begin;
      at::Tensor to = grads_.narrow(0, at, count);
      to.copy_(wire.narrow(0, offset + at - range.begin, count));
      if (compresses()) to.mul_(channel_.size());
    });
    offset += range.size();
  }
}

}  // namespace stretto::parallel
