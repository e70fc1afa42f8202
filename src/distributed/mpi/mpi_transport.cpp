#include "distributed/mpi/mpi_transport.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "base/error.h"

namespace stretto::distributed {
namespace {

// Direct sums connect every rank with every other; beyond this many the library's ring has less to
// do. Measured with 2 to 4.
constexpr int kMostDirect = 16;
// Below this the time is that of a few messages, and the library's tree has fewer.
constexpr int64_t kLeastDirectBytes = int64_t{1} << 16;
// Counts and displacements of the gathering call are ints.
constexpr int64_t kMaxGathered = int64_t{1} << 30;

char* at(Buffer data, int64_t element) {
  return static_cast<char*>(data.data) + static_cast<size_t>(element) * size_of(data.element);
}

}  // namespace

MpiTransport::MpiTransport(MPI_Comm communicator, std::shared_ptr<PeerWatch> watch,
                           const MpiSetup& setup, bool many_hosts)
    : communicator_(communicator),
      watch_(std::move(watch)),
      setup_(setup),
      many_hosts_(many_hosts),
      direct_sum_(communicator, watch_) {
  check(MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN), "set_errhandler");
  check(MPI_Comm_rank(communicator_, &rank_), "rank");
  check(MPI_Comm_size(communicator_, &size_), "size");
}

void MpiTransport::check(int result, const char* what) const {
  if (result != MPI_SUCCESS) fail(mpi_error(result), what);
}

void MpiTransport::fail(const std::string& text, const char* what) const {
  // When the network reports it first, the heartbeat knows a moment later which rank it was.
  watch_->wait_for_news();
  throw Error(ExitCode::kPeerLost,
              "rank " + std::to_string(rank_) + ": MPI failed in " + what + ": " + text,
              kStartAgain);
}

void MpiTransport::wait(MPI_Request request, const char* what) const {
  wait_until(*watch_, [&] {
    int done = 0;
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), what);
    return done != 0;
  });
}

void MpiTransport::wait_all(std::vector<MPI_Request>& requests, const char* what) const {
  wait_until(*watch_, [&] {
    int done = 0;
    check(
        MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE),
        what);
    return done != 0;
  });
}

template <class Chunk>
void MpiTransport::in_chunks(Buffer data, Chunk&& chunk) const {
  for (int64_t first = 0; first < data.count; first += setup_.chunk_elements) {
    chunk(at(data, first), static_cast<int>(std::min(setup_.chunk_elements, data.count - first)));
  }
}

void MpiTransport::check_begins(Buffer data, std::span<const int64_t> begins,
                                const char* what) const {
  bool right = begins.size() == static_cast<size_t>(size_) + 1 && begins.front() >= 0 &&
               begins.back() <= data.count && std::is_sorted(begins.begin(), begins.end());
  if (right) return;
  throw std::invalid_argument(std::string("[mpi] ") + what +
                              ": begins must be size() + 1 rising offsets inside the buffer");
}

bool MpiTransport::sums_directly(Buffer data) const {
  if (setup_.sums != MpiSetup::Sums::kAuto) return setup_.sums == MpiSetup::Sums::kDirect;
  const auto bytes = data.count * static_cast<int64_t>(size_of(data.element));
  return many_hosts_ && size_ <= kMostDirect && bytes >= kLeastDirectBytes;
}

void MpiTransport::sum_directly(Buffer data, std::span<const int64_t> begins, bool everywhere,
                                const char* what) {
  try {
    direct_sum_.run(data, begins, everywhere);
  } catch (const MpiFailure& failure) {
    fail(failure.what(), what);
  }
}

void MpiTransport::all_reduce(Buffer data) {
  if (sums_directly(data)) {
    std::vector<int64_t> begins;
    for (int r = 0; r <= size_; ++r) begins.push_back(data.count * r / size_);
    return sum_directly(data, begins, /*everywhere=*/true, "all_reduce");
  }
  in_chunks(data, [&](char* first, int count) {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Iallreduce(MPI_IN_PLACE, first, count, mpi_type(data.element), mpi_sum(data.element),
                         communicator_, &request),
          "all_reduce");
    wait(request, "all_reduce");
  });
}

void MpiTransport::reduce(Buffer data, int root) {
  in_chunks(data, [&](char* first, int count) {
    MPI_Request request = MPI_REQUEST_NULL;
    const bool here = rank_ == root;
    check(MPI_Ireduce(here ? MPI_IN_PLACE : first, here ? first : nullptr, count,
                      mpi_type(data.element), mpi_sum(data.element), root, communicator_, &request),
          "reduce");
    wait(request, "reduce");
  });
}

