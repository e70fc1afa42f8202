#include "base/in_child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "base/io_error.h"

namespace stretto {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void be_the_child(int fd, const std::function<std::string()>& work) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  int code = 1;
  try {
    const std::string result = work();
    size_t written = 0;
    while (written < result.size()) {
      const ssize_t n = ::write(fd, result.data() + written, result.size() - written);
      if (n < 0 && errno != EINTR) break;
      if (n > 0) written += static_cast<size_t>(n);
    }
    code = written == result.size() ? 0 : 1;
  } catch (...) {
  }
  // Neither destructors nor streams: they are the parent's too.
  ::_exit(code);
}

/// Reads to the end of the stream. @return false when the time is over before that
bool read_until(int fd, Clock::time_point end, std::string& bytes) {
  std::array<char, 4096> buffer{};
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) return false;
    pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
    const auto wait = std::min<int64_t>(left.count(), 1'000'000'000);
    const int found = ::poll(&ready, 1, static_cast<int>(wait));
    if (found <= 0) continue;  // a signal, or the time that is looked at above
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n == 0;
    bytes.append(buffer.data(), static_cast<size_t>(n));
  }
}

/// Whether the child ended by itself, and well.
bool reap(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return false;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

std::optional<std::string> run_in_child(std::chrono::milliseconds limit,
                                        const std::function<std::string()>& work) {
  const auto end = Clock::now() + limit;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_io_error("cannot make", "a pipe", errno);
  const pid_t child = ::fork();
  if (child < 0) {
    const int reason = errno;
    ::close(ends[0]);
    ::close(ends[1]);
    throw_io_error("cannot start", "a process", reason);
  }
  if (child == 0) {
    ::close(ends[0]);
    be_the_child(ends[1], work);
  }
  ::close(ends[1]);
  std::string result;
  const bool whole = read_until(ends[0], end, result);
  ::close(ends[0]);
  if (!whole) ::kill(child, SIGKILL);
  const bool ended_well = reap(child);
  if (!whole || !ended_well) return std::nullopt;
  return result;
}

}  // namespace stretto
