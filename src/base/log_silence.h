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

}  // namespace stretto::log
