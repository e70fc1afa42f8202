#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace stretto {

/// A program that runs as a child, in a process group of its own (a Ctrl-C on the terminal does not
/// reach it), with nothing to read, and that gets SIGINT when this process dies. SIGTERM and SIGHUP
/// are blocked in it: a service manager that ends a whole job sends them to every process of it,
/// and mpirun would kill the ranks while they save. SIGINT and SIGPIPE are never ignored in it.
class ChildProcess {
 public:
  /// What it takes to end one.
  static constexpr int kEnd = SIGINT;

  ChildProcess() = default;
  enum class Stderr { kShared, kPiped };
  /// @param words      path of the program and its words
  /// @param stderr_to  this process's stderr, or a pipe for `read_stderr`
  /// @param variables  "NAME=value", in the place of this process's own
  /// Throws Error(kIo) when it cannot be started.
  explicit ChildProcess(const std::vector<std::string>& words, Stderr stderr_to = Stderr::kShared,
                        const std::vector<std::string>& variables = {});
  /// A file at whose end the program's stdout and stderr go; made when it is not there.
  struct OutputFile {
    std::filesystem::path path;
    int input = -1;                     ///< an open file that it reads; -1 = it has nothing to read
    std::filesystem::path errors = {};  ///< where its stderr goes instead; empty = to `path` too
  };
  /// Throws as open_own_file() does (base/descriptor.h) too.
  ChildProcess(const std::vector<std::string>& words, const OutputFile& output,
               const std::vector<std::string>& variables = {});
  ~ChildProcess();  ///< kills what still runs
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;

  /// Its exit code once it has ended, 128 + signal when it was killed.
  std::optional<int> poll();
  bool wait_for(std::chrono::milliseconds time);  ///< false when it still runs after that
  void send(int signal) const;
  pid_t pid() const { return pid_; }
  /// What has come from its stderr, after waiting for anything at most so long; empty when nothing
  /// came. After the end of the stream it only waits.
  std::string read_stderr(std::chrono::milliseconds wait);

 private:
  /// Where its stdout and stderr go; -1 = where this process's do.
  struct Outputs {
    int out = -1, err = -1;
    int in = -1;  // -1: nothing to read
  };

  /// @return false, and errno, when it cannot be started
  bool start(const std::vector<std::string>& words, const Outputs& outputs,
             const std::vector<std::string>& variables);
  void close_stderr();

  pid_t pid_ = -1;
  int stderr_ = -1;
  std::optional<int> code_;
};

/// Path of a program in $PATH; empty when there is none.
std::string find_program(const std::string& name);

/// Whether one process may read another's memory directly, which Open MPI's shared memory makes
/// use of; containers may forbid it, and then every message would complain.
bool can_read_other_processes();

}  // namespace stretto
