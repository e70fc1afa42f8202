#include "kernels/recurrent/recurrent.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <numeric>

#include "kernels/cpu/table.h"
#include "tests/kernels/recurrent/recurrent_cases.h"

namespace stretto::kernels {
namespace {

using testing::expect_equal;
using testing::Inputs;
using testing::noise;

TEST(Recurrent, GradientsInDoubleEqualFiniteDifferences) {
  const cases::Team one_thread(1);
  for (const cases::Case& one : cases::small_recurrent()) {
    SCOPED_TRACE(one.name);
    testing::expect_gradients(one.run, one.inputs);
  }
}

TEST(Recurrent, EveryLevelOfThisMachineEqualsTheReference) {
  const cases::Team one_thread(1);
  for (const cpu::Table* level : cpu::levels()) {
    const cpu::LevelGuard guard(*level);
    for (const auto& all : {cases::small_recurrent(), cases::large_recurrent()})
      for (const cases::Case& one : all) {
        SCOPED_TRACE(one.name + " at level " + level->name);
        // Attention makes much of small differences: plain fp32 is as far from fp64.
        const bool steep = one.name.starts_with("attentive");
        expect_equal(
            one.run, one.reference, one.inputs,
            steep ? testing::Precision{at::kFloat, 1e-3, 1e-4, 1e-3} : testing::Precision{});
      }
  }
}

/// A batch in the order of torch's packed sequences, and the way there.
struct TorchPacked {
  at::Tensor order, batch_sizes, sorted;

