#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"

namespace stretto::compress {

/// `[compress.prune]`: weights that are zero, and stay so, while a run trains.
struct PruneOptions {
  double sparsity = 0;
  std::string scope = "global";
  std::string schedule = "steps";
  int64_t begin = 0;
  int64_t every = 100;
  double increment = 0.15;
  int64_t end = 0;
  std::vector<std::string> tensors;
  std::vector<std::string> except;
  bool hold = true;

  bool prunes() const { return sparsity > 0; }

  static auto fields() {
    using namespace config;
    using O = PruneOptions;
    return Fields{
        field(&O::sparsity, "sparsity",
              "share of the weights that is zero at the end; 0 = nothing is pruned. The smallest "
              "magnitudes go first, and what is zero stays so in updates, averages and checkpoints",
              fraction())
            .also_called(
                {"amount", "target_sparsity", "final_sparsity", "prune_ratio", "pruning_ratio"}),
        field(&O::scope, "scope",
              "global: the smallest weights of all tensors together. layer: the same share of each "
              "tensor. block: that, in whole blocks of 32 rows and 32 columns, which products of "
              "packed weights leave out",
              one_of({"global", "layer", "block"}))
            .value_also_called("layer", {"local", "tensor", "layerwise", "uniform"})
            .read_unless_zero("sparsity"),
        field(&O::schedule, "schedule",
              "once: all of it after `begin` updates. steps: `increment` more every `every` "
              "updates, with training between (Li et al. 2020). cubic: every `every` updates from "
              "`begin` to `end`, much at first and little at last (Zhu and Gupta 2017)",
              one_of({"once", "steps", "cubic"}))
            .value_also_called("once", {"one_shot", "oneshot"})
            .value_also_called("steps", {"iterative"})
            .value_also_called("cubic", {"gradual", "polynomial"})
            .read_unless_zero("sparsity"),
        field(&O::begin, "begin", "updates before weights are pruned for the first time",
              at_least(0), {.unit = "updates"})
            .also_called({"begin_step", "start_step"})
            .read_unless_zero("sparsity"),
        field(&O::every, "every", "updates from one pruning to the next", at_least(1),
              {.unit = "updates"})
            .also_called({"prune_frequency"})
            .read_with("schedule", {"steps", "cubic"}),
        field(&O::increment, "increment", "what each pruning adds to the share",
              {.min = 0, .max = 1, .min_open = true, .choices = {}})
            .read_with("schedule", {"steps"}),
        field(&O::end, "end", "the update after which `sparsity` is reached", at_least(0),
              {.unit = "updates"})
            .also_called({"end_step"})
            .read_with("schedule", {"cubic"}),
        field(&O::tensors, "tensors",
              "name patterns of the tensors that are pruned (* and ? as in a shell); empty = all "
              "of two dimensions or more that train, neither biases nor gains of norms")
            .also_called({"parameters_to_prune"})
            .read_unless_zero("sparsity"),
        field(&O::except, "except",
              "name patterns of tensors that are not pruned, also where `tensors` names them")
            .read_unless_zero("sparsity"),
        field(&O::hold, "hold",
              "what was pruned in the run of train.init_from stays zero in this one; false: its "
              "zeros train like other weights"),
    };
  }
};

/// `[compress.quantise]`: training that sees weights as they will be stored.
struct QuantiseOptions {
  int64_t bits = 0;
  int64_t group = 0;
  bool symmetric = true;
  double noise = 1;
  int64_t begin = 0;
  bool validate = true;
  std::vector<std::string> tensors;
  std::vector<std::string> except;

  bool quantises() const { return bits > 0; }

  static auto fields() {
    using namespace config;
    using O = QuantiseOptions;
    return Fields{
        field(&O::bits, "bits",
              "an update runs forward and backward with weights rounded to so many bits, and steps "
              "those that are not rounded (straight-through); 8, 6, 4, 3 or 2, 0 = weights are not "
              "rounded",
              between(0, 8))
            .also_called({"num_bits", "weight_bits", "quant_bits"}),
        field(&O::group, "group", "weights of a row that share a scale; 0 = a row has one scale",
              at_least(0))
            .also_called({"group_size"})
            .read_unless_zero("bits"),
        field(&O::symmetric, "symmetric",
              "true: a scale alone, and code 0 is 0. false: a scale and a zero for each group",
              any())
            .read_unless_zero("bits"),
        field(&O::noise, "noise",
              "share of the groups that are rounded in an update, drawn anew in each; 1 = all. "
              "Less is quantisation noise (Fan et al. 2020: 0.05 to 0.5), for few bits",
              {.min = 0, .max = 1, .min_open = true, .choices = {}})
            .read_unless_zero("bits"),
        field(&O::begin, "begin", "updates before weights are rounded", at_least(0),
              {.unit = "updates"})
            .read_unless_zero("bits"),
        field(&O::validate, "validate",
              "validations see all weights rounded, as they will be stored; checkpoints never do",
              any(), {.change = Change::kScoring})
            .read_unless_zero("bits"),
        field(&O::tensors, "tensors",
              "name patterns of the tensors that are rounded; empty = all of two dimensions or "
              "more that train")
            .read_unless_zero("bits"),
        field(&O::except, "except",
              "name patterns of tensors that are not rounded, also where `tensors` names them")
            .read_unless_zero("bits"),
    };
  }
};

/// `[compress]`: what training does for a small model.
struct CompressOptions {
  PruneOptions prune;
  QuantiseOptions quantise;

  static auto fields() {
    using namespace config;
    using O = CompressOptions;
    return Fields{
        field(&O::prune, "prune", "weights that become zero while a run trains, and stay so")
            .also_called({"pruning"}),
        field(&O::quantise, "quantise", "training that sees rounded weights")
            .also_called({"quantize", "quantization", "quantisation", "qat"}),
    };
  }
};

}  // namespace stretto::compress
