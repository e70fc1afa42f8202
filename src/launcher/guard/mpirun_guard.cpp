// libstretto_mpirun_guard.so: preloaded into the mpirun that `run_local_job` starts, so that it
// talks to its own ranks alone.
//
// Open MPI 4 binds the port for other machines to all addresses, and oob_tcp_if_include does not
// change that (it only says which addresses are announced). A client that connects there and sends
// half a header, or that connects to the loopback port on which ranks report and sends nothing,
// holds up the whole job. A job on one machine has no other machines, and mpirun is the parent of
// all its ranks. Therefore
//
//   bind     to all addresses becomes bind to loopback, and nothing that arrives there is let
//   through; accept   closes connections of other users, and those that do not come from a child
//   process.
//
// A connection that /proc says nothing about is let in: a rank must never be kept out.

#include <arpa/inet.h>
#include <dirent.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

/// Who owns the other end of a connection on this machine.
struct GuardedPeer {
  bool known = false;
  unsigned uid = 0;
  unsigned long inode = 0;
};

// /proc/net/tcp names both ends of each connection, in the byte order of the machine: the line that
// begins with the peer's address is the peer's own.
GuardedPeer find_peer(int fd) {
  sockaddr_in here{}, there{};
  socklen_t here_size = sizeof here, there_size = sizeof there;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&here), &here_size) != 0 ||
      ::getpeername(fd, reinterpret_cast<sockaddr*>(&there), &there_size) != 0 ||
      here.sin_family != AF_INET) {
    return {};
  }
  char ends[64];
  std::snprintf(ends, sizeof ends, " %08X:%04X %08X:%04X ", there.sin_addr.s_addr,
                ntohs(there.sin_port), here.sin_addr.s_addr, ntohs(here.sin_port));
  std::FILE* const table = std::fopen("/proc/net/tcp", "re");
  if (table == nullptr) return {};
  GuardedPeer peer;
  char line[512];
  while (!peer.known && std::fgets(line, sizeof line, table) != nullptr) {
    const char* const rest = std::strstr(line, ends);
    peer.known =
        rest != nullptr && std::sscanf(rest + std::strlen(ends), "%*s %*s %*s %*s %u %*s %lu",
                                       &peer.uid, &peer.inode) == 2;
  }
  std::fclose(table);
  return peer;
}

enum class Answer { kYes, kNo, kUnknown };

Answer has_socket(long pid, unsigned long inode) {
  char path[64], wanted[64], target[64];
  std::snprintf(path, sizeof path, "/proc/%ld/fd", pid);
  std::snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
  DIR* const folder = ::opendir(path);
  if (folder == nullptr) return Answer::kUnknown;
  Answer answer = Answer::kNo;
  while (const dirent* entry = ::readdir(folder)) {
    const ssize_t length = ::readlinkat(::dirfd(folder), entry->d_name, target, sizeof target - 1);
    if (length <= 0) continue;
    target[length] = '\0';
    if (std::strcmp(target, wanted) == 0) answer = Answer::kYes;
  }
  ::closedir(folder);
  return answer;
}

// Asks about the children of one thread; each thread has those that it started.
Answer children_have_socket(const char* thread, unsigned long inode) {
  char path[320];
  std::snprintf(path, sizeof path, "/proc/self/task/%s/children", thread);
  std::FILE* const list = std::fopen(path, "re");
  if (list == nullptr) return Answer::kUnknown;
  Answer answer = Answer::kNo;
  for (long pid = 0; answer != Answer::kYes && std::fscanf(list, "%ld", &pid) == 1;) {
    const Answer one = has_socket(pid, inode);
    if (one != Answer::kNo) answer = one;
  }
  std::fclose(list);
  return answer;
}

Answer is_of_a_child(unsigned long inode) {
  DIR* const threads = ::opendir("/proc/self/task");
  if (threads == nullptr) return Answer::kUnknown;
  Answer answer = Answer::kNo;
  while (const dirent* entry = answer == Answer::kYes ? nullptr : ::readdir(threads)) {
    if (entry->d_name[0] == '.') continue;
    const Answer one = children_have_socket(entry->d_name, inode);
    if (one != Answer::kNo) answer = one;
  }
  ::closedir(threads);
  return answer;
}

bool is_welcome(int fd) {
  const GuardedPeer peer = find_peer(fd);
  if (!peer.known) return true;
  return peer.uid == ::geteuid() && is_of_a_child(peer.inode) != Answer::kNo;
}

// True when the address was that of all of this machine's networks.
bool turn_to_loopback(sockaddr_storage& address) {
  auto& v4 = reinterpret_cast<sockaddr_in&>(address);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
  if (address.ss_family == AF_INET && v4.sin_addr.s_addr == htonl(INADDR_ANY)) {
    v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return true;
  }
  if (address.ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr)) {
    v6.sin6_addr = in6addr_loopback;
    return true;
  }
  return false;
}

void let_nothing_through(int fd) {
  sock_filter drop[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
  const sock_fprog program{.len = 1, .filter = drop};
  ::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int bind(int fd, const sockaddr* address,
                                                socklen_t size) noexcept {
  sockaddr_storage copy{};
  if (address == nullptr || size > sizeof copy) {
    return static_cast<int>(::syscall(SYS_bind, fd, address, size));
  }
  std::memcpy(&copy, address, size);
  if (turn_to_loopback(copy)) let_nothing_through(fd);
  return static_cast<int>(::syscall(SYS_bind, fd, &copy, size));
}

__attribute__((visibility("default"))) int accept(int listener, sockaddr* address,
                                                  socklen_t* size) {
  while (true) {
    socklen_t given = size == nullptr ? 0 : *size;
    const int fd = static_cast<int>(
        ::syscall(SYS_accept4, listener, address, size == nullptr ? nullptr : &given, 0));
    if (fd >= 0 && !is_welcome(fd)) {
      ::close(fd);
      continue;
    }
    if (fd >= 0 && size != nullptr) *size = given;
    return fd;
  }
}
}
