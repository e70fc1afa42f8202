#pragma once

#include <string>
#include <vector>

#include "config/problem.h"

namespace stretto::config {

/// Notes what is wrong with a key, where it stands, unless its value was refused already.
class KeyCheck {
 public:
  KeyCheck(const Origins& origins, std::vector<Problem>& problems)
      : origins_(origins), problems_(problems) {}

  void wrong(const std::string& key, const std::string& what, const std::string& hint) {
    if (is_unreliable(problems_, key)) return;
    problems_.push_back({origins_.of(key), what, hint, key, origins_.order_of(key)});
  }

 private:
  const Origins& origins_;
  std::vector<Problem>& problems_;
};

}  // namespace stretto::config
