#include "distributed/rendezvous.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <thread>

#include "base/error.h"
#include "base/hash.h"
#include "distributed/agreement.h"
#include "distributed/socket.h"

namespace stretto::distributed {
namespace {

constexpr std::chrono::seconds kHelloLimit{5};
constexpr std::chrono::milliseconds kLook{100};
constexpr size_t kMostStrangers = 256, kMostAtOnce = 64;
constexpr int64_t kMaxBytes = int64_t{1} << 26;  // of one rank in one gathering

/// The first thing said on a connection. The token goes as its hash: the length stays fixed.
struct Hello {
  static constexpr uint32_t kMagic = 0x53545256;
  uint32_t magic = kMagic;
  int32_t rank = 0;
  int32_t size = 1;
  std::array<char, 64> token{};

  std::string_view bytes() const { return {reinterpret_cast<const char*>(this), sizeof *this}; }
};
static_assert(sizeof(Hello) == 76);

/// One who connected and has not said a hello yet.
struct PendingConnection {
  Socket socket;
  Clock::time_point came = Clock::now();
  Hello hello{};
  size_t heard = 0;  ///< bytes of it
};

// Returns when somebody has come or spoken, or after a while.
void wait_for_words(const Socket& listener, const std::deque<PendingConnection>& connections) {
  std::vector<pollfd> ready{{.fd = listener.fd(), .events = POLLIN, .revents = 0}};
  for (const auto& one : connections) {
    ready.push_back({.fd = one.socket.fd(), .events = POLLIN, .revents = 0});
  }
  ::poll(ready.data(), ready.size(), static_cast<int>(kLook.count()));
}

[[noreturn]] void not_offered(const char* what) {
  throw std::logic_error(std::string("[rendezvous] ") + what + " is not what this group is for");
}

class TcpGroup : public Transport {
 public:
  explicit TcpGroup(const RendezvousPlace& place) : place_(place) {
    links_.resize(static_cast<size_t>(place.size));
    place_.rank == 0 ? listen() : connect();
  }

  int rank() const override { return place_.rank; }
  int size() const override { return place_.size; }
  const char* name() const override { return "rendezvous"; }
  std::vector<std::string> all_gather_bytes(const std::string& mine) override;
  void barrier() override { all_gather_bytes(""); }

  void all_reduce(Buffer) override { not_offered("all_reduce"); }
  void reduce(Buffer, int) override { not_offered("reduce"); }
  void broadcast(Buffer, int) override { not_offered("broadcast"); }
  void reduce_scatter(Buffer, std::span<const int64_t>) override { not_offered("reduce_scatter"); }
  void all_gather(Buffer, std::span<const int64_t>) override { not_offered("all_gather"); }
  void exchange(Buffer, Buffer, std::span<const int64_t>) override { not_offered("exchange"); }
  std::shared_ptr<Transport> duplicate() override { not_offered("duplicate"); }

 private:
  Clock::time_point deadline() const {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                              std::chrono::duration<double>(place_.wait_seconds));
  }
  Hello hello() const;
  std::vector<int> missing() const;
  void listen();
  void admit(const Socket& listener, std::deque<PendingConnection>& connections);
  void read_hello(PendingConnection& connection);
  bool is_expected(const Hello& theirs) const;
  void connect();
  void send_text(int to, const std::string& text) const;
  std::string receive_text(int from) const;
  [[noreturn]] void fail(int other, const std::string& how) const;

