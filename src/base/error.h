#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace stretto {

/// Exit codes of every command; `docs/troubleshooting.md` lists them for users.
enum class ExitCode : int {
  kOk = 0,
  kUsage = 2,         ///< wrong command or config, missing file or run folder, run locked
  kBadData = 65,      ///< corpus or checkpoint content is bad
  kPeerLost = 69,     ///< a process of the job died or hangs
  kNumeric = 70,      ///< training diverged or overflowed for good
  kOutOfMemory = 71,  ///< no memory left
  kInternal = 73,     ///< unexpected: a bug in Stretto
  kIo = 74,           ///< permission, disk, no space
  kInterrupted = 75,  ///< saved after SIGINT, SIGTERM, SIGUSR1 or SIGHUP; can be resumed
  kUnsafe = 78,       ///< refused unsafe setting
  kKilled = 130,      ///< second SIGINT
};

/// A failure the user can act on: what is wrong and where, and what to do about it.
///
/// `what()` is one paragraph that names the place (`file:line:column`, key, tensor, rank);
/// `advice()` is the remedy, printed on a second, indented line. `details()` are lines that the
/// paragraph has no room for; `check`, `train` and `import` print them.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& what, std::string advice = "",
        std::vector<std::string> details = {})
      : std::runtime_error(what),
        code_(code),
        advice_(std::move(advice)),
        details_(std::move(details)) {}

  ExitCode code() const { return code_; }
  const std::string& advice() const { return advice_; }
  const std::vector<std::string>& details() const { return details_; }

  /// `what()`, then the advice on a line of its own indented by two spaces.
  std::string message() const {
    return advice_.empty() ? std::string(what()) : std::string(what()) + "\n  " + advice_;
  }

 private:
  ExitCode code_;
  std::string advice_;
  std::vector<std::string> details_;
};

}  // namespace stretto
