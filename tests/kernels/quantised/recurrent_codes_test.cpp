#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "kernels/quantised/quantised.h"
#include "kernels/quantised/reference.h"
#include "kernels/recurrent/recurrent.h"
#include "kernels/recurrent/step.h"
#include "tests/kernels/gradcheck.h"
#include "tests/kernels/recurrent/recurrent_cases.h"

namespace stretto::kernels {
namespace {

using testing::noise;

constexpr int64_t kUnits = 40;

/// Codes and what a layer is given in their place.
struct HiddenCodes {
  QuantisedWeights weights;
  at::Tensor stand;

  explicit HiddenCodes(Cell cell, int bits = 8) {
    const int64_t outputs = gates_of(cell) * kUnits;
    const double highest = (1 << (bits - 1)) - 1;
    weights.bits = bits;
    weights.codes =
        (noise({outputs, kUnits}, 3) * highest / 3).round().clamp(-highest, highest).to(at::kChar);
    weights.scales = at::full({outputs, 1}, 0.5 / highest, at::kFloat);
    stand = stand_in(std::make_shared<const QuantisedMatrix>(weights));
  }
  RecurrentWeights given(bool as_codes) const {
    return {.hidden = as_codes ? stand : reference::dense(weights)};
  }
};

Recurrent layer_of(Cell cell, const std::vector<int>& bounds) {
  return {.cell = {.cell = cell}, .offsets = cases::lengths(bounds)};
}

// Gates are i, f, g, o.
TEST(RecurrentCodes, RoundHOfEachStep) {
  const at::NoGradGuard no_grad;
  const HiddenCodes codes(Cell::kLstm);
  const at::Tensor x = noise({6, 4 * kUnits}, 5);
  const at::Tensor got = recurrent(x, codes.given(true), {}, layer_of(Cell::kLstm, {0, 6})).h;
  at::Tensor h = at::zeros({1, kUnits}), c = at::zeros({1, kUnits});
  for (int64_t t = 0; t < 6; ++t) {
    const auto gates =
        (x.narrow(0, t, 1) + reference::quantised_linear(h, codes.weights)).chunk(4, 1);
    c = gates[1].sigmoid() * c + gates[0].sigmoid() * gates[2].tanh();
    h = gates[3].sigmoid() * c.tanh();
    EXPECT_TRUE(at::allclose(got.narrow(0, t, 1), h, 1e-3, 1e-3)) << "step " << t;
  }
}

TEST(RecurrentCodes, AreNearTheLayerOfTheirNumbers) {
  const at::NoGradGuard no_grad;
  for (const Cell cell : {Cell::kLstm, Cell::kGru})
    for (const int bits : {8, 4}) {
      const HiddenCodes codes(cell, bits);
      const at::Tensor x = noise({30, gates_of(cell) * kUnits}, 5);
      const Recurrent options = layer_of(cell, {0, 12, 13, 13, 30});
      const at::Tensor got = recurrent(x, codes.given(true), {}, options).h;
      const at::Tensor want = recurrent(x, codes.given(false), {}, options).h;
      EXPECT_LT((got - want).norm().item<double>(), 0.03 * want.norm().item<double>())
          << cases::name_of(cell) << ", " << bits << " bits";
      EXPECT_FALSE(at::equal(got, want)) << "nothing was rounded";
    }
}

TEST(RecurrentCodes, HaveTheSameBitsForAnyThreadsAndInSteps) {
  const at::NoGradGuard no_grad;
  const HiddenCodes codes(Cell::kLstm);
  const at::Tensor x = noise({26, 4 * kUnits}, 5);
  const Recurrent options = layer_of(Cell::kLstm, {0, 10, 13, 13, 26});
  at::Tensor alone;
  {
    const cases::Team team(1);
    alone = recurrent(x, codes.given(true), {}, options).h;
  }
  for (const int bundles : {0, 1, 2}) {
    const cases::Team team(2, bundles);
    EXPECT_TRUE(at::equal(recurrent(x, codes.given(true), {}, options).h, alone)) << bundles;
  }
  const RecurrentStep step(codes.given(true), options.cell);
  RecurrentState state;
  for (int64_t t = 0; t < 10; ++t) {
    state = step(x.narrow(0, t, 1), state);
    EXPECT_TRUE(at::equal(state.h, alone.narrow(0, t, 1))) << "step " << t;
  }
}

/// A matrix rounded to codes of 8 bits, as a stand-in and as numbers.
struct RoundedMatrix {
  at::Tensor stand, numbers;

  explicit RoundedMatrix(const at::Tensor& weight) {
    const at::Tensor scales = weight.abs().amax(1, /*keepdim=*/true) / 127;
    QuantisedWeights weights;
    weights.codes = (weight / scales).round().to(at::kChar);
    weights.scales = scales;
    stand = stand_in(std::make_shared<const QuantisedMatrix>(weights));
    numbers = reference::dense(weights);
  }
};

TEST(RecurrentCodes, AttendInStepsNearTheNumbers) {
  const at::NoGradGuard no_grad;
  const cases::Small small;
  const RoundedMatrix hidden(small.weights.recurrent.hidden), context(small.weights.context),
      query(small.weights.query);
  AttentiveWeights codes = small.weights, numbers = small.weights;
  codes.recurrent.hidden = hidden.stand;
  codes.context = context.stand;
  codes.query = query.stand;
  numbers.recurrent.hidden = hidden.numbers;
  numbers.context = context.numbers;
  numbers.query = query.numbers;
  const CellOptions& cell = small.options.recurrent.cell;
  const AttentiveStep step(codes, cell, Score::kAdditive), plain(numbers, cell, Score::kAdditive);
  const Offsets lanes = cases::lengths({0, 1, 2});
  AttentiveState got, want;
  for (int64_t t = 0; t < 3; ++t) {
    const at::Tensor x = noise({2, 4 * small.width}, 40 + static_cast<uint64_t>(t));
    got = step(x, got, step.prepare(small.memory), lanes).state;
    want = plain(x, want, plain.prepare(small.memory), lanes).state;
    EXPECT_LT((got.h - want.h).norm().item<double>(), 0.05 * want.h.norm().item<double>());
    EXPECT_LT((got.context - want.context).norm().item<double>(),
              0.05 * want.context.norm().item<double>());
  }
  EXPECT_FALSE(at::equal(got.h, want.h)) << "nothing was rounded";
}

TEST(RecurrentCodes, AreNumbersWhereAGradientIsWanted) {
  const HiddenCodes codes(Cell::kLstm);
  const Recurrent options = layer_of(Cell::kLstm, {0, 6});
  const at::Tensor x = noise({6, 4 * kUnits}, 5).requires_grad_(true);
  const at::Tensor h = recurrent(x, codes.given(true), {}, options).h;
  EXPECT_TRUE(at::equal(h, recurrent(x, codes.given(false), {}, options).h));
  h.sum().backward();
  EXPECT_TRUE(x.grad().isfinite().all().item<bool>());
  const at::Tensor wide = x.detach().to(at::kDouble);
  EXPECT_TRUE(at::allclose(recurrent(wide, codes.given(true), {}, options).h.to(at::kFloat),
                           h.detach(), 1e-4, 1e-5));
}

}  // namespace
}  // namespace stretto::kernels
