#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "distributed/watch/peer_watch.h"

namespace stretto::distributed {

/// A TCP socket, closed at the end of its life. Sockets are non-blocking and close on exec.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() { close(); }
  Socket(Socket&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Socket& operator=(Socket&& other) noexcept;

  explicit operator bool() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  void close();

 private:
  int fd_ = -1;
};

/// Listens on an address (numeric or a name); port 0 = one that the system picks.
/// Throws Error(kIo) with the system's reason.
Socket listen_on(const std::string& address, int port);
/// The same on all addresses of this machine, IPv6 and IPv4.
Socket listen_on_all(int port);
/// The same on a loopback address, IPv4 where there is one, else IPv6.
Socket listen_on_loopback(int port);
/// The numeric address that a socket is bound to.
std::string address_of(const Socket& socket);
/// The port of a listening socket.
int port_of(const Socket& socket);
/// The next connection that waits, an empty socket when none does.
Socket accept_from(const Socket& listener);
/// Connects before the deadline, trying again while no one listens. Empty when the time is over.
Socket connect_to(const std::string& address, int port, Clock::time_point deadline);

/// All bytes before the deadline; false when the other side closed or the time is over.
bool send_all(const Socket& socket, std::string_view bytes, Clock::time_point deadline);
bool receive_all(const Socket& socket, char* bytes, size_t size, Clock::time_point deadline);

/// True for `localhost` and for numeric addresses of the loopback. Names are not resolved: a host's
/// own name often means loopback on that host, and something else on all others.
bool is_loopback(const std::string& address);
/// Numeric addresses, IPv4 and IPv6, under which other machines may reach this one: none of the
/// loopback, and none that means something on one link only.
std::vector<std::string> own_addresses();

/// Lets this process have so many connections beside its files: many systems allow 1024 open files
/// until a process asks for more.
void make_room_for(size_t connections);

/// Bytes from the system's random source, as hexadecimal digits (two for each byte).
std::string random_hex(size_t bytes);
/// Compares in a time that depends on the lengths alone.
bool same_secret(std::string_view a, std::string_view b);

}  // namespace stretto::distributed
