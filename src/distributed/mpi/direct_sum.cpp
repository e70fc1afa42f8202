#include "distributed/mpi/direct_sum.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "distributed/half.h"
#include "distributed/mpi/mpi_transport.h"

namespace stretto::distributed {
namespace {

// The bytes of each part in a chunk: small enough that a slow line is not idle for long at the end
// of a sum.
constexpr int64_t kShareBytes = int64_t{1} << 17;
constexpr int64_t kOnTheWay = 8;                 // chunks
constexpr size_t kBlockBytes = size_t{1} << 13;  // of a sum, which stays in the cache
// Chunks are summed in the order in which they come, so sums need a tag for each chunk; a tag may
// be as large as 32767 with any MPI.
constexpr int kSummingTag = 0, kSpreadingTag = 16, kSpreadingTags = 16384;

void check(int result) {
  if (result != MPI_SUCCESS) throw MpiFailure(mpi_error(result));
}

template <class T>
void add_plain(void* sum, const void* other, int64_t count) {
  auto* to = static_cast<T*>(sum);
  const auto* from = static_cast<const T*>(other);
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(to[i] + from[i]);
}

// sum[i] += other[i]; half types in fp32, rounded once.
void add(void* sum, const void* other, int64_t count, Element element) {
  switch (element) {
    case Element::kF32:
      return add_plain<float>(sum, other, count);
    case Element::kF64:
      return add_plain<double>(sum, other, count);
    case Element::kI64:
      return add_plain<int64_t>(sum, other, count);
    case Element::kByte:
      return add_plain<uint8_t>(sum, other, count);
    case Element::kBf16:
      return add_bf16(static_cast<uint16_t*>(sum), static_cast<const uint16_t*>(other), count);
    case Element::kF16:
      return add_f16(static_cast<uint16_t*>(sum), static_cast<const uint16_t*>(other), count);
  }
}

}  // namespace

DirectSum::DirectSum(MPI_Comm communicator, std::shared_ptr<PeerWatch> watch)
    : communicator_(communicator), watch_(std::move(watch)) {
  check(MPI_Comm_rank(communicator_, &rank_));
  check(MPI_Comm_size(communicator_, &size_));
}

void DirectSum::run(Buffer data, std::span<const int64_t> begins, bool everywhere) {
  int64_t longest = 0;
  for (size_t r = 0; r + 1 < begins.size(); ++r) {
    longest = std::max(longest, begins[r + 1] - begins[r]);
  }
  const auto width = static_cast<int64_t>(size_of(data.element));
  const int64_t most = kShareBytes / width;
  const Call call{data, begins, everywhere, std::min(most, std::max<int64_t>(1, longest))};
  const int64_t chunks = (longest + call.step - 1) / call.step;
  const auto needed = static_cast<size_t>(std::min(chunks, kOnTheWay) * size_ * call.step * width);
  if (arrivals_.size() < needed) arrivals_.resize(needed);

  std::deque<Chunk> on_the_way;
  int64_t next = 0;
  while (next < chunks || !on_the_way.empty()) {
    while (next < chunks && static_cast<int64_t>(on_the_way.size()) < kOnTheWay) {
      on_the_way.push_back({.number = next++, .requests = {}});
      start(call, on_the_way.back());
    }
    wait_until(*watch_, [&] {
      bool moved = false;
      for (Chunk& chunk : on_the_way) moved |= advance(call, chunk);
      return moved;
    });
    while (!on_the_way.empty() && on_the_way.front().state == Chunk::State::kDone) {
      on_the_way.pop_front();
    }
  }
}

// What a chunk has of rank's part; ends of parts differ.
Buffer DirectSum::share(const Call& call, int64_t chunk, int rank) const {
  const auto r = static_cast<size_t>(rank);
  const int64_t length = call.begins[r + 1] - call.begins[r];
  const int64_t first = std::min(chunk * call.step, length);
  auto* bytes = static_cast<char*>(call.data.data) +
                static_cast<size_t>(call.begins[r] + first) * size_of(call.data.element);
  return {bytes, std::min(call.step, length - first), call.data.element};
}

// Where rank's contribution to this rank's part arrives.
char* DirectSum::arrived(const Call& call, int64_t chunk, int rank) {
  const auto slot = static_cast<size_t>(chunk % kOnTheWay * size_ + rank);
  return arrivals_.data() + slot * static_cast<size_t>(call.step) * size_of(call.data.element);
}

void DirectSum::send(Buffer from, int rank, int tag, Chunk& chunk) {
  if (from.count == 0) return;
  check(MPI_Isend(from.data, static_cast<int>(from.count), mpi_type(from.element), rank, tag,
                  communicator_, &chunk.requests.emplace_back(MPI_REQUEST_NULL)));
}

void DirectSum::receive(Buffer to, int rank, int tag, Chunk& chunk) {
  if (to.count == 0) return;
  check(MPI_Irecv(to.data, static_cast<int>(to.count), mpi_type(to.element), rank, tag,
                  communicator_, &chunk.requests.emplace_back(MPI_REQUEST_NULL)));
}

// Each rank begins with its neighbour, so that not all send to the same one at first.
void DirectSum::start(const Call& call, Chunk& chunk) {
  const int64_t mine = share(call, chunk.number, rank_).count;
  for (int i = 1; i < size_; ++i) {
    const int from = (rank_ + size_ - i) % size_, to = (rank_ + i) % size_;
    receive({arrived(call, chunk.number, from), mine, call.data.element}, from, kSummingTag, chunk);
    send(share(call, chunk.number, to), to, kSummingTag, chunk);
  }
}

bool DirectSum::advance(const Call& call, Chunk& chunk) {
  if (chunk.state == Chunk::State::kDone) return false;
  int done = 0;
  check(MPI_Testall(static_cast<int>(chunk.requests.size()), chunk.requests.data(), &done,
                    MPI_STATUSES_IGNORE));
  if (done == 0) return false;
  chunk.requests.clear();
  const bool was_summing = chunk.state == Chunk::State::kSumming;
  if (was_summing) add_up(call, chunk);
  if (was_summing && call.everywhere) {
    spread(call, chunk);
    chunk.state = Chunk::State::kSpreading;
  } else {
    chunk.state = Chunk::State::kDone;
  }
  return true;
}

// In order of rank, so that the sum does not depend on who had which part; for two addends the
// order does not matter.
void DirectSum::add_up(const Call& call, const Chunk& chunk) {
  const Buffer own = share(call, chunk.number, rank_);
  const size_t width = size_of(own.element);
  std::array<char, kBlockBytes> kept{};
  const auto most = static_cast<int64_t>(kept.size() / width);
  for (int64_t first = 0; first < own.count; first += most) {
    const int64_t count = std::min(most, own.count - first);
    const auto offset = static_cast<size_t>(first) * width;
    char* sum = static_cast<char*>(own.data) + offset;
    const auto from = [&](int r) { return arrived(call, chunk.number, r) + offset; };
    if (rank_ == 0 || size_ == 2) {
      for (int r = 0; r < size_; ++r) {
        if (r != rank_) add(sum, from(r), count, own.element);
      }
      continue;
    }
    std::memcpy(kept.data(), sum, static_cast<size_t>(count) * width);
    std::memcpy(sum, from(0), static_cast<size_t>(count) * width);
    for (int r = 1; r < size_; ++r) {
      add(sum, r == rank_ ? kept.data() : from(r), count, own.element);
    }
  }
}

void DirectSum::spread(const Call& call, Chunk& chunk) {
  const int tag = kSpreadingTag + static_cast<int>(chunk.number % kSpreadingTags);
  for (int i = 1; i < size_; ++i) {
    const int from = (rank_ + size_ - i) % size_, to = (rank_ + i) % size_;
    receive(share(call, chunk.number, from), from, tag, chunk);
    send(share(call, chunk.number, rank_), to, tag, chunk);
  }
}

}  // namespace stretto::distributed