  RendezvousPlace place_;
  std::vector<Socket> links_;  ///< by rank; other ranks than 0 have one to 0
};

Hello TcpGroup::hello() const {
  Hello hello{.rank = place_.rank, .size = place_.size};
  const std::string hash = sha256_hex("stretto rendezvous " + place_.token);
  std::copy_n(hash.begin(), hello.token.size(), hello.token.begin());
  return hello;
}

void TcpGroup::fail(int other, const std::string& how) const {
  throw Error(ExitCode::kPeerLost,
              "rendezvous at " + place_.meeting_address() + " port " + std::to_string(place_.port) +
                  ": rank " + std::to_string(other) + " " + how,
              "are all processes started, with the same WORLD_SIZE, MASTER_ADDR, MASTER_PORT and "
              "STRETTO_RENDEZVOUS_TOKEN?");
}

std::vector<int> TcpGroup::missing() const {
  std::vector<int> ranks;
  for (int other = 1; other < size(); ++other) {
    if (!links_[static_cast<size_t>(other)]) ranks.push_back(other);
  }
  return ranks;
}

// All who come are heard side by side: one who says nothing keeps nobody waiting.
void TcpGroup::listen() {
  make_room_for(links_.size() + kMostStrangers);
  const Socket listener = place_.one_host() ? listen_on(place_.meeting_address(), place_.port)
                                            : listen_on_all(place_.port);
  const auto limit = deadline();
  std::deque<PendingConnection> connections;  // in the order in which they came
  while (true) {
    const auto absent = missing();
    if (absent.empty()) return;
    if (Clock::now() > limit) fail(absent.front(), "did not come; missing: " + rank_list(absent));
    wait_for_words(listener, connections);
    for (PendingConnection& connection : connections) read_hello(connection);
    admit(listener, connections);
    std::erase_if(connections, [](const PendingConnection& one) {
      return !one.socket || Clock::now() - one.came > kHelloLimit;
    });
  }
}

void TcpGroup::admit(const Socket& listener, std::deque<PendingConnection>& connections) {
  for (size_t i = 0; i < kMostAtOnce; ++i) {
    Socket socket = accept_from(listener);
    if (!socket) return;
    // A rank speaks at once, so that whoever has been silent for longest is most likely none.
    if (connections.size() == kMostStrangers) connections.pop_front();
    connections.push_back({.socket = std::move(socket)});
  }
}

// Takes what has come of a hello; closes the connection of one who says something else.
void TcpGroup::read_hello(PendingConnection& connection) {
  auto* const bytes = reinterpret_cast<char*>(&connection.hello);
  while (connection.heard < sizeof connection.hello) {
    const ssize_t count = ::recv(connection.socket.fd(), bytes + connection.heard,
                                 sizeof connection.hello - connection.heard, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (count <= 0) return connection.socket.close();
    connection.heard += static_cast<size_t>(count);
  }
  if (is_expected(connection.hello)) {
    const Hello mine = hello();
    // It fits the empty buffer of a new connection, or the other side plays tricks.
    if (send_all(connection.socket, mine.bytes(), Clock::now())) {
      links_[static_cast<size_t>(connection.hello.rank)] = std::move(connection.socket);
    }
  }
  connection.socket.close();
}

bool TcpGroup::is_expected(const Hello& theirs) const {
  const Hello mine = hello();
  return theirs.magic == Hello::kMagic && theirs.size == size() && theirs.rank > 0 &&
         theirs.rank < size() &&
         same_secret({theirs.token.data(), theirs.token.size()},
                     {mine.token.data(), mine.token.size()}) &&
         !links_[static_cast<size_t>(theirs.rank)];
}

void TcpGroup::connect() {
  const auto limit = deadline();
  const Hello mine = hello();
  while (Clock::now() < limit) {
    Socket socket = connect_to(place_.meeting_address(), place_.port, limit);
    Hello theirs;
    if (socket && send_all(socket, mine.bytes(), limit) &&
        receive_all(socket, reinterpret_cast<char*>(&theirs), sizeof theirs, limit)) {
      if (theirs.magic == Hello::kMagic && theirs.rank == 0 && theirs.token == mine.token) {
        links_[0] = std::move(socket);
        return;
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  fail(0, "cannot be reached, or refused the token");
}

void TcpGroup::send_text(int to, const std::string& text) const {
  const auto bytes = static_cast<uint64_t>(text.size());
  std::string frame(sizeof bytes, '\0');
  std::memcpy(frame.data(), &bytes, sizeof bytes);
  if (!send_all(links_[static_cast<size_t>(to)], frame + text, deadline())) {
    fail(to, "closed its connection");
  }
}

std::string TcpGroup::receive_text(int from) const {
  const Socket& link = links_[static_cast<size_t>(from)];
  uint64_t bytes = 0;
  if (!receive_all(link, reinterpret_cast<char*>(&bytes), sizeof bytes, deadline())) {
    fail(from, "closed its connection");
  }
  if (bytes > static_cast<uint64_t>(kMaxBytes)) fail(from, "sent a frame that is too long");
  std::string text(bytes, '\0');
  if (!receive_all(link, text.data(), text.size(), deadline())) {
    fail(from, "closed its connection");
  }
  return text;
}

std::vector<std::string> TcpGroup::all_gather_bytes(const std::string& mine) {
  if (static_cast<int64_t>(mine.size()) > kMaxBytes) {
    throw std::invalid_argument("[rendezvous] at most 64 MiB for each rank");
  }
  std::vector<std::string> all(static_cast<size_t>(size()));
  all[static_cast<size_t>(rank())] = mine;
  if (rank() != 0) {
    send_text(0, mine);
    for (auto& text : all) text = receive_text(0);
    return all;
  }
  for (int other = 1; other < size(); ++other)
    all[static_cast<size_t>(other)] = receive_text(other);
  for (int other = 1; other < size(); ++other) {
    for (const auto& text : all) send_text(other, text);
  }
  return all;
}

}  // namespace

bool RendezvousPlace::one_host() const {
  return local_size > 0 ? local_size == size : is_loopback(address);
}

std::string RendezvousPlace::meeting_address() const {
  return one_host() && !is_loopback(address) ? "127.0.0.1" : address;
}

RendezvousPlace rendezvous_place(const Launch& launch) {
  const char* local_size = std::getenv("LOCAL_WORLD_SIZE");
  const char* token = std::getenv("STRETTO_RENDEZVOUS_TOKEN");
  return {.rank = launch.rank,
          .size = launch.size,
          .address = launch.master_address,
          .port = launch.master_port,
          .token = token == nullptr ? "" : token,
          .local_size = local_size == nullptr ? 0 : std::max(0, std::atoi(local_size))};
}

std::shared_ptr<Transport> meet(const RendezvousPlace& place) {
  if (place.token.empty() && !place.one_host()) {
    throw Error(
        ExitCode::kUnsafe,
        "the rendezvous at " + place.address +
            " can be reached from other machines, and no token protects it",
        "set the same secret in STRETTO_RENDEZVOUS_TOKEN of all processes, for instance the "
        "output of `openssl rand -hex 32`; when all are on one machine, MASTER_ADDR=127.0.0.1");
  }
  return std::make_shared<TcpGroup>(place);
}

}  // namespace stretto::distributed
