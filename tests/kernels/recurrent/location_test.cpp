#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <vector>

#include "kernels/cpu/table.h"
#include "kernels/recurrent/attentive.h"
#include "kernels/recurrent/step.h"
#include "tests/kernels/recurrent/recurrent_cases.h"

/// Location-sensitive attention: AttentiveWeights::location.
namespace stretto::kernels {
namespace {

using cases::Extra;
using cases::Widths;
using testing::Inputs;
using testing::noise;

/// h, contexts and attention weights of an LSTM that sees where it attended before.
cases::Case located_case(const Widths& widths, int64_t kernel, const std::vector<int>& bounds,
                         const std::vector<int>& memory, Extra extra = Extra::kNone) {
  const Attentive options{.recurrent = cases::layer(Cell::kLstm, bounds, false, extra),
                          .score = Score::kAdditive,
                          .wants_weights = true,
                          .weights_learn = true};
  Inputs inputs{noise({bounds.back(), 4 * widths.hidden}),
                noise({4 * widths.hidden, widths.values}, 31) * 0.3,
                noise({memory.back(), widths.keys}, 32) * 0.3,
                noise({memory.back(), widths.values}, 33),
                noise({widths.keys, widths.hidden}, 35) * 0.3,
                noise({widths.keys}, 37),
                noise({widths.keys, 2 * kernel}, 38) / std::sqrt(4.0 * static_cast<double>(kernel)),
                noise({4 * widths.hidden, widths.hidden}, 39) * 0.3};
  return cases::make(
      "located width " + std::to_string(widths.hidden),
      [=](const auto& in, auto plain) {
        const AttentiveWeights weights{.recurrent = {.hidden = in[7]},
                                       .context = in[1],
                                       .query = in[4],
                                       .score = in[5],
                                       .location = in[6]};
        const Memory seen{in[2], in[3], cases::lengths(memory)};
        const AttentiveOutput out = plain ? reference::attentive(in[0], weights, seen, {}, options)
                                          : attentive(in[0], weights, seen, {}, options);
        return at::cat({out.h.flatten(), out.context.flatten(), out.weights});
      },
      inputs);
}

cases::Case small_case() {
  return located_case({3, 4, 2}, 3, {0, 1, 1, 4, 6}, {0, 2, 3, 6, 6});
}

std::vector<cases::Case> large_cases() {
  const std::vector<int> bounds{0, 3, 3, 4, 27, 31, 36, 40, 47, 49, 60};
  const std::vector<int> memory{0, 4, 9, 10, 30, 30, 31, 40, 41, 50, 52};
  std::vector<cases::Case> all{located_case({40, 51, 70}, 31, bounds, memory),
                               located_case({40, 48, 33}, 1, bounds, memory, Extra::kAll),
                               located_case({24, 128, 16}, 5, {0, 20}, {0, 3})};
  // Filters of 31 taps: each gradient is a sum over all steps and places, of numbers up to ten.
  for (cases::Case& one : all) one.precision.absolute_of_gradients = 1e-3;
  return all;
}

TEST(Location, ValuesAndGradientsAreThoseOfThePlainFormInDouble) {
  for (const cpu::Table* level : cpu::levels())
    for (const int64_t bundles : {1, 2})
      for (const cases::Case& one : large_cases()) {
        SCOPED_TRACE(one.name + " at " + level->name);
        const cpu::LevelGuard guard(*level);
        const cases::Team team(2, bundles);
        testing::expect_equal(one.run, one.reference, one.inputs, one.precision);
      }
}

TEST(Location, GradientsOfThePlainFormAreThoseOfFiniteDifferences) {
  const cases::Case one = small_case();
  testing::expect_gradients(one.reference, one.inputs);
  testing::expect_gradients(one.run, one.inputs);  // the public form in double
}

/// The keys of one sequence at one step, row by row and tap by tap.
at::Tensor keys_seen(const at::Tensor& keys, const at::Tensor& location, const at::Tensor& last,
                     const at::Tensor& sum) {
  const int64_t kernel = location.size(1) / 2, count = keys.size(0);
  at::Tensor out = keys.clone();
  for (int64_t s = 0; s < count; ++s)
    for (int64_t k = 0; k < kernel; ++k) {
      const int64_t place = s + k - kernel / 2;
      if (place < 0 || place >= count) continue;
      out[s] += location.select(1, k) * last[place] + location.select(1, kernel + k) * sum[place];
    }
  return out;
}

TEST(Location, WeightsAreThoseOfTheFormulaWrittenOut) {
  const int64_t width = 4, steps = 5, count = 7;
  const auto wide = [](at::IntArrayRef shape, uint64_t seed) {
    return noise(shape, seed).to(at::kDouble);
  };
  const at::Tensor x = wide({steps, 4 * width}, 1), hidden = wide({4 * width, width}, 2) * 0.4;
  const at::Tensor fed = wide({4 * width, 3}, 3) * 0.4, query = wide({6, width}, 4);
  const at::Tensor v = wide({6}, 5), location = wide({6, 10}, 6);
  const at::Tensor keys = wide({count, 6}, 7), values = wide({count, 3}, 8);
  const AttentiveOutput got = attentive(x,
                                        {.recurrent = {.hidden = hidden},
                                         .context = fed,
                                         .query = query,
                                         .score = v,
                                         .location = location},
                                        {keys, values, cases::lengths({0, count})}, {},
                                        {.recurrent = {.offsets = cases::lengths({0, steps})},
                                         .score = Score::kAdditive,
                                         .wants_weights = true});
  const auto zeros = [](int64_t size) { return at::zeros({size}, at::kDouble); };
  at::Tensor h = zeros(width), c = zeros(width), context = zeros(3);
  at::Tensor last = zeros(count), sum = zeros(count);
  for (int64_t step = 0; step < steps; ++step) {
    const auto gates = (x[step] + at::mv(hidden, h) + at::mv(fed, context)).chunk(4);
    c = at::sigmoid(gates[1]) * c + at::sigmoid(gates[0]) * at::tanh(gates[2]);
    h = at::sigmoid(gates[3]) * at::tanh(c);
    const at::Tensor sums = at::tanh(keys_seen(keys, location, last, sum) + at::mv(query, h));
    last = at::softmax(at::mv(sums, v), 0);
    sum = sum + last;
    context = at::mv(values.t(), last);
    EXPECT_TRUE(at::allclose(got.weights.view({steps, count})[step], last, 1e-9, 1e-12)) << step;
    EXPECT_TRUE(at::allclose(got.context[step], context, 1e-9, 1e-12)) << step;
  }
}

TEST(Location, BitsDoNotDependOnThreads) {
  const cases::Case one = large_cases()[0];
  const auto results = [&](int threads, int64_t bundles) {
    const cases::Team team(threads, bundles);
    return cases::value_and_gradients(one);
  };
  const Inputs want = results(1, 1);
  for (const int threads : {2, 3})
    for (const int64_t bundles : {1, 2}) {
      const Inputs got = results(threads, bundles);
      for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(at::equal(got[i], want[i])) << i;
    }
}

TEST(Location, WithoutALossOfThemWeightsHaveNoGradient) {
  const cases::Small small;
  AttentiveWeights weights = small.weights;
  weights.location = noise({6, 6}, 9).requires_grad_(true);
  const AttentiveOutput out = attentive(small.x, weights, small.memory, {}, small.options);
  EXPECT_FALSE(out.weights.requires_grad());
  EXPECT_TRUE(out.h.requires_grad());
}

TEST(Location, RefusesWhatDoesNotFit) {
  cases::Small small;
  const auto run = [&] {
    return attentive(small.x, small.weights, small.memory, {}, small.options);
  };
  small.weights.location = noise({6, 6}, 9);
  EXPECT_NO_THROW(run());
  EXPECT_THROW(AttentiveStep(small.weights, {}, Score::kAdditive), c10::Error);
  small.weights.location = noise({6, 8}, 9);  // an even kernel
  EXPECT_THROW(run(), c10::Error);
  small.weights.location = noise({5, 6}, 9);
  EXPECT_THROW(run(), c10::Error);
  small.weights.location = noise({6, 6}, 9);
  small.weights.score = small.weights.query_bias = at::Tensor();
  small.options.score = Score::kDot;
  EXPECT_THROW(run(), c10::Error);
}

}  // namespace
}  // namespace stretto::kernels
