#include "kernels/recurrent/attentive.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>
#include <vector>

#include "kernels/compute.h"
#include "kernels/cpu/table.h"
#include "tests/kernels/recurrent/recurrent_cases.h"

namespace stretto::kernels {
namespace {

using cases::Small;
using testing::expect_equal;
using testing::Inputs;
using testing::noise;

TEST(Attentive, WithoutAContextsWeightItsRowsAreThoseOfTheRecurrentLayer) {
  Small small;
  small.weights.context.zero_();
  const AttentiveOutput got = attentive(small.x, small.weights, small.memory, {}, small.options);
  const RecurrentOutput want =
      recurrent(small.x, small.weights.recurrent, {}, small.options.recurrent);
  EXPECT_TRUE(at::equal(got.h, want.h));
}

TEST(Attentive, WeightsAreOneBlockForEachSequenceAndMakeTheContext) {
  const Small small;
  for (const bool gradients : {true, false}) {
    const at::AutoGradMode mode(gradients);
    const AttentiveOutput out = attentive(small.x, small.weights, small.memory, {}, small.options);
    ASSERT_EQ(out.weights.numel(), 3 * 4 + 2 * 1);
    EXPECT_FALSE(out.weights.requires_grad());
    const at::Tensor block = out.weights.slice(0, 0, 12).view({3, 4});
    EXPECT_TRUE(at::allclose(block.sum(1), at::ones({3})));
    EXPECT_TRUE(at::allclose(out.weights.slice(0, 12), at::ones({2})));
    EXPECT_TRUE(at::allclose(out.context.slice(0, 0, 3),
                             at::mm(block, small.memory.values.slice(0, 0, 4)), 1e-5, 1e-6));
  }
}

TEST(Attentive, WeightsEqualTheReferences) {
  const Small small;
  const AttentiveOutput got = attentive(small.x, small.weights, small.memory, {}, small.options);
  const AttentiveOutput want =
      reference::attentive(small.x, small.weights, small.memory, {}, small.options);
  EXPECT_TRUE(at::allclose(got.weights, want.weights, 1e-4, 1e-6));
}

TEST(Attentive, KeysAndQueriesTooLargeForPowersAreScoredFromTheirSums) {
  for (const double shift : {25.0, 60.0, 200.0}) {
    SCOPED_TRACE(shift);
    const Small small;
    // Large and opposite, so that sums are moderate; one column of the second sequence only.
    at::Tensor keys = small.memory.keys.clone();
    keys.slice(0, 4).slice(1, 0, 1).add_(shift);
    keys.slice(0, 0, 4).add_(-shift);
    const at::Tensor bias = small.weights.query_bias + shift;
    const Inputs inputs{small.x, small.weights.query, bias, small.weights.score,
                        keys,    small.memory.values};
    const auto run = [&](const auto& call) {
      return [&, call](const Inputs& in) {
        AttentiveWeights weights = small.weights;
        const at::ScalarType type = in[0].scalar_type();
        weights.recurrent.hidden = weights.recurrent.hidden.to(type);
        weights.context = weights.context.to(type);
        weights.query = in[1];
        weights.query_bias = in[2];
        weights.score = in[3];
        const AttentiveOutput out =
            call(in[0], weights, {in[4], in[5], small.memory.offsets}, small.options);
        return at::cat({out.h.flatten(), out.context.flatten()});
      };
    };
    testing::Precision precision;
    precision.absolute = precision.absolute_of_gradients = 2e-4;  // of shifts that fp32 rounds
    expect_equal(run([](const auto& x, const auto& w, const Memory& m, const auto& o) {
                   return attentive(x, w, m, {}, o);
                 }),
                 run([](const auto& x, const auto& w, const Memory& m, const auto& o) {
                   return reference::attentive(x, w, m, {}, o);
                 }),
                 inputs, precision);
  }
}

TEST(Attentive, OneSequencesLargeKeysLeaveTheOthersBits) {
  const Small small;
  const auto first = [&](double shift) {
    Memory memory = small.memory;
    memory.keys = memory.keys.clone();
    memory.keys.slice(0, 4).add_(shift);
    return attentive(small.x, small.weights, memory, {}, small.options).context.slice(0, 0, 3);
  };
  EXPECT_TRUE(at::equal(first(0), first(50)));
}

TEST(Attentive, ABatchCutInTwoGivesTheSameRows) {
  const Small small;
  const AttentiveOutput whole = attentive(small.x, small.weights, small.memory, {}, small.options);
  Attentive options = small.options;
  options.recurrent.offsets = cases::lengths({0, 2});
  const AttentiveOutput part = attentive(
      small.x.slice(0, 3), small.weights,
      {small.memory.keys.slice(0, 4), small.memory.values.slice(0, 4), cases::lengths({0, 1})}, {},
      options);
  EXPECT_TRUE(at::equal(whole.h.slice(0, 3), part.h));
  EXPECT_TRUE(at::equal(whole.context.slice(0, 3), part.context));
}

TEST(Attentive, GradientsInHalfPrecisionStayCloseToThoseOfFp32) {
  for (const cpu::Table* level : cpu::levels())
    for (const Compute compute : {Compute::kBf16, Compute::kFp16})
      for (const cases::Case& one :
           cases::attentive_cases({40, 51, 70}, {0, 3, 4, 27, 31}, {0, 4, 9, 10, 30})) {
        SCOPED_TRACE(one.name + " at " + level->name);
        const cpu::LevelGuard guard(*level);
        const auto results = [&](Compute arithmetic) {
          Inputs inputs;
          for (const at::Tensor& x : one.inputs)
            inputs.push_back(x.to(at::kFloat).clone().requires_grad_(true));
          const at::Tensor out = [&] {
            const ComputeScope scope(arithmetic);
            return one.run(inputs);
          }();
          Inputs all = torch::autograd::grad({out}, inputs, {noise(out.sizes(), 3)});
          all.push_back(out.detach());
          return all;
        };
        const Inputs got = results(compute), want = results(Compute::kFp32);
        const double near = compute == Compute::kBf16 ? 4e-2 : 5e-3;
        for (size_t i = 0; i < got.size(); ++i) {
          if (got[i].numel() == 1) continue;  // the gain's gradient: terms that cancel
          EXPECT_LT(((got[i] - want[i]).norm() / want[i].norm()).item<double>(), near) << i;
        }
        EXPECT_FALSE(at::equal(got.back(), want.back()));
      }
}

TEST(Attentive, WhatIsNotANumberStaysInItsSequenceAndIsNotLost) {
  for (const cpu::Table* level : cpu::levels())
    for (const Score score : {Score::kAdditive, Score::kDot}) {
      SCOPED_TRACE(level->name);
      const cpu::LevelGuard guard(*level);
      Small small;
      small.options.score = score;
      if (score == Score::kDot) small.weights.score = small.weights.query_bias = at::Tensor();
      const at::Tensor good =
          attentive(small.x, small.weights, small.memory, {}, small.options).context;
      small.x = small.x.clone();
      small.x[3][0] = std::numeric_limits<float>::quiet_NaN();
      const AttentiveOutput out =
          attentive(small.x, small.weights, small.memory, {}, small.options);
      EXPECT_TRUE(at::equal(out.context.slice(0, 0, 3), good.slice(0, 0, 3)));
      EXPECT_TRUE(out.h.slice(0, 3).slice(1, 0, 1).isnan().all().item<bool>());
      EXPECT_TRUE(out.context.slice(0, 3).isnan().all().item<bool>());
    }
}

TEST(Attentive, RefusesWhatDoesNotFit) {
  Small small;
  const auto run = [&] {
    return attentive(small.x, small.weights, small.memory, {}, small.options);
  };
  EXPECT_NO_THROW(run());
  small.options.recurrent.reverse = true;
  EXPECT_THROW(run(), c10::Error);
  small = {};
  small.weights.score = at::Tensor();
  EXPECT_THROW(run(), c10::Error);
  small = {};
  small.weights.gain = at::ones({1});
  EXPECT_THROW(run(), c10::Error);
  small = {};
  small.weights.query = at::Tensor();
  small.weights.query_bias = at::Tensor();
  EXPECT_THROW(run(), c10::Error);
  small = {};
  small.memory.offsets = cases::lengths({0, 5});
  EXPECT_THROW(run(), c10::Error);
}

TEST(Attentive, WithoutAnyRowOrAnyMemoryThereIsNothingToAttendTo) {
  const Small small;
  for (const bool has_rows : {true, false}) {
    SCOPED_TRACE(has_rows ? "no memory" : "no rows");
    Attentive options = small.options;
    if (!has_rows) options.recurrent.offsets = cases::lengths({0, 0, 0});
    const int64_t rows = has_rows ? 5 : 0, seen = has_rows ? 0 : 5;
    const Inputs leaves{noise({rows, 32}).requires_grad_(true),
                        noise({seen, 6}, 7).requires_grad_(true),
                        noise({seen, 5}, 8).requires_grad_(true)};
    const Memory memory{leaves[1], leaves[2],
                        has_rows ? cases::lengths({0, 0, 0}) : small.memory.offsets};
    const AttentiveOutput out = attentive(leaves[0], small.weights, memory, {}, options);
    EXPECT_EQ(out.weights.numel(), 0);
    EXPECT_TRUE(at::equal(out.context, at::zeros({rows, 5})));
    const RecurrentOutput alone =
        recurrent(leaves[0], small.weights.recurrent, {}, options.recurrent);
    EXPECT_TRUE(at::equal(out.h, alone.h));
    const auto slopes = torch::autograd::grad({out.h.sum() + out.context.sum()}, leaves);
    EXPECT_TRUE(at::equal(slopes[0], torch::autograd::grad({alone.h.sum()}, {leaves[0]})[0]));
    EXPECT_TRUE(at::equal(slopes[1], at::zeros({seen, 6})));
    EXPECT_TRUE(at::equal(slopes[2], at::zeros({seen, 5})));
  }
}

}  // namespace
}  // namespace stretto::kernels
