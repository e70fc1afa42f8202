#include "distributed/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "base/error.h"

namespace stretto::distributed {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses resolve(const std::string& address, int port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) found = nullptr;
  return {found, &::freeaddrinfo};
}

Socket open_socket(const addrinfo& address) {
  Socket socket(::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (socket) ::setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

int milliseconds_until(Clock::time_point deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return left < 0 ? 0 : static_cast<int>(std::min<int64_t>(left + 1, 60'000));
}

// False when the time is over; errors and hang-ups count as ready, the next call then shows them.
bool wait_for(const Socket& socket, short events, Clock::time_point deadline) {
  while (true) {
    pollfd ready{.fd = socket.fd(), .events = events, .revents = 0};
    const int count = ::poll(&ready, 1, milliseconds_until(deadline));
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) return false;
    if (Clock::now() >= deadline) return false;
  }
}

bool try_again() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

Socket connect_once(const addrinfo& address, Clock::time_point deadline) {
  Socket socket = open_socket(address);
  if (!socket) return {};
  if (::connect(socket.fd(), address.ai_addr, address.ai_addrlen) == 0) return socket;
  if (errno != EINPROGRESS || !wait_for(socket, POLLOUT, deadline)) return {};
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 ? std::move(socket) : Socket();
}

bool start_listening(const Socket& socket, const addrinfo& address) {
  const int on = 1;
  // A port whose last owner just ended may be taken again at once.
  ::setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  return ::bind(socket.fd(), address.ai_addr, address.ai_addrlen) == 0 &&
         ::listen(socket.fd(), SOMAXCONN) == 0;
}

// Empty when it is none of IPv4 or IPv6.
std::string numeric(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  const int error =
      ::getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return error == 0 ? text.data() : "";
}

// Others may reach it, whatever link they are on.
bool is_wide(const sockaddr& address) {
  if (address.sa_family == AF_INET) return true;
  if (address.sa_family != AF_INET6) return false;
  return !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

[[noreturn]] void cannot_listen(const std::string& address, int port, int error) {
  throw Error(
      ExitCode::kIo,
      "cannot listen on " + address + " port " + std::to_string(port) + ": " + std::strerror(error),
      error == EADDRINUSE ? "another program has this port: choose another one" : "");
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = other.fd_;
    other.fd_ = -1;
  }
  return *this;
}

void Socket::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Socket listen_on(const std::string& address, int port) {
  int error = EADDRNOTAVAIL;
  const auto found = resolve(address, port, AI_PASSIVE);
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    Socket socket = open_socket(*one);
    if (!socket) continue;
    if (start_listening(socket, *one)) return socket;
    error = errno;
  }
  cannot_listen(address, port, error);
}

Socket listen_on_all(int port) {
  // One socket for both families where the machine has both.
  for (const char* address : {"::", "0.0.0.0"}) {
    const auto found = resolve(address, port, AI_PASSIVE | AI_NUMERICHOST);
    if (!found) continue;
    Socket socket = open_socket(*found);
    if (!socket) continue;
    const int off = 0;
    if (found->ai_family == AF_INET6) {
      ::setsockopt(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    }
    if (start_listening(socket, *found)) return socket;
    if (errno == EADDRINUSE) cannot_listen("all addresses,", port, EADDRINUSE);
  }
  cannot_listen("all addresses,", port, errno);
}

Socket listen_on_loopback(int port) {
  try {
    return listen_on("127.0.0.1", port);
  } catch (const Error&) {
    return listen_on("::1", port);
  }
}

std::string address_of(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&address), &size);
  return numeric(reinterpret_cast<const sockaddr*>(&address), size);
}

int port_of(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&address), &size);
  return address.ss_family == AF_INET6
             ? ntohs(reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port)
             : ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

Socket accept_from(const Socket& listener) {
  Socket socket(::accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  const int on = 1;
  if (socket) ::setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

Socket connect_to(const std::string& address, int port, Clock::time_point deadline) {
  do {
    const auto found = resolve(address, port, 0);
    for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
      if (Socket socket = connect_once(*one, deadline)) return socket;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  } while (Clock::now() < deadline);
  return {};
}

bool send_all(const Socket& socket, std::string_view bytes, Clock::time_point deadline) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count > 0) {
      bytes.remove_prefix(static_cast<size_t>(count));
    } else if (count == 0 || !try_again() || !wait_for(socket, POLLOUT, deadline)) {
      return false;
    }
  }
  return true;
}

bool receive_all(const Socket& socket, char* bytes, size_t size, Clock::time_point deadline) {
  while (size > 0) {
    const ssize_t count = ::recv(socket.fd(), bytes, size, 0);
    if (count > 0) {
      bytes += count;
      size -= static_cast<size_t>(count);
    } else if (count == 0 || !try_again() || !wait_for(socket, POLLIN, deadline)) {
      return false;
    }
  }
  return true;
}

bool is_loopback(const std::string& address) {
  if (address == "localhost") return true;
  in_addr v4{};
  if (::inet_pton(AF_INET, address.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6{};
  return ::inet_pton(AF_INET6, address.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

std::vector<std::string> own_addresses() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(first, &::freeifaddrs);
  std::vector<std::string> addresses;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0 ||
        (one->ifa_flags & IFF_LOOPBACK) != 0 || !is_wide(*one->ifa_addr)) {
      continue;
    }
    const bool v6 = one->ifa_addr->sa_family == AF_INET6;
    const auto text = numeric(one->ifa_addr, v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
    if (!text.empty()) addresses.push_back(text);
  }
  return addresses;
}

void make_room_for(size_t connections) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::clamp<rlim_t>(static_cast<rlim_t>(connections) + 512, limit.rlim_cur,
                                      std::max(limit.rlim_cur, limit.rlim_max));
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::string random_hex(size_t bytes) {
  std::string out;
  while (out.size() < 2 * bytes) {
    unsigned char byte = 0;
    if (::getrandom(&byte, 1, 0) != 1) continue;
    constexpr const char* kDigits = "0123456789abcdef";
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

bool same_secret(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    const char other = b.empty() ? '\0' : b[i % b.size()];
    difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i])) ^
                  static_cast<unsigned>(static_cast<unsigned char>(other));
  }
  return difference == 0;
}

}  // namespace stretto::distributed
