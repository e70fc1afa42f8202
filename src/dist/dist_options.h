#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "config/field.h"

namespace stretto::dist {

/// `[dist]`: processes that train one model together.
struct DistOptions {
  std::string backend = "auto";

  static auto fields() {
    using namespace config;
    using O = DistOptions;
    return std::tuple{
        field(&O::backend, "backend", "how processes talk; one process needs none",
              one_of({"auto", "single"}), {.change = Change::kFree}),
    };
  }
};

}  // namespace stretto::dist
