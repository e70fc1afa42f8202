#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace stretto::distributed {

/// What a buffer of a collective holds. Half types are summed in fp32 and rounded once per
/// addition.
enum class Element { kF32, kF64, kBf16, kF16, kI64, kByte };

/// Bytes of one element.
size_t size_of(Element element);

/// Memory that a collective works on: host memory for MPI, device memory for NCCL.
struct Buffer {
  void* data = nullptr;
  int64_t count = 0;
  Element element = Element::kF32;
  /// Device memory: the cudaStream_t on which the last work on it was queued; null = the default
  /// stream. The collective waits for what that stream was given before, and for nothing else.
  void* stream = nullptr;
};
Buffer buffer(std::span<float> values);
Buffer buffer(std::span<double> values);
Buffer buffer(std::span<int64_t> values);

/// What a backend does; one object for each group of processes and channel. `ProcessGroup` has the
/// contracts.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const char* name() const = 0;
  virtual bool on_device() const { return false; }
  virtual int device() const { return -1; }
  virtual void all_reduce(Buffer data) = 0;
  virtual void reduce(Buffer data, int root) = 0;
  virtual void broadcast(Buffer data, int root) = 0;
  virtual void reduce_scatter(Buffer data, std::span<const int64_t> begins) = 0;
  virtual void all_gather(Buffer data, std::span<const int64_t> begins) = 0;
  virtual void exchange(Buffer send, Buffer receive, std::span<const int64_t> begins) = 0;
  virtual std::vector<std::string> all_gather_bytes(const std::string& mine) = 0;
  virtual void barrier() = 0;
  virtual std::shared_ptr<Transport> duplicate() = 0;
  virtual void check_peers() const {}
};

/// The processes that train one model together, as a value: copies share one connection, and the
/// default is a group of one, for which every operation is done at once.
///
/// All ranks call the same operations in the same order. An operation returns when its result is
/// there, for work on any stream that is queued afterwards; while it waits it sleeps between looks,
/// and never spins on a core that computes. When a peer is lost it throws Error(kPeerLost) that
/// names the rank, instead of waiting forever; a thread that computes meanwhile learns of it by
/// `check_peers()`. One channel serves one thread at a time; `duplicate()` makes another over the
/// same processes.
class ProcessGroup {
 public:
  ProcessGroup() = default;
  explicit ProcessGroup(std::shared_ptr<Transport> transport) : transport_(std::move(transport)) {}

  int rank() const { return transport_ ? transport_->rank() : 0; }
  int size() const { return transport_ ? transport_->size() : 1; }
  bool is_root() const { return rank() == 0; }
  const char* name() const { return transport_ ? transport_->name() : "single"; }
  /// True when buffers are device memory (NCCL).
  bool on_device() const { return transport_ && transport_->on_device(); }
  /// Index of the GPU whose memory that is, among those that this process sees; -1 for none.
  int device() const { return transport_ ? transport_->device() : -1; }

  /// Sum over ranks, in place; every rank gets the same bits.
  void all_reduce(Buffer data) const {
    if (transport_) transport_->all_reduce(data);
  }
  /// Sum over ranks, in place on `root`; elsewhere the content is then unspecified.
  void reduce(Buffer data, int root = 0) const {
    if (transport_) transport_->reduce(data, root);
  }
  void broadcast(Buffer data, int root = 0) const {
    if (transport_) transport_->broadcast(data, root);
  }
  /// Part r of `data` is [begins[r], begins[r + 1]); begins has size() + 1 entries. After it part
  /// rank() holds the sum over ranks; the other parts are unspecified.
  void reduce_scatter(Buffer data, std::span<const int64_t> begins) const {
    if (transport_) transport_->reduce_scatter(data, begins);
  }
  /// Each rank has its own part; after it every rank has all parts.
  void all_gather(Buffer data, std::span<const int64_t> begins) const {
    if (transport_) transport_->all_gather(data, begins);
  }
  /// Part r of `send` goes to rank r; `receive` has size() times as many elements as part rank()
  /// and gets, in order of rank, what each rank sends here (this rank's own part included).
  void exchange(Buffer send, Buffer receive, std::span<const int64_t> begins) const;
  /// Each rank's bytes (of any length), in order of rank, on every rank.
  std::vector<std::string> all_gather_bytes(const std::string& mine) const {
    return transport_ ? transport_->all_gather_bytes(mine) : std::vector<std::string>{mine};
  }
  void barrier() const {
    if (transport_) transport_->barrier();
  }
  /// For work that takes long between two collectives: throws Error(kPeerLost) when a peer is lost.
  /// Asks no other rank, and costs next to nothing.
  void check_peers() const {
    if (transport_) transport_->check_peers();
  }
  /// A second channel over the same processes, for another thread. Collective.
  ProcessGroup duplicate() const {
    return transport_ ? ProcessGroup(transport_->duplicate()) : ProcessGroup();
  }

 private:
  std::shared_ptr<Transport> transport_;
};

}  // namespace stretto::distributed
