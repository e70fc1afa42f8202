#pragma once

#include <cstdint>
#include <string>

#include "config/field.h"

namespace stretto::train {

/// `[run]`: what every experiment has.
struct RunOptions {
  std::string name;
  int64_t seed = 1;
  int64_t threads = 0;
  std::string device = "auto";
  std::string packed_weights = "auto";

  static auto fields() {
    using namespace config;
    using O = RunOptions;
    return Fields{
        field(&O::name, "name", "title in the report; empty = name of the run folder", any(),
              {.change = Change::kFree, .per_process = true})
            .also_called({"run_name", "experiment_name", "job_name", "description"}),
        field(&O::seed, "seed", "root of every random stream: weights, order of data, dropout",
              between(0, 9007199254740992.0))
            .also_called({"random_seed", "data_seed", "manual_seed", "experiment_seed"}),
        field(&O::threads, "threads", "CPU threads; 0 = one per core, at most OMP_NUM_THREADS",
              between(0, 4096), {.unit = "threads", .change = Change::kFree, .per_process = true})
            .also_called({"num_threads", "cpu_threads", "num_cpus", "omp_num_threads"}),
        field(&O::device, "device", "auto takes a GPU where there is one",
              one_of({"auto", "cpu", "cuda"}), {.change = Change::kFree})
            .also_called({"gpu"})
            .also_called({"use_cuda"}, "= \"cuda\"")
            .also_called({"no_cuda", "use_cpu"}, "= \"cpu\"")
            .value_also_called("cuda", {"gpu", "cuda:0", "gpu:0", "nvidia"})
            .value_also_called("auto", {"any"}),
        field(&O::packed_weights, "packed_weights",
              "weights of few bits on a CPU: auto multiplies them as they are where that is "
              "faster, codes wherever a layer can (least memory), numbers never",
              one_of({"auto", "codes", "numbers"}), {.change = Change::kScoring}),
    };
  }
};

}  // namespace stretto::train
