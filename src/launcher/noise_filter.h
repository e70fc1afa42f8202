#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace stretto::launcher {

/// Takes what a launcher says of its own inner life out of a stream that carries its ranks' words
/// too: from "[HOST:PID]" with the launcher's own PID to the end of that line. Open MPI's mpirun
/// begins so ("[node7:4711] PMIX ERROR: BAD-PARAM in file …") whenever a rank fails. What its event
/// library says goes too ("[warn] Epoll MOD(1) on fd 25 failed…", when a signal ends it).
/// Everything else passes, at once and with progress lines that have no end yet.
class NoiseFilter {
 public:
  explicit NoiseFilter(pid_t pid) : pid_(std::to_string(pid)) {}

  /// What to show of the next chunk of the stream.
  std::string pass(std::string_view chunk);
  /// The rest, when nothing more comes, or not for a while: it was no such line after all.
  std::string rest();
  /// The lines that were taken out.
  const std::string& withheld() const { return withheld_; }

 private:
  enum class Mark { kNone, kBegun, kWhole };
  Mark mark() const;

  std::string pid_, held_, withheld_;
  bool in_noise_ = false;
};

}  // namespace stretto::launcher
