#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"

namespace stretto::sweep {

/// `[grid]` of a grid file: how each run is compressed, and how it is judged.
struct GridOptions {
  std::vector<double> bits{8, 6, 4, 3};
  std::vector<double> sparsity{0};
  int64_t group = 0;
  bool symmetric = true;
  std::string rounding = "least_error";
  std::string scope = "global";
  std::vector<std::string> keep;
  std::vector<std::string> bits_of;
  std::string metric;
  std::string goal = "auto";
  std::vector<std::string> eval;
  std::vector<std::string> data;
  bool time = true;
  double seconds = 5;

  static auto fields() {
    using namespace config;
    using O = GridOptions;
    return Fields{
        field(&O::bits, "bits",
              "bits of a weight: 8, 6, 4, 3, 2, and 32 for weights that are not rounded"),
        field(&O::sparsity, "sparsity",
              "shares of the weights that become zero; 0 = nothing is pruned")
            .also_called({"sparsities", "prune"}),
        field(&O::group, "group", "weights of a row that share a scale; 0 = a row has one scale",
              between(0, 1 << 20))
            .also_called({"group_size"}),
        field(&O::symmetric, "symmetric", "false: a zero beside each scale"),
        field(&O::rounding, "rounding",
              "nearest; least_error: scales with the least squared error; calibrated: by what the "
              "layers see of the validation data (GPTQ)",
              one_of({"nearest", "least_error", "calibrated"})),
        field(&O::scope, "scope",
              "of pruning: global, the smallest weights of all matrices; layer, the same share of "
              "each; block, that in whole blocks of 32 x 32",
              one_of({"global", "layer", "block"})),
        field(&O::keep, "keep", "patterns of tensors that stay as they are"),
        field(&O::bits_of, "bits_of", "other bits for some tensors: [\"embedding*=8\"]"),
        field(&O::metric, "metric",
              "the score of `stretto eval --json` by which points are compared; empty = "
              "eval.best_metric of the runs"),
        field(&O::goal, "goal", "which way the metric is better; auto: as it is known",
              one_of({"auto", "minimize", "maximize"})),
        field(&O::eval, "eval",
              "keys with which points are scored and timed: [\"decode.beam_size=1\"]")
            .also_called({"overrides"}),
        field(&O::data, "data",
              "files on which points are scored and timed, as `stretto eval --data` takes them; of "
              "translation a source and its translation; empty = the data of the runs",
              any(), {.is_path = true})
            .also_called({"eval_data", "test_data"}),
        field(&O::time, "time", "whether the speed of each point is measured too"),
        field(&O::seconds, "seconds", "of measuring, for each point", between(0.1, 3600),
              {.unit = "seconds"}),
    };
  }
};

struct GridFileOptions {
  GridOptions grid;

  static auto fields() {
    return config::Fields{
        config::field(&GridFileOptions::grid, "grid", "what is compressed, how far, and judged by")
            .also_called({"sweep"})};
  }
};

}  // namespace stretto::sweep