void MpiTransport::broadcast(Buffer data, int root) {
  in_chunks(data, [&](char* first, int count) {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Ibcast(first, count, mpi_type(data.element), root, communicator_, &request),
          "broadcast");
    wait(request, "broadcast");
  });
}

void MpiTransport::reduce_scatter(Buffer data, std::span<const int64_t> begins) {
  check_begins(data, begins, "reduce_scatter");
  sum_directly(data, begins, /*everywhere=*/false, "reduce_scatter");
}

void MpiTransport::all_gather(Buffer data, std::span<const int64_t> begins) {
  check_begins(data, begins, "all_gather");
  if (begins.back() - begins.front() > std::min(kMaxGathered, setup_.chunk_elements)) {
    for (int r = 0; r < size_; ++r) {
      const int64_t first = begins[static_cast<size_t>(r)];
      broadcast({at(data, first), begins[static_cast<size_t>(r) + 1] - first, data.element}, r);
    }
    return;
  }
  std::vector<int> counts, places;
  for (int r = 0; r < size_; ++r) {
    const auto i = static_cast<size_t>(r);
    counts.push_back(static_cast<int>(begins[i + 1] - begins[i]));
    places.push_back(static_cast<int>(begins[i] - begins[0]));
  }
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, at(data, begins[0]), counts.data(),
                        places.data(), mpi_type(data.element), communicator_, &request),
        "all_gather");
  wait(request, "all_gather");
}

void MpiTransport::exchange(Buffer send, Buffer receive, std::span<const int64_t> begins) {
  check_begins(send, begins, "exchange");
  const auto own = static_cast<size_t>(rank_);
  const int64_t mine = begins[own + 1] - begins[own];
  if (receive.count < mine * size_ || receive.element != send.element) {
    throw std::invalid_argument("[mpi] exchange: receive is too short or of another type");
  }
  std::vector<MPI_Request> requests;
  for (int r = 0; r < size_; ++r) {
    const int64_t first = begins[static_cast<size_t>(r)];
    const Buffer out{at(send, first), begins[static_cast<size_t>(r) + 1] - first, send.element};
    const Buffer in{at(receive, mine * r), mine, receive.element};
    if (r == rank_) {
      if (mine > 0)
        std::memmove(in.data, out.data, static_cast<size_t>(mine) * size_of(in.element));
      continue;
    }
    // Messages between two ranks keep their order, so chunks need no numbers.
    in_chunks(in, [&](char* chunk, int count) {
      check(MPI_Irecv(chunk, count, mpi_type(in.element), r, 1, communicator_,
                      &requests.emplace_back(MPI_REQUEST_NULL)),
            "exchange");
    });
    in_chunks(out, [&](char* chunk, int count) {
      check(MPI_Isend(chunk, count, mpi_type(out.element), r, 1, communicator_,
                      &requests.emplace_back(MPI_REQUEST_NULL)),
            "exchange");
    });
  }
  wait_all(requests, "exchange");
}

std::vector<std::string> MpiTransport::all_gather_bytes(const std::string& mine) {
  std::vector<int64_t> lengths(static_cast<size_t>(size_));
  lengths[static_cast<size_t>(rank_)] = static_cast<int64_t>(mine.size());
  std::vector<int64_t> begins(static_cast<size_t>(size_) + 1);
  std::iota(begins.begin(), begins.end(), 0);
  all_gather(buffer(std::span(lengths)), begins);
  begins[0] = 0;
  std::partial_sum(lengths.begin(), lengths.end(), begins.begin() + 1);
  std::string all(static_cast<size_t>(begins.back()), '\0');
  std::copy(mine.begin(), mine.end(), all.begin() + begins[static_cast<size_t>(rank_)]);
  all_gather({all.data(), static_cast<int64_t>(all.size()), Element::kByte}, begins);
  std::vector<std::string> parts;
  for (size_t r = 0; r < lengths.size(); ++r) {
    parts.push_back(all.substr(static_cast<size_t>(begins[r]), static_cast<size_t>(lengths[r])));
  }
  return parts;
}

void MpiTransport::barrier() {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ibarrier(communicator_, &request), "barrier");
  wait(request, "barrier");
}

std::shared_ptr<Transport> MpiTransport::duplicate() {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm copy = MPI_COMM_NULL;
  check(MPI_Comm_idup(communicator_, &copy, &request), "duplicate");
  wait(request, "duplicate");
  return std::make_shared<MpiTransport>(copy, watch_, setup_, many_hosts_);
}

}  // namespace stretto::distributed
