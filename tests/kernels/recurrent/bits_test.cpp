// Which bits recurrent layers give: for any number of threads, cut of the batch and way to call
// them, and in which arithmetic.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "kernels/compute.h"
#include "kernels/cpu/table.h"
#include "kernels/gemm/gemm.h"
#include "tests/kernels/recurrent/recurrent_cases.h"
#include "tests/kernels/scopes.h"

namespace stretto::kernels {
namespace {

using testing::Inputs;
using testing::noise;
using testing::PoisonedMemory;

/// The value, then the gradients.
Inputs recurrent_results(const cases::Case& one, bool keep_graph = false) {
  Inputs inputs;
  for (const at::Tensor& x : one.inputs)
    inputs.push_back(x.to(at::kFloat).clone().requires_grad_(true));
  const at::Tensor out = one.run(inputs);
  if (keep_graph) torch::autograd::grad({out}, inputs, {noise(out.sizes(), 3)}, true);
  Inputs all = torch::autograd::grad({out}, inputs, {noise(out.sizes(), 3)});
  all.insert(all.begin(), out.detach());
  return all;
}

void expect_same_results(const Inputs& got, const Inputs& want) {
  for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(at::equal(got[i], want[i])) << i;
}

TEST(Recurrent, ThreadsAndBundlesGiveTheSameBitsAtEveryLevel) {
  for (const cpu::Table* level : cpu::levels())
    for (const cases::Case& one : cases::large_recurrent()) {
      SCOPED_TRACE(one.name + " at level " + level->name);
      const cpu::LevelGuard guard(*level);
      const Inputs alone = [&] {
        const cases::Team team(1);
        return recurrent_results(one);
      }();
      for (const auto& [threads, bundles] :
           {std::pair{2, 0}, std::pair{2, 1}, std::pair{3, 3}, std::pair{5, 2}}) {
        SCOPED_TRACE(std::to_string(threads) + " threads, bundles " + std::to_string(bundles));
        const cases::Team team(threads, bundles);
        expect_same_results(recurrent_results(one), alone);
      }
    }
}

TEST(Recurrent, NoNumberIsReadBeforeItIsWritten) {
  for (const auto& all : {cases::small_recurrent(), cases::large_recurrent()})
    for (const cases::Case& one : all) {
      SCOPED_TRACE(one.name);
      const Inputs want = recurrent_results(one);
      const PoisonedMemory poisoned;
      ASSERT_TRUE(at::empty({1}).isnan().item<bool>());
      expect_same_results(recurrent_results(one), want);
    }
}

TEST(Recurrent, AGraphThatIsKeptCanBeRunTwice) {
  for (const cases::Case& one : cases::large_recurrent()) {
    SCOPED_TRACE(one.name);
    expect_same_results(recurrent_results(one, true), recurrent_results(one));
  }
}

TEST(Recurrent, GatesThatAreGivenAwayGiveTheSameBits) {
  for (const Cell cell : {Cell::kLstm, Cell::kGru, Cell::kNormLstm}) {
    const Inputs own = cases::cell_inputs(cell, 40, 2);
    const auto run = [&](bool overwrites) {
      Recurrent options = cases::layer(cell, {0, 3, 9}, false, cases::Extra::kNone);
      options.overwrites_gates = overwrites;
      const at::Tensor x = noise({9, gates_of(cell) * 40}).requires_grad_(true);
      const cases::CellInputs made = cases::cell_of(own, 0, cell);
      const at::Tensor h = recurrent(x * 1.5, made.weights, made.state, options).h;
      return Inputs{h.detach(), torch::autograd::grad({h}, {x}, {noise({9, 40}, 4)})[0]};
    };
    expect_same_results(run(true), run(false));
  }
}

TEST(Recurrent, SlopesThatLieWhereGatesLayCarryNoGraph) {
  Recurrent options = cases::layer(Cell::kLstm, {0, 4}, false, cases::Extra::kNone);
  options.overwrites_gates = true;
  const at::Tensor gates = noise({4, 32}).requires_grad_(true) * 1.5;
  const at::Tensor h = recurrent(gates, {.hidden = noise({32, 8}, 2)}, {}, options).h;
  const at::Tensor slope = torch::autograd::grad({h.sum()}, {gates})[0];
  EXPECT_EQ(slope.const_data_ptr(), gates.const_data_ptr());
  EXPECT_FALSE(slope.requires_grad());
}

TEST(Recurrent, WhoNeedsTheGatesThatWereGivenAwayIsTold) {
  Recurrent options = cases::layer(Cell::kLstm, {0, 4}, false, cases::Extra::kNone);
  options.overwrites_gates = true;
  const at::Tensor leaf = noise({4, 32}).requires_grad_(true), w = noise({32, 8}, 2);
  EXPECT_THROW(recurrent(leaf, {.hidden = w}, {}, options), c10::Error);
  const at::Tensor x = at::tanh(leaf);  // its backward reads its result
  const at::Tensor h = recurrent(x, {.hidden = w}, {}, options).h;
  EXPECT_THROW(torch::autograd::grad({h.sum()}, {leaf}), c10::Error);
}

TEST(Recurrent, WithoutGradientsTheValueIsTheSame) {
  for (const cases::Case& one : cases::large_recurrent()) {
    SCOPED_TRACE(one.name);
    Inputs inputs;
    for (const at::Tensor& x : one.inputs) inputs.push_back(x.to(at::kFloat));
    const at::Tensor want = recurrent_results(one)[0];
    const at::NoGradGuard no_grad;
    EXPECT_TRUE(at::equal(one.run(inputs), want));
  }
}

TEST(Recurrent, ABatchCutInTwoGivesTheSameRows) {
  const std::vector<int> bounds{0, 3, 10, 11, 30, 34};
  constexpr int kCut = 11;
  const int64_t width = 40, batch = 5, first = 3;
  for (const Cell cell : {Cell::kLstm, Cell::kGru, Cell::kNormLstm}) {
    SCOPED_TRACE(cases::name_of(cell));
    const Inputs own = cases::cell_inputs(cell, width, batch);
    const at::Tensor x = noise({34, gates_of(cell) * width}), slope = noise({34, width}, 9);
    const auto run = [&](int begin, int end, int64_t from, int64_t to) {
      std::vector<int> part;
      for (const int bound : bounds)
        if (bound >= begin && bound <= end) part.push_back(bound - begin);
      Recurrent options = cases::layer(cell, bounds, false, cases::Extra::kAll);
      options.offsets = cases::lengths(part);
      for (Dropout* drop : {&options.cell.zoneout.hidden, &options.cell.zoneout.cell})
        if (drop->active()) drop->row_keys = drop->row_keys.slice(0, begin, end);
      options.recurrent_dropout.row_keys = options.recurrent_dropout.row_keys.slice(0, from, to);
      cases::CellInputs cell_inputs = cases::cell_of(own, 0, cell);
      cell_inputs.state.h = cell_inputs.state.h.slice(0, from, to);
      if (cell != Cell::kGru) cell_inputs.state.c = cell_inputs.state.c.slice(0, from, to);
      const at::Tensor gates = x.slice(0, begin, end).clone().requires_grad_(true);
      const at::Tensor h = recurrent(gates, cell_inputs.weights, cell_inputs.state, options).h;
      return at::cat({h, torch::autograd::grad({h}, {gates}, {slope.slice(0, begin, end)})[0]}, 1)
          .detach();
    };
    EXPECT_TRUE(at::equal(run(0, 34, 0, batch),
                          at::cat({run(0, kCut, 0, first), run(kCut, 34, first, batch)})));
  }
}

double recurrent_distance(const at::Tensor& got, const at::Tensor& want) {
  return ((got - want).norm() / (want.norm() + 1e-30)).item<double>();
}

TEST(Recurrent, HalfPrecisionRoundsWhatTheReferenceRounds) {
  gemm::take_always(true);
  const std::vector<int> bounds{0, 3, 4, 27, 31};
  for (const cpu::Table* level : {cpu::levels().front(), cpu::levels().back()})
    for (const Compute compute : {Compute::kBf16, Compute::kFp16})
      for (const Cell cell : {Cell::kLstm, Cell::kGru, Cell::kNormLstm}) {
        const cases::Case one =
            cases::recurrent_case(cell, 40, bounds, false, cases::Extra::kRecurrentDropout);
        SCOPED_TRACE(one.name + " at " + level->name);
        const cpu::LevelGuard guard(*level);
        cases::Case plain = one;
        plain.run = one.reference;
        const Inputs fp32 = recurrent_results(one);
        const ComputeScope scope(compute);
        const Inputs got = recurrent_results(one), want = recurrent_results(plain);
        // The two part only where a number lies next to the middle of two rounded values.
        const double unit = compute == Compute::kBf16 ? 8e-3 : 1e-3;
        for (size_t i = 0; i < got.size(); ++i)
          EXPECT_LT(recurrent_distance(got[i], want[i]), unit) << i;
        EXPECT_GT(recurrent_distance(got[0], fp32[0]), unit / 100);
        EXPECT_LT(recurrent_distance(got[0], want[0]), 0.5 * recurrent_distance(got[0], fp32[0]));
      }
  gemm::take_always(false);
}

TEST(Recurrent, BackwardUsesTheArithmeticThatWasRecorded) {
  const cases::Case one =
      cases::recurrent_case(Cell::kLstm, 40, {0, 3, 9}, false, cases::Extra::kNone);
  const auto results = [&](Compute forward, Compute backward) {
    Inputs inputs;
    for (const at::Tensor& x : one.inputs)
      inputs.push_back(x.to(at::kFloat).clone().requires_grad_(true));
    const at::Tensor out = [&] {
      const ComputeScope scope(forward);
      return one.run(inputs);
    }();
    const ComputeScope scope(backward);
    return torch::autograd::grad({out}, inputs, {noise(out.sizes(), 3)});
  };
  expect_same_results(results(Compute::kBf16, Compute::kFp32),
                      results(Compute::kBf16, Compute::kBf16));
  EXPECT_FALSE(at::equal(results(Compute::kFp32, Compute::kBf16)[0],
                         results(Compute::kBf16, Compute::kBf16)[0]));
}

}  // namespace
}  // namespace stretto::kernels
