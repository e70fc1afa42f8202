// What all optimizers have in common, and torch.optim's own numbers.
#include "optim/optimizer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <stdexcept>

#include "base/error.h"
#include "config/schema.h"
#include "kernels/cuda/cuda.h"
#include "kernels/gemm/gemm.h"
#include "optim/adafactor.h"
#include "tests/optim/toy.h"

namespace stretto::optim {
namespace {

using testing::Toy;

const std::vector<std::string> kNames{"adam",      "adamw", "radam",     "lamb",    "sgd",
                                      "lars",      "larc",  "novograd",  "adagrad", "rmsprop",
                                      "adafactor", "ftrl",  "lazy_adam", "muon"};

OptimOptions options_of(const std::string& name) {
  return {
      .name = name, .weight_decay = 0.1, .momentum_form = "rate_inside", .muon_precision = "fp32"};
}

// --- torch.optim -------------------------------------------------------------------------------

struct TorchValues {
  const char* name;
  int step;
  std::array<double, 9> weights;
};
constexpr TorchValues kTorchValues[] = {
#include "tests/optim/torch_values.inc"
};

/// The model of torch_values.py.
struct Small : torch::nn::Module {
  torch::Tensor matrix, vector;
  Small() {
    const auto values = torch::arange(9, torch::kDouble).cos().to(torch::kFloat);
    matrix = register_parameter("matrix", values.slice(0, 0, 6).view({2, 3}).clone());
    vector = register_parameter("vector", values.slice(0, 6).clone());
  }
  void fill_gradients(int step) {
    const auto slopes =
        (torch::arange(9, torch::kDouble) * 1.3 + 0.7 * step).sin().to(torch::kFloat);
    matrix.mutable_grad().copy_(slopes.slice(0, 0, 6).view({2, 3}));
    vector.mutable_grad().copy_(slopes.slice(0, 6));
  }
};

TEST(TorchOptim, StoredValuesOfTenStepsAreReached) {
  for (const TorchValues& expected : kTorchValues) {
    const bool nesterov = std::strcmp(expected.name, "sgd_nesterov") == 0;
    Small small;
    Arena arena(small);
    const auto optimizer = make_optimizer({.name = nesterov ? "sgd" : expected.name,
                                           .beta2 = 0.98,
                                           .weight_decay = 0.1,
                                           .nesterov = nesterov},
                                          arena);
    for (int step = 1; step <= expected.step; ++step) {
      small.fill_gradients(step);
      optimizer->step(arena, {.lr = 0.01 * step, .number = step});
    }
    const auto got = torch::cat({small.matrix.flatten(), small.vector});
    for (int i = 0; i < 9; ++i) {
      const double want = expected.weights[static_cast<size_t>(i)];
      EXPECT_NEAR(got[i].item<double>(), want, 2e-6 * (1 + std::abs(want)))
          << expected.name << ", step " << expected.step << ", element " << i;
    }
  }
}

// --- slices ------------------------------------------------------------------------------------

/// Steps an arena in slices as so many processes would, one after another: a first pass collects
/// what all have to add, weights and states are put back, and a second pass gets the sums.
struct Sliced {
  Toy toy;
  Arena arena{toy};
  std::vector<int64_t> begins;
  std::vector<std::unique_ptr<Optimizer>> optimizers;

  Sliced(const OptimOptions& options, const std::vector<int64_t>& slice_begins)
      : begins(slice_begins) {
    for (size_t i = 0; i + 1 < begins.size(); ++i) {
      optimizers.push_back(make_optimizer(options, arena, {begins[i], begins[i + 1]}));
    }
  }

