#pragma once

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "data/content_hash.h"

namespace stretto::data::test {

/// Waits until what is read of the files may be remembered, about two seconds after they were
/// written: nobody can put back the time of a file's last change of status.
inline void let_settle(const std::vector<std::string>& files) {
  for (const auto& file : files) {
    while (!is_settled(file, file_stamp(file))) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
}

}  // namespace stretto::data::test
