// What `read_with` says behind a key's declaration is held against what is computed: each key is
// changed under each name, and what comes out differs if and only if the key is read.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "base/error.h"
#include "config/schema.h"
#include "optim/gradient_noise.h"
#include "optim/loss_scaler.h"
#include "optim/schedule.h"
#include "optim/weight_noise.h"
#include "tests/config/is_read.h"
#include "tests/optim/toy.h"

namespace stretto::optim {
namespace {

using stretto::testing::is_read;
using testing::Numbers;

template <class Options>
struct Change {
  std::string key;
  std::function<void(Options&)> apply;
};
template <class Options>
using Changes = std::vector<Change<Options>>;

template <class Options>
config::Key key_named(Options& options, const std::string& key) {
  return *config::schema_of(options).find(key);
}

template <class Options>
std::vector<std::string> names_of() {
  Options options;
  return key_named(options, "name").range.choices;
}

/// Every key of the section is either changed here or named in `elsewhere`.
template <class Options>
void expect_every_key(const Changes<Options>& changes, std::set<std::string> elsewhere) {
  Options options;
  std::set<std::string> all;
  for (const auto& key : config::schema_of(options).keys) all.insert(key.path);
  for (const auto& change : changes) elsewhere.insert(change.key);
  EXPECT_EQ(elsewhere, all);
}

/// @param outcome  what training sees of the options, as numbers
template <class Options>
void expect_as_declared(const Options& base, const Changes<Options>& changes,
                        const std::function<Numbers(const Options&)>& outcome) {
  for (const auto& name : names_of<Options>()) {
    if (name == "auto") continue;  // one of the others
    Options options = base;
    options.name = name;
    const Numbers before = outcome(options);
    for (const auto& change : changes) {
      Options changed = options;
      change.apply(changed);
      EXPECT_EQ(outcome(changed) != before, is_read(change.key, options))
          << change.key << " of " << name;
    }
  }
}

/// Weights and state after some updates.
Numbers stepped(const OptimOptions& options) {
  testing::Toy toy;
  Arena arena(toy);
  arena.set_part_rows(toy.tensors[1], {30, 40});
  const auto optimizer = make_optimizer(options, arena);
  for (int step = 1; step <= 8; ++step) {
    toy.fill_gradients(step);
    if (step > 1) toy.tensors[1].mutable_grad()[3].zero_();  // a row that was not looked up
    optimizer->step(arena, {.lr = testing::rate_at(step), .number = step});
  }
  Numbers all = testing::numbers_of(arena.params());
  for (const auto& tensor : optimizer->state()) {
    const Numbers more = testing::numbers_of(tensor.values);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

TEST(ReadWith, AnOptimizerReadsTheKeysThatSaySo) {
  using O = OptimOptions;
  const Changes<O> changes{
      {"beta1", [](O& o) { o.beta1 = 0.5; }},
      {"beta2", [](O& o) { o.beta2 = 0.5; }},
      {"epsilon", [](O& o) { o.epsilon = 0.1; }},
      {"weight_decay", [](O& o) { o.weight_decay = 0.3; }},
      {"momentum", [](O& o) { o.momentum = 0.5; }},
      {"nesterov", [](O& o) { o.nesterov = true; }},
      {"momentum_form", [](O& o) { o.momentum_form = "rate_inside"; }},
      {"radam_start", [](O& o) { o.radam_start = "none"; }},
      {"trust_coefficient", [](O& o) { o.trust_coefficient = 1e-4; }},
      {"larc_mode", [](O& o) { o.larc_mode = "scale"; }},
      {"larc_eta", [](O& o) { o.larc_eta = 1e-4; }},
      {"grad_averaging", [](O& o) { o.grad_averaging = true; }},
      {"l1", [](O& o) { o.l1 = 0.5; }},
      {"l2", [](O& o) { o.l2 = 0.5; }},
      {"initial_accumulator", [](O& o) { o.initial_accumulator = 0.5; }},
      {"ftrl_start", [](O& o) { o.ftrl_start = "zero"; }},
      {"lazy_tables", [](O& o) { o.lazy_tables = {"large"}; }},
      {"muon_momentum", [](O& o) { o.muon_momentum = 0.5; }},
      {"muon_nesterov", [](O& o) { o.muon_nesterov = false; }},
      {"muon_scale", [](O& o) { o.muon_scale = "spectral"; }},
      {"muon_adam_lr", [](O& o) { o.muon_adam_lr = 1e-3; }},
      {"muon_adam_tensors", [](O& o) { o.muon_adam_tensors = {"large"}; }},
      {"muon_split", [](O& o) { o.muon_split = false; }},
      {"muon_fixed_norm", [](O& o) { o.muon_fixed_norm = true; }},
      {"muon_iterations", [](O& o) { o.muon_iterations = 3; }},
      {"muon_precision", [](O& o) { o.muon_precision = "bf16"; }},
      {"muon_others", [](O& o) { o.muon_others = "sgd"; }},
      {"muon_other_momentum", [](O& o) { o.muon_other_momentum = 0.5; }},
      {"no_decay", [](O& o) { o.no_decay = {"none"}; }},
      {"groups", [](O& o) { o.groups = {"large lr_scale=0.5"}; }},
  };
  // The trainer reads these, whatever the optimizer; layer_decay becomes rates of groups.
  expect_every_key(changes,
                   {"name", "lr", "reference_batch", "lr_scaling", "clip_norm", "gradient_noise",
                    "gradient_noise_decay", "layer_decay", "weight_noise", "weight_noise_tensors"});
  for (const char* key : {"lr", "lr_scaling", "clip_norm"}) {
    EXPECT_TRUE(is_read(key, OptimOptions{})) << key;
  }
  EXPECT_FALSE(is_read("reference_batch", OptimOptions{}));
  EXPECT_TRUE(is_read("reference_batch", OptimOptions{.lr_scaling = "sqrt"}));
  expect_as_declared<O>({.weight_decay = 0.1}, changes, stepped);
}

TEST(ReadWith, MuonReadsAMomentumOfWhatSgdSteps) {
  OptimOptions options{.name = "muon"};
  options.muon_others = "sgd";
  OptimOptions changed = options;
  changed.muon_other_momentum = 0.5;
  EXPECT_TRUE(is_read("muon_other_momentum", options));
  EXPECT_NE(stepped(changed), stepped(options));
}

/// The deviations of the first steps' gradients, and the weights of a step.
Numbers noise_of(const OptimOptions& options) {
  Numbers all;
  for (int64_t step = 0; step < 5; ++step) {
    all.push_back(
        gradient_noise_deviation(options.gradient_noise, options.gradient_noise_decay, step));
  }
  testing::Toy toy;
  Arena arena(toy);
  WeightNoise noise(options, arena);
  const NoisyWeights weights = noise.add(9);
  const Numbers more = testing::numbers_of(arena.params());
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(ReadWith, NoiseOfNoSizeReadsNothing) {
  for (const double size : {0.0, 0.3}) {
    const OptimOptions options{.gradient_noise = size, .weight_noise = size};
    OptimOptions decaying = options, named = options;
    decaying.gradient_noise_decay = 1;
    named.weight_noise_tensors = {"large"};
    EXPECT_EQ(noise_of(decaying) != noise_of(options), is_read("gradient_noise_decay", options))
        << size;
    EXPECT_EQ(noise_of(named) != noise_of(options), is_read("weight_noise_tensors", options))
        << size;
  }
}

/// The rates of 400 updates, with a validation after every 20th whose loss falls and then stays.
Numbers rates(const ScheduleOptions& schedule) {
  Numbers all;
  Plateau plateau;
  for (int64_t step = 0; step < 400; ++step) {
    if (step % 20 == 0) {
      const double loss = 5 * std::pow(0.9, std::min<double>(static_cast<double>(step) / 20, 6));
      plateau = after_validation(schedule, plateau, loss);
    }
    const int64_t total = schedule.total_steps > 0 ? schedule.total_steps : 300;
    all.push_back(learning_rate(
        schedule, 1e-3,
        {.step = step, .total_steps = total, .reductions = plateau.reductions, .width = 512}));
  }
  return all;
}

TEST(ReadWith, AScheduleReadsTheKeysThatSaySo) {
  using O = ScheduleOptions;
  const Changes<O> changes{
      {"warmup_steps", [](O& o) { o.warmup_steps = 60; }},
      {"warmup_init_lr", [](O& o) { o.warmup_init_lr = 1e-5; }},
      {"min_lr", [](O& o) { o.min_lr = 9e-4; }},
      {"total_steps", [](O& o) { o.total_steps = 250; }},
      {"power", [](O& o) { o.power = 2; }},
      {"warmup", [](O& o) { o.warmup = "constant"; }},
      {"begin_steps", [](O& o) { o.begin_steps = 80; }},
      {"boundaries", [](O& o) { o.boundaries = {150}; }},
      {"multipliers", [](O& o) { o.multipliers = {0.3}; }},
      {"decay_steps", [](O& o) { o.decay_steps = 70; }},
      {"decay_rate", [](O& o) { o.decay_rate = 0.5; }},
      {"staircase", [](O& o) { o.staircase = true; }},
      {"period_steps", [](O& o) { o.period_steps = 90; }},
      {"period_growth", [](O& o) { o.period_growth = 2; }},
      {"period_shrink", [](O& o) { o.period_shrink = 0.5; }},
      {"max_lr", [](O& o) { o.max_lr = 1e-6; }},
      {"hold_steps", [](O& o) { o.hold_steps = 40; }},
      {"final_scale", [](O& o) { o.final_scale = 0.1; }},
      {"patience", [](O& o) { o.patience = 3; }},
      {"threshold", [](O& o) { o.threshold = 0.5; }},
  };
  // The ratio becomes warmup_steps before training reads it (train/schedule_end.h).
  expect_every_key(changes, {"name", "warmup_ratio"});
  const O share{.name = "constant", .warmup_ratio = 0.1};
  EXPECT_NE(share.warmup_updates(250), share.warmup_updates(300));
  EXPECT_TRUE(is_read("total_steps", share));
  ScheduleOptions base;
  base.warmup_steps = 50;
  base.boundaries = {100};
  base.multipliers = {0.5};
  base.decay_steps = 60;
  base.period_steps = 80;
  expect_as_declared<O>(base, changes, rates);
  base.warmup = "constant";  // also of noam
  const Changes<O> start{{"warmup_init_lr", [](O& o) { o.warmup_init_lr = 1e-5; }}};
  expect_as_declared<O>(base, start, rates);
}

/// The scales of an update with overflows and of many without; ends where the scaler gives up.
Numbers scales(const LossScaleOptions& options) {
  const auto scaler = make_loss_scaler(options, 1);
  Numbers all{scaler->scale()};
  for (int step = 0; step < 40; ++step) {
    try {
      scaler->update({.overflow = step == 1 || step == 3, .max_abs = 1});
    } catch (const Error&) {
      return all;
    }
    all.push_back(scaler->scale());
  }
  return all;
}

TEST(ReadWith, ALossScalingReadsTheKeysThatSaySo) {
  using O = LossScaleOptions;
  const Changes<O> changes{
      {"init", [](O& o) { o.init = 64; }},    {"min", [](O& o) { o.min = 8192; }},
      {"max", [](O& o) { o.max = 32; }},      {"factor", [](O& o) { o.factor = 4; }},
      {"window", [](O& o) { o.window = 5; }},
  };
  expect_every_key(changes, {"name"});
  expect_as_declared<O>({}, changes, scales);
}

}  // namespace
}  // namespace stretto::optim