  explicit TorchPacked(const std::vector<int>& bounds) {
    std::vector<int64_t> ranks(bounds.size() - 1), rows, sizes;
    std::iota(ranks.begin(), ranks.end(), 0);
    const auto length = [&](int64_t i) {
      return bounds[static_cast<size_t>(i) + 1] - bounds[static_cast<size_t>(i)];
    };
    std::stable_sort(ranks.begin(), ranks.end(),
                     [&](int64_t a, int64_t b) { return length(a) > length(b); });
    for (int step = 0; step < length(ranks[0]); ++step) {
      sizes.push_back(0);
      for (const int64_t i : ranks) {
        if (length(i) <= step) continue;
        rows.push_back(bounds[static_cast<size_t>(i)] + step);
        ++sizes.back();
      }
    }
    order = at::tensor(rows, at::kLong);
    batch_sizes = at::tensor(sizes, at::kLong);
    sorted = at::tensor(ranks, at::kLong);
  }
};

/// Value and gradients of torch's own layer with weights [G * H, I], [G * H, H], biases, x, h0, c0.
at::Tensor by_torch(Cell cell, const TorchPacked& packed, const Inputs& in) {
  const at::Tensor data = in[0].index_select(0, packed.order);
  const at::TensorList weights(in.data() + 1, 4);
  const at::Tensor h = in[5].index_select(0, packed.sorted).unsqueeze(0);
  at::Tensor rows, last_h, last_c;
  if (cell == Cell::kGru) {
    std::tie(rows, last_h) =
        at::gru(data, packed.batch_sizes, h, weights, true, 1, 0.0, true, false);
  } else {
    const at::Tensor c = in[6].index_select(0, packed.sorted).unsqueeze(0);
    std::tie(rows, last_h, last_c) =
        at::lstm(data, packed.batch_sizes, {h, c}, weights, true, 1, 0.0, true, false);
  }
  const auto back = [&](const at::Tensor& x) {
    return x.squeeze(0).index_select(0, at::argsort(packed.sorted)).flatten();
  };
  std::vector<at::Tensor> all{rows.index_select(0, at::argsort(packed.order)).flatten(),
                              back(last_h)};
  if (last_c.defined()) all.push_back(back(last_c));
  return at::cat(all);
}

TEST(Recurrent, EqualsTorchsOwnLayersOfPackedSequences) {
  const std::vector<int> bounds{0, 5, 6, 29, 41, 48};
  const int64_t width = 48, inputs = 20, batch = 5;
  for (const Cell cell : {Cell::kLstm, Cell::kGru}) {
    SCOPED_TRACE(cases::name_of(cell));
    const int64_t all = gates_of(cell) * width;
    Inputs in{noise({48, inputs}),     noise({all, inputs}, 2) * 0.2, noise({all, width}, 3) * 0.1,
              noise({all}, 4) * 0.1,   noise({all}, 5) * 0.1,         noise({batch, width}, 6),
              noise({batch, width}, 7)};
    if (cell == Cell::kGru) in.pop_back();
    const Recurrent options = cases::layer(cell, bounds, false, cases::Extra::kNone);
    expect_equal(
        [&](const Inputs& x) {
          const bool gru = cell == Cell::kGru;
          const at::Tensor gates = kernels::linear(x[0], x[1], gru ? x[3] : x[3] + x[4]);
          RecurrentWeights weights{.hidden = x[2]};
          if (gru) weights.hidden_bias = x[4];
          return cases::joined(
              recurrent(gates, weights, {x[5], gru ? at::Tensor() : x[6]}, options));
        },
        [&](const Inputs& x) { return by_torch(cell, TorchPacked(bounds), x); }, in);
  }
}

TEST(Recurrent, AReversedLayerIsTheLayerOfReversedSequences) {
  const std::vector<int> bounds{0, 3, 10, 11};
  const at::Tensor turn = at::tensor({2, 1, 0, 9, 8, 7, 6, 5, 4, 3, 10}, at::kLong);
  const Inputs own = cases::cell_inputs(Cell::kLstm, 8, 3);
  const cases::CellInputs cell = cases::cell_of(own, 0, Cell::kLstm);
  const at::Tensor x = noise({11, 32});
  const auto options = [&](bool reverse) {
    return cases::layer(Cell::kLstm, bounds, reverse, cases::Extra::kNone);
  };
  const RecurrentOutput there = recurrent(x, cell.weights, cell.state, options(true));
  const RecurrentOutput back =
      recurrent(x.index_select(0, turn), cell.weights, cell.state, options(false));
  EXPECT_TRUE(at::equal(there.h.index_select(0, turn), back.h));
  EXPECT_TRUE(at::equal(there.last.h, back.last.h));
  EXPECT_TRUE(at::equal(there.last.h[1], there.h[3]));
}

TEST(Recurrent, SequencesWithoutRowsKeepTheirInitialState) {
  const Inputs own = cases::cell_inputs(Cell::kLstm, 8, 3);
  const cases::CellInputs cell = cases::cell_of(own, 0, Cell::kLstm);
  const at::Tensor h = cell.state.h.clone().requires_grad_(true);
  for (const std::vector<int>& bounds :
       {std::vector<int>{0, 0, 2, 2}, std::vector<int>{0, 0, 0, 0}}) {
    const RecurrentOutput out =
        recurrent(noise({bounds.back(), 32}), cell.weights, {h, cell.state.c},
                  cases::layer(Cell::kLstm, bounds, false, cases::Extra::kNone));
    EXPECT_EQ(out.h.size(0), bounds.back());
    EXPECT_TRUE(at::equal(out.last.h[0], h[0]));
    EXPECT_TRUE(at::equal(out.last.c[2], cell.state.c[2]));
    const auto slope = torch::autograd::grad({out.last.h.sum()}, {h})[0];
    EXPECT_TRUE(at::equal(slope[0], at::ones({8})));
  }
}

TEST(Recurrent, ExtremeGatesStayFinite) {
  for (const Cell cell : {Cell::kLstm, Cell::kGru}) {
    const at::Tensor x = (noise({4, gates_of(cell) * 8}) * 1e4).requires_grad_(true);
    const at::Tensor w = noise({gates_of(cell) * 8, 8}, 2).requires_grad_(true);
    const at::Tensor h =
        recurrent(x, {.hidden = w}, {}, cases::layer(cell, {0, 4}, false, cases::Extra::kNone)).h;
    EXPECT_LE(h.abs().max().item<float>(), 4.0f);
    for (const at::Tensor& slope : torch::autograd::grad({h.sum()}, {x, w}))
      EXPECT_TRUE(at::isfinite(slope).all().item<bool>());
  }
}

TEST(Recurrent, ZoneoutKeepsTheStatedShareAndItsMeanIsTheExpectedForm) {
  const int64_t rows = 400, width = 64;
  std::vector<int> bounds(rows + 1);
  std::iota(bounds.begin(), bounds.end(), 0);  // one step from a known state
  const at::Tensor x = noise({1, 4 * width}).expand({rows, -1}).contiguous();
  const at::Tensor before = at::full({rows, width}, 7.0f);
  Recurrent options{.cell = {.cell = Cell::kLstm}, .offsets = cases::lengths(bounds)};
  options.cell.zoneout.hidden = cases::drawn(0.3, 5, rows);
  const auto run = [&](bool expected) {
    options.cell.zoneout.expected = expected;
    return recurrent(x, {.hidden = at::zeros({4 * width, width})}, {before, {}}, options).h;
  };
  const at::Tensor h = run(false);
  EXPECT_NEAR(h.eq(7).to(at::kDouble).mean().item<double>(), 0.3, 0.01);
  EXPECT_LT((h.mean(0) - run(true)[0]).abs().max().item<double>(), 0.7);
  EXPECT_NEAR((h.mean() - run(true).mean()).item<double>(), 0, 0.08);
}

TEST(Recurrent, RefusesWhatDoesNotFit) {
  const at::Tensor x = noise({4, 32}), w = noise({32, 8});
  const Recurrent good = cases::layer(Cell::kLstm, {0, 4}, false, cases::Extra::kNone);
  EXPECT_NO_THROW(recurrent(x, {.hidden = w}, {}, good));
  EXPECT_THROW(recurrent(x, {.hidden = noise({24, 8})}, {}, good), c10::Error);
  EXPECT_THROW(recurrent(noise({4, 24}), {.hidden = w}, {}, good), c10::Error);
  EXPECT_THROW(recurrent(x, {.hidden = w, .hidden_bias = noise({32})}, {}, good), c10::Error);
  EXPECT_THROW(recurrent(x, {.hidden = w}, {noise({2, 8}), {}}, good), c10::Error);
  Recurrent bad = good;
  bad.offsets = cases::lengths({0, 5});
  EXPECT_THROW(recurrent(x, {.hidden = w}, {}, bad), c10::Error);
  bad = good;
  bad.cell.cell = Cell::kNormLstm;
  EXPECT_THROW(recurrent(x, {.hidden = w}, {}, bad), c10::Error);
  bad = good;
  bad.cell.zoneout.hidden = {.p = 0.5};
  EXPECT_THROW(recurrent(x, {.hidden = w}, {}, bad), c10::Error);
}

}  // namespace
}  // namespace stretto::kernels
