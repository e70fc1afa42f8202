#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "config/field.h"

namespace stretto::train {

/// `[run]`: what every experiment has.
struct RunOptions {
  std::string name;
  int64_t seed = 1;
  int64_t threads = 0;
  std::string device = "auto";

  static auto fields() {
    using namespace config;
    using O = RunOptions;
    return std::tuple{
        field(&O::name, "name", "title in the report; empty = name of the run folder", any(),
              {.change = Change::kFree}),
        field(&O::seed, "seed", "root of every random stream: weights, order of data, dropout",
              between(0, 9007199254740992.0)),
        field(&O::threads, "threads", "CPU threads; 0 = one per core, at most OMP_NUM_THREADS",
              between(0, 4096), {.unit = "threads", .change = Change::kFree}),
        field(&O::device, "device", "auto takes a GPU where there is one",
              one_of({"auto", "cpu", "cuda"}), {.change = Change::kFree}),
    };
  }
};

}  // namespace stretto::train
