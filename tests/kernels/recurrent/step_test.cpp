#include "kernels/recurrent/step.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

#include "kernels/compute.h"
#include "tests/kernels/recurrent/recurrent_cases.h"

namespace stretto::kernels {
namespace {

using cases::Small;
using testing::Inputs;
using testing::noise;

/// Rows of a step that stand for sequences with a row at `t`, those that do not repeat row 0.
at::Tensor rows_at(const at::Tensor& x, const std::vector<int>& bounds, int t) {
  std::vector<int64_t> rows;
  for (size_t i = 0; i + 1 < bounds.size(); ++i)
    rows.push_back(bounds[i] + std::min(t, bounds[i + 1] - bounds[i] - 1));
  return x.index_select(0, at::tensor(rows, at::kLong));
}

/// Bit for bit in fp32; libtorch's products, of fp64, differ with the number of rows.
void expect_same(const at::Tensor& got, const at::Tensor& want) {
  EXPECT_TRUE(got.scalar_type() == at::kFloat ? at::equal(got, want)
                                              : at::allclose(got, want, 1e-12, 1e-12));
}

const std::vector<at::ScalarType> kTypes{at::kFloat, at::kDouble};

TEST(RecurrentStep, StepsEqualTheLayer) {
  const std::vector<int> bounds{0, 3, 5, 9};
  for (const at::ScalarType type : kTypes)
    for (const Cell cell : {Cell::kLstm, Cell::kGru, Cell::kNormLstm})
      for (const Compute compute : {Compute::kFp32, Compute::kBf16}) {
        SCOPED_TRACE(cases::name_of(cell));
        Inputs in = cases::cell_inputs(cell, 40, 3);
        for (at::Tensor& x : in) x = x.to(type);
        const cases::CellInputs own = cases::cell_of(in, 0, cell);
        const at::Tensor x = noise({9, gates_of(cell) * 40}).to(type);
        const Recurrent options = cases::layer(cell, bounds, false, cases::Extra::kExpectedZoneout);
        const ComputeScope scope(compute);
        const RecurrentOutput want = recurrent(x, own.weights, own.state, options);
        const RecurrentStep step(own.weights, options.cell);
        RecurrentState state = own.state;
        for (int t = 0; t < 4; ++t) {
          const ComputeScope another(Compute::kFp16);  // a step has the arithmetic it was made in
          state = step(rows_at(x, bounds, t), state);
          for (int64_t i = 0; i < 3; ++i)
            if (bounds[static_cast<size_t>(i)] + t < bounds[static_cast<size_t>(i) + 1]) {
              expect_same(state.h[i], want.h[bounds[static_cast<size_t>(i)] + t]);
            }
        }
        if (state.c.defined()) expect_same(state.c[2], want.last.c[2]);
      }
}

TEST(AttentiveStep, StepsEqualTheLayer) {
  for (const at::ScalarType type : kTypes)
    for (const Score score :
         {Score::kAdditive, Score::kNormedAdditive, Score::kDot, Score::kScaledDot}) {
      Small small;
      if (score == Score::kDot || score == Score::kScaledDot)
        small.weights.score = small.weights.query_bias = at::Tensor();
      if (score == Score::kNormedAdditive || score == Score::kScaledDot)
        small.weights.gain = at::full({1}, 0.7);
      for (at::Tensor* x :
           {&small.weights.recurrent.hidden, &small.weights.context, &small.weights.query,
            &small.weights.query_bias, &small.weights.score, &small.weights.gain, &small.x,
            &small.memory.keys, &small.memory.values})
        if (x->defined()) *x = x->to(type);
      small.options.score = score;
      const AttentiveOutput want =
          attentive(small.x, small.weights, small.memory, {}, small.options);
      const AttentiveStep step(small.weights, small.options.recurrent.cell, score);
      const auto source = step.prepare(small.memory);
      AttentiveState state;
      for (int t = 0; t < 3; ++t) {
        const auto next =
            step(rows_at(small.x, {0, 3, 5}, t), state, source, cases::lengths({0, 1, 2}), true);
        state = next.state;
        EXPECT_TRUE(at::allclose(state.h[0], want.h[t], 1e-6, 1e-7));
        EXPECT_TRUE(at::allclose(state.context[0], want.context[t], 1e-6, 1e-7));
        ASSERT_EQ(next.weights.numel(), 5);
        EXPECT_TRUE(at::allclose(next.weights.slice(0, 0, 4),
                                 want.weights.slice(0, 4 * t, 4 * t + 4), 1e-6, 1e-7));
        if (t == 2) break;
        EXPECT_TRUE(at::allclose(state.h[1], want.h[3 + t], 1e-6, 1e-7));
      }
    }
}

TEST(AttentiveStep, LanesOfOneSourceShareItsMemory) {
  const Small small;
  const AttentiveStep step(small.weights, small.options.recurrent.cell, Score::kAdditive);
  const auto source = step.prepare(small.memory);
  const at::Tensor x = noise({4, 32}, 40);
  const AttentiveState before{noise({4, 8}, 41), noise({4, 8}, 42), noise({4, 5}, 43)};
  const auto together = step(x, before, source, cases::lengths({0, 3, 4}), true);
  EXPECT_EQ(together.weights.numel(), 3 * 4 + 1);
  const auto alone = step.prepare({small.memory.keys.slice(0, 0, 4),
                                   small.memory.values.slice(0, 0, 4), cases::lengths({0, 4})});
  for (int64_t lane = 0; lane < 3; ++lane) {
    const auto row = [&](const at::Tensor& all) { return all.slice(0, lane, lane + 1); };
    const auto one = step(row(x), {row(before.h), row(before.c), row(before.context)}, alone,
                          cases::lengths({0, 1}));
    EXPECT_TRUE(at::equal(one.state.h, row(together.state.h)));
    EXPECT_TRUE(at::equal(one.state.c, row(together.state.c)));
    EXPECT_TRUE(at::equal(one.state.context, row(together.state.context)));
  }
  EXPECT_THROW(step(x, before, source, cases::lengths({0, 2, 3})), c10::Error);
}

TEST(AttentiveStep, RefusesWhatDoesNotFit) {
  const Small small;
  const CellOptions& cell = small.options.recurrent.cell;
  AttentiveWeights bad = small.weights;
  bad.context = at::Tensor();
  EXPECT_THROW(AttentiveStep(bad, cell, Score::kAdditive), c10::Error);
  EXPECT_THROW(AttentiveStep(small.weights, cell, Score::kNormedAdditive), c10::Error);
  EXPECT_THROW(RecurrentStep({}, cell), c10::Error);
  const AttentiveStep step(small.weights, cell, Score::kAdditive);
  EXPECT_THROW(step.prepare({noise({5, 4}), noise({5, 5}), cases::lengths({0, 5})}), c10::Error);
  const auto run = [&](const AttentiveStep::Source& source, int64_t lanes) {
    step(noise({lanes, 32}), {}, source, cases::lengths({0, 1, 2}));
  };
  EXPECT_NO_THROW(run(step.prepare(small.memory), 2));
  EXPECT_THROW(run(step.prepare(small.memory), 3), c10::Error);
  EXPECT_THROW(run({}, 2), c10::Error);
}

}  // namespace
}  // namespace stretto::kernels