  void step(int number) {
    toy.fill_gradients(number);
    std::vector<double> totals;
    std::vector<torch::Tensor> wholes;  // what each call of a process gathers
    const auto before = arena.params().clone();
    std::vector<std::vector<torch::Tensor>> states;
    for (const bool collecting : {true, false}) {
      for (size_t i = 0; i < optimizers.size(); ++i) {
        auto state = optimizers[i]->state();
        if (collecting) {
          auto& saved = states.emplace_back();
          for (const auto& tensor : state) saved.push_back(tensor.values.clone());
        } else {
          for (size_t t = 0; t < state.size(); ++t) state[t].values.copy_(states[i][t]);
        }
        size_t calls = 0;
        const auto gather = [&](const torch::Tensor& values, std::span<const int64_t> cut) {
          if (calls == wholes.size()) wholes.push_back(torch::zeros_like(values));
          const torch::Tensor whole = wholes[calls++];
          if (collecting) {
            whole.narrow(0, cut[i], cut[i + 1] - cut[i])
                .copy_(values.narrow(0, cut[i], cut[i + 1] - cut[i]));
          } else {
            values.copy_(whole);
          }
        };
        optimizers[i]->step(arena, {.lr = testing::rate_at(number),
                                    .grad_scale = testing::kGradScale,
                                    .number = number,
                                    .sum_over_ranks =
                                        [&](std::span<double> values) {
                                          totals.resize(values.size());
                                          for (size_t v = 0; v < values.size(); ++v) {
                                            if (collecting)
                                              totals[v] += values[v];
                                            else
                                              values[v] = totals[v];
                                          }
                                        },
                                    .slice_begins = begins,
                                    .gather_over_ranks = gather});
      }
      if (collecting) arena.params().copy_(before);
    }
  }
};

TEST(Optimizer, SlicesGiveTheSameAsTheWhole) {
  for (const auto& name : kNames) {
    if (name == "adafactor") continue;
    Toy toy;
    Arena arena(toy);
    const auto whole = make_optimizer(options_of(name), arena);
    // The cuts lie inside the long matrix, in a gap, and at the end: the last slice is empty.
    const int64_t gap = arena.slots()[0].offset + arena.slots()[0].numel;
    Sliced sliced(options_of(name), {0, gap, 1000, arena.size(), arena.size()});
    for (int step = 1; step <= testing::kSteps; ++step) {
      toy.fill_gradients(step);
      whole->step(
          arena, {.lr = testing::rate_at(step), .grad_scale = testing::kGradScale, .number = step});
      sliced.step(step);
      ASSERT_TRUE(torch::allclose(arena.params(), sliced.arena.params(), 1e-6, 1e-7))
          << name << ", step " << step;
    }
  }
}

TEST(Optimizer, AFlatStateIsTheSlicesPartOfTheWhole) {
  for (const auto& name : kNames) {
    if (name == "adafactor") continue;
    Toy toy;
    Arena arena(toy);
    for (const auto& tensor : make_optimizer(options_of(name), arena, {16, 1000})->state()) {
      if (!tensor.flat) continue;
      const Slice place = tensor.held.place_of({16, 1000});
      EXPECT_EQ(tensor.values.sizes(), torch::IntArrayRef({place.size()})) << name;
      if (tensor.held.is_all()) {
        EXPECT_EQ(place.size(), 984) << name;
      }
    }
  }
}

TEST(Optimizer, ElementsOutsideTheSliceStay) {
  for (const auto& name : kNames) {
    if (name == "adafactor") continue;
    Toy toy;
    Arena arena(toy);
    const auto before = arena.params().clone();
    toy.fill_gradients(1);
    const std::vector<int64_t> begins{0, 16, 1000, arena.size()};
    make_optimizer(options_of(name), arena, {16, 1000})
        ->step(arena, {.lr = 0.1,
                       .sum_over_ranks = [](std::span<double>) {},
                       .slice_begins = begins,
                       .gather_over_ranks = [](const torch::Tensor&, std::span<const int64_t>) {}});
    EXPECT_TRUE(torch::equal(arena.params().slice(0, 0, 16), before.slice(0, 0, 16))) << name;
    EXPECT_TRUE(torch::equal(arena.params().slice(0, 1000), before.slice(0, 1000))) << name;
    EXPECT_FALSE(torch::equal(arena.params().slice(0, 16, 1000), before.slice(0, 16, 1000)))
        << name;
  }
}

TEST(Optimizer, LayerWiseRulesRefuseASliceWithoutASum) {
  for (const std::string name : {"lars", "larc", "lamb", "novograd"}) {
    Toy toy;
    Arena arena(toy);
    const auto optimizer = make_optimizer(options_of(name), arena, {16, 1000});
    EXPECT_THROW(optimizer->step(arena, {.lr = 0.1}), c10::Error) << name;
  }
}

TEST(BoundedGradients, SlicesThatShareTheirNormsStepAsTheWholeArenaDoes) {
  const OptimOptions options{.name = "adam", .larc_eta = 0.001};
  Toy whole_toy, cut_toy;
  Arena whole(whole_toy), cut(cut_toy);
  const auto one = make_optimizer(options, whole);
  const int64_t middle = 1000;
  const auto lower = make_optimizer(options, cut, {0, middle});
  const auto upper = make_optimizer(options, cut, {middle, cut.size()});
  EXPECT_THROW(lower->step(cut, {.lr = 0.1}), c10::Error) << "without a sum";
  for (int step = 1; step <= 4; ++step) {
    whole_toy.fill_gradients(step);
    cut_toy.fill_gradients(step);
    // What both have to add, as two processes would: first each one's own, then the sum.
    std::vector<double> sum;
    const auto collect = [&](std::span<double> values) {
      sum.resize(values.size());
      for (size_t i = 0; i < values.size(); ++i) sum[i] += values[i];
      throw std::runtime_error("collected");
    };
    for (Optimizer* half : {lower.get(), upper.get()}) {
      EXPECT_THROW(half->step(cut, {.lr = 0.1, .number = step, .sum_over_ranks = collect}),
                   std::runtime_error);
    }
    const auto add = [&](std::span<double> values) {
      std::copy(sum.begin(), sum.end(), values.begin());
    };
    for (Optimizer* half : {lower.get(), upper.get()}) {
      half->step(cut, {.lr = 0.1, .number = step, .sum_over_ranks = add});
    }
    one->step(whole, {.lr = 0.1, .number = step});
    EXPECT_TRUE(torch::allclose(cut.params(), whole.params(), 1e-6, 1e-7)) << "step " << step;
  }
}

TEST(BoundedGradients, ATensorThatBeginsAtZeroKeepsItsGradient) {
  Toy toy;
  Arena arena(toy);
  arena.params().zero_();
  toy.fill_gradients(1);
  const auto before = arena.grads().clone();
  make_optimizer({.name = "adam", .larc_eta = 1e-6}, arena)->step(arena, {.lr = 0.1, .number = 1});
  EXPECT_TRUE(torch::equal(arena.grads(), before));
}

TEST(Adafactor, RefusesASlice) {
  Toy toy;
  const Arena arena(toy);
  EXPECT_THROW(make_optimizer({.name = "adafactor"}, arena, {0, 16}), Error);
}

TEST(Adafactor, StepsNothingWhereNothingIsOwnedAndHasStateOfTheSameSize) {
  Toy toy;
  Arena arena(toy);
  toy.fill_gradients(1);
  const auto before = arena.params().clone();
  const auto idle = make_optimizer({.name = "adafactor"}, arena, {0, 0});
  const auto whole = make_optimizer({.name = "adafactor"}, arena);
  idle->step(arena, {.lr = 0.1});
  EXPECT_TRUE(torch::equal(arena.params(), before));
  const auto state = idle->state(), expected = whole->state();
  ASSERT_EQ(state.size(), expected.size());
  for (size_t i = 0; i < state.size(); ++i) {
    EXPECT_EQ(state[i].name, expected[i].name);
    EXPECT_EQ(state[i].values.sizes(), expected[i].values.sizes());
  }
}

// --- save and restore --------------------------------------------------------------------------

TEST(Optimizer, ARestoredStateGoesOnWithTheSameBits) {
  for (const auto& name : kNames) {
    Toy first, second;
    Arena going_on(first), resumed(second);
    const auto optimizer = make_optimizer(options_of(name), going_on);
    const auto restored = make_optimizer(options_of(name), resumed);
    const auto step = [&](Toy& toy, Arena& arena, Optimizer& one, int number) {
      toy.fill_gradients(number);
      one.step(arena, {.lr = testing::rate_at(number), .number = number});
    };
    for (int number = 1; number <= 6; ++number) step(first, going_on, *optimizer, number);
    resumed.params().copy_(going_on.params());
    auto from = optimizer->state(), to = restored->state();
    ASSERT_EQ(from.size(), to.size()) << name;
    for (size_t i = 0; i < from.size(); ++i) {
      EXPECT_EQ(from[i].name, to[i].name);
      EXPECT_EQ(from[i].values.scalar_type(), torch::kFloat) << name;
      to[i].values.copy_(from[i].values);
    }
    for (int number = 7; number <= testing::kSteps; ++number) {
      step(first, going_on, *optimizer, number);
      step(second, resumed, *restored, number);
    }
    EXPECT_TRUE(torch::equal(going_on.params(), resumed.params())) << name;
  }
}

TEST(Optimizer, ThreadsDoNotChangeBits) {
  const int before = torch::get_num_threads();
  kernels::gemm::take_always(true);  // as dist.deterministic does
  for (const auto& name : kNames) {
    std::vector<torch::Tensor> results;
    for (const int threads : {1, 3}) {
      torch::set_num_threads(threads);
      Toy toy;
      Arena arena(toy);
      const auto optimizer = make_optimizer(options_of(name), arena);
      for (int step = 1; step <= 4; ++step) {
        toy.fill_gradients(step);
        optimizer->step(arena, {.lr = testing::rate_at(step), .number = step});
      }
      results.push_back(arena.params().clone());
    }
    EXPECT_TRUE(torch::equal(results[0], results[1])) << name;
  }
  kernels::gemm::take_always(false);
  torch::set_num_threads(before);
}

TEST(Optimizer, TwelveStepsOnCudaEqualThoseOnACpu) {
  if (!kernels::cuda::available()) GTEST_SKIP() << "no GPU, or a build without CUDA";
  for (const auto& name : kNames) {
    Toy here, there;
    there.to(torch::kCUDA);
    Arena arena(here), on_gpu(there);
    const auto optimizer = make_optimizer(options_of(name), arena);
    const auto other = make_optimizer(options_of(name), on_gpu);
    for (int number = 1; number <= testing::kSteps; ++number) {
      here.fill_gradients(number);
      on_gpu.grads().copy_(arena.grads());
      const UpdateStep update{
          .lr = testing::rate_at(number), .grad_scale = testing::kGradScale, .number = number};
      optimizer->step(arena, update);
      other->step(on_gpu, update);
      ASSERT_TRUE(torch::allclose(on_gpu.params().cpu(), arena.params(), 1e-4, 1e-5))
          << name << ", step " << number;
      ASSERT_EQ(testing::sum_of_gaps(on_gpu, on_gpu.params()), 0) << name << ", step " << number;
    }
  }
}

// --- what is special ---------------------------------------------------------------------------

/// y = x * gamma with gamma zero at first, as the last normalisation of a residual block has it.
TEST(Optimizer, TensorsThatBeginAtZeroLearnWithLayerWiseRates) {
  for (const std::string name : {"lars", "larc", "lamb"}) {
    for (const std::string mode : {"clip", "scale"}) {
      for (const bool matrix : {false, true}) {
        struct ZeroGamma : torch::nn::Module {
          torch::Tensor gamma;
        } model;
        const auto x = torch::linspace(-1, 1, 12).view({3, 4});
        const auto target = x * 2;
        model.gamma = model.register_parameter(
            "gamma", torch::zeros(matrix ? torch::IntArrayRef{1, 4} : torch::IntArrayRef{4}));
        Arena arena(model);
        const auto optimizer = make_optimizer({.name = name, .larc_mode = mode}, arena);
        const auto loss = [&] { return (x * model.gamma - target).square().mean(); };
        const double first = loss().item<double>();
        for (int step = 1; step <= 60; ++step) {
          arena.zero_grads();
          loss().backward();
          optimizer->step(arena, {.lr = 0.02, .number = step});
        }
        // A matrix leaves zero in the first step and then moves in proportion to its norm.
        EXPECT_LT(loss().item<double>(), first * (matrix ? 0.99 : 0.5))
            << name << ", " << mode << ", " << (matrix ? "matrix" : "vector");
      }
    }
  }
}

// Decay alone: the ratio is 1, whatever |p| is, as torch.optim.SGD would decay.
TEST(Larc, TheRatioOfATensorWithoutGradientIsOne) {
  for (const std::string mode : {"clip", "scale"}) {
    Toy toy;
    Arena arena(toy);
    const auto before = arena.params().clone();
    const auto optimizer = make_optimizer({.name = "larc",
                                           .weight_decay = 0.1,
                                           .momentum = 0,
                                           .trust_coefficient = 0.001,
                                           .larc_mode = mode},
                                          arena);
    optimizer->step(arena, {.lr = 0.5, .number = 1});
    for (const auto& slot : arena.slots()) {
      const double kept = slot.shape.size() > 1 ? 1 - 0.5 * 0.1 : 1;
      EXPECT_TRUE(torch::allclose(Arena::view(arena.params(), slot),
                                  Arena::view(before, slot) * kept, 1e-6, 1e-7))
          << mode << ", " << slot.name;
    }
  }
}

TEST(Novograd, ATensorWithoutGradientStays) {
  Toy toy;
  Arena arena(toy);
  const auto before = arena.params().clone();
  const auto optimizer = make_optimizer({.name = "novograd"}, arena);
  optimizer->step(arena, {.lr = 0.1, .number = 1});
  EXPECT_TRUE(torch::equal(arena.params(), before));
}

TEST(Optimizer, AnUnknownNameListsTheKnownOnes) {
  Toy toy;
  const Arena arena(toy);
  try {
    make_optimizer({.name = "adamm"}, arena);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_NE(error.message().find("adam, adamw, radam"), std::string::npos) << error.message();
  }
}

TEST(Optimizer, EveryNameOfTheOptionsIsKnown) {
  Toy toy;
  const Arena arena(toy);
  OptimOptions options;
  const auto names = config::schema_of(options).find("name")->range.choices;
  for (const auto& name : names) {
    EXPECT_NO_THROW(make_optimizer({.name = name}, arena)) << name;
  }
  EXPECT_EQ(names, kNames);
}

TEST(Clipping, BringsANormDownAndNeverUp) {
  EXPECT_DOUBLE_EQ(clip_factor(0.5, 1.0), 1.0);
  EXPECT_NEAR(clip_factor(4.0, 1.0), 0.25, 1e-6);
  EXPECT_DOUBLE_EQ(clip_factor(4.0, 0.0), 1.0);
}

}  // namespace
}  // namespace stretto::optim
