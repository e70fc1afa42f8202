#include "base/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/signals.h"
#include "base/text.h"

namespace stretto {
namespace {

constexpr int kCannotStart = 127;

// Between fork and exec only what is safe there: no allocation, no locks.
struct Begin {
  char* const* words;
  char* const* variables;
  int out, err;  // -1: those of this process
  int in;        // -1: nothing to read
  pid_t parent;
};

[[noreturn]] void become(const Begin& begin) {
  ::setpgid(0, 0);
  ::signal(SIGINT, SIG_DFL);   // a shell without jobs ignores it for what it starts with &
  ::signal(SIGPIPE, SIG_DFL);  // the launcher ignores it
  ::prctl(PR_SET_PDEATHSIG, ChildProcess::kEnd);
  if (::getppid() != begin.parent) ::_exit(kCannotStart);  // it died before the line above
  sigset_t blocked;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  ::sigaddset(&blocked, SIGHUP);
  ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
  const int input = begin.in >= 0 ? begin.in : ::open("/dev/null", O_RDONLY);
  if (input >= 0) ::dup2(input, STDIN_FILENO);
  if (begin.out >= 0) ::dup2(begin.out, STDOUT_FILENO);
  if (begin.err >= 0) ::dup2(begin.err, STDERR_FILENO);
  ::execve(begin.words[0], begin.words, begin.variables);
  ::_exit(kCannotStart);
}

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const auto& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// This process's variables, but for those that `other` has another value for.
std::vector<std::string> variables_with(const std::vector<std::string>& other) {
  std::vector<std::string> all = other;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string variable = *one;
    const std::string name = variable.substr(0, variable.find('=') + 1);
    const bool replaced = std::any_of(other.begin(), other.end(),
                                      [&](const auto& entry) { return entry.starts_with(name); });
    if (!replaced) all.push_back(variable);
  }
  return all;
}

}  // namespace

bool ChildProcess::start(const std::vector<std::string>& words, const Outputs& outputs,
                         const std::vector<std::string>& variables) {
  const auto pointers = pointers_to(words);
  const auto all_variables = variables_with(variables);
  const auto variable_pointers = pointers_to(all_variables);
  const Begin begin{.words = pointers.data(),
                    .variables = variable_pointers.data(),
                    .out = outputs.out,
                    .err = outputs.err,
                    .in = outputs.in,
                    .parent = ::getpid()};
  // What is sent to the child before it takes signals as it should waits until it does.
  const SignalsBlocked waiting;
  pid_ = ::fork();
  if (pid_ == 0) become(begin);
  return pid_ > 0;
}

ChildProcess::ChildProcess(const std::vector<std::string>& words, Stderr stderr_to,
                           const std::vector<std::string>& variables) {
  int ends[2] = {-1, -1};
  if (stderr_to == Stderr::kPiped && ::pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(ExitCode::kIo, std::string("cannot make a pipe: ") + std::strerror(errno), "");
  }
  const bool started = start(words, {.err = ends[1]}, variables);
  const int error = errno;
  if (ends[1] >= 0) ::close(ends[1]);
  stderr_ = ends[0];
  if (!started) {
    close_stderr();
    throw Error(ExitCode::kIo, "cannot start " + words.front() + ": " + std::strerror(error), "");
  }
}

ChildProcess::ChildProcess(const std::vector<std::string>& words, const OutputFile& output,
                           const std::vector<std::string>& variables) {
  const Descriptor file = open_own_file(output.path, O_WRONLY | O_APPEND);
  Descriptor errors;
  if (!output.errors.empty()) errors = open_own_file(output.errors, O_WRONLY | O_APPEND);
  const int err = output.errors.empty() ? file.get() : errors.get();
  if (!start(words, {.out = file.get(), .err = err, .in = output.input}, variables)) {
    throw Error(ExitCode::kIo, "cannot start " + words.front() + ": " + std::strerror(errno), "");
  }
}

void ChildProcess::close_stderr() {
  if (stderr_ >= 0) ::close(stderr_);
  stderr_ = -1;
}

ChildProcess::~ChildProcess() {
  close_stderr();
  if (pid_ <= 0 || poll()) return;
  send(SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(other.pid_), stderr_(other.stderr_), code_(other.code_) {
  other.pid_ = -1;
  other.stderr_ = -1;
}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(stderr_, other.stderr_);
  std::swap(code_, other.code_);
  return *this;
}

std::optional<int> ChildProcess::poll() {
  if (code_ || pid_ <= 0) return code_;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return code_;
}

bool ChildProcess::wait_for(std::chrono::milliseconds time) {
  const auto deadline = std::chrono::steady_clock::now() + time;
  while (!poll()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

std::string ChildProcess::read_stderr(std::chrono::milliseconds wait) {
  std::string text(65536, '\0');
  pollfd ready{.fd = stderr_, .events = POLLIN, .revents = 0};  // -1: a sleep
  if (::poll(&ready, 1, static_cast<int>(wait.count())) <= 0) return {};
  const ssize_t count = ::read(stderr_, text.data(), text.size());
  if (count < 0 && errno == EINTR) return {};
  if (count <= 0) close_stderr();
  text.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
  return text;
}

void ChildProcess::send(int signal) const {
  if (pid_ > 0 && !code_) ::kill(pid_, signal);
}

std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  for (const auto& folder : split(path == nullptr ? "/usr/bin:/bin" : path, ':')) {
    const auto candidate = (std::filesystem::path(folder.empty() ? "." : folder) / name).string();
    if (::access(candidate.c_str(), X_OK) == 0 && !std::filesystem::is_directory(candidate)) {
      return candidate;
    }
  }
  return {};
}

bool can_read_other_processes() {
  static volatile int64_t value = 1234;
  const pid_t child = ::fork();
  if (child == 0) {
    while (true) ::pause();
  }
  if (child < 0) return false;
  int64_t copy = 0;
  const iovec here{.iov_base = &copy, .iov_len = sizeof copy};
  const iovec there{.iov_base = const_cast<int64_t*>(&value), .iov_len = sizeof value};
  const bool read = ::process_vm_readv(child, &here, 1, &there, 1, 0) == sizeof copy;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return read && copy == value;
}

}  // namespace stretto
