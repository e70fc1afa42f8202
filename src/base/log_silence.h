#pragma once

namespace stretto::log {

/// While one lives, what this thread logs by info() and warn() is dropped, from log.txt too: for a
/// look ahead at what is done in earnest later, and logged then.
class Silence {
 public:
  Silence();
  ~Silence();
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;
};

/// While one lives, no Silence of this thread holds: for what a look ahead does in earnest, so that
/// nothing does and logs it later.
class SilenceLifted {
 public:
  SilenceLifted();
  ~SilenceLifted();
  SilenceLifted(const SilenceLifted&) = delete;
  SilenceLifted& operator=(const SilenceLifted&) = delete;

 private:
  int silences_;  ///< that hold again afterwards
};

}  // namespace stretto::log
