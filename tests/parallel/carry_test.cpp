#include "parallel/carry.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/base/failure.h"
#include "tests/distributed/thread_group.h"

namespace stretto::parallel {
namespace {

using stretto::test::run_ranks;
using stretto::testing::failure;

/// Two numbers a lane, all 0, and a number that is its lane's.
std::vector<LaneState> first_state(int64_t lanes) {
  return {{.name = "h", .values = at::zeros({lanes, 2})},
          {.name = "n", .values = at::arange(lanes, at::kFloat)}};
}

Carry carry_of(int64_t lanes) {
  return {first_state(lanes), {}};
}

/// Both tensors of a proposal that sets these lanes to a number.
std::vector<at::Tensor> all_of(const Lanes& lanes, float value) {
  const auto rows = static_cast<int64_t>(lanes.size());
  return {at::full({rows, 2}, value), at::full({rows}, value)};
}

std::vector<float> numbers(const Carry& carry) {
  const at::Tensor n = carry.states().at(1).values.contiguous();
  return {n.const_data_ptr<float>(), n.const_data_ptr<float>() + n.numel()};
}

/// Bytes of a tensor: two zeros and two NaNs may differ.
std::string bytes_of(const at::Tensor& tensor) {
  const at::Tensor whole = tensor.contiguous();
  return {static_cast<const char*>(whole.const_data_ptr()), whole.nbytes()};
}

TEST(Carry, TakesOverWhatWasProposedWhenTheUpdateIsStepped) {
  struct Update {
    std::vector<Lanes> micro_batches;
    float value;
    bool is_stepped;
    std::vector<float> after;
  };
  const std::vector<Update> table{
      {{{0, 1}, {2}}, 10, true, {10, 10, 10, 3}},
      {{{0, 1}, {2}}, 20, false, {10, 10, 10, 3}},  // skipped
      {{{1}, {}}, 30, true, {10, 30, 10, 3}},       // the others have nothing to read
      {{{0}, {3, 2}}, 40, true, {40, 30, 40, 40}},
      {{}, 50, true, {40, 30, 40, 40}},
  };
  Carry carry = carry_of(4);
  for (const Update& update : table) {
    carry.begin(update.micro_batches);
    const auto before = numbers(carry);
    for (const Lanes& lanes : update.micro_batches) {
      carry.propose(lanes, all_of(lanes, update.value));
    }
    EXPECT_EQ(numbers(carry), before) << update.value;
    if (update.is_stepped) carry.commit();
    EXPECT_EQ(numbers(carry), update.after) << update.value;
  }
  EXPECT_TRUE(carry.states()[0].values[3].eq(40).all().item<bool>());
}

TEST(Carry, ProposalsOfASkippedUpdateAreGone) {
  Carry carry = carry_of(2);
  carry.begin({{0}});
  carry.propose({0}, all_of({0}, 10));
  carry.begin({{}, {1}});
  carry.propose({1}, all_of({1}, 20));
  carry.commit();
  EXPECT_EQ(numbers(carry), (std::vector<float>{0, 20}));
  carry.commit();  // there is nothing to take over
  EXPECT_EQ(numbers(carry), (std::vector<float>{0, 20}));
}

TEST(Carry, RowsAreCopiesInTheOrderOfTheLanes) {
  Carry carry = carry_of(4);
  auto rows = carry.rows({3, 0});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].sizes(), at::IntArrayRef({2, 2}));
  EXPECT_TRUE(at::equal(rows[1], at::tensor({3.0F, 0.0F})));
  rows[1].fill_(9);
  EXPECT_EQ(numbers(carry), (std::vector<float>{0, 1, 2, 3}));
}

TEST(Carry, TheFirstStateIsCopied) {
  auto first = first_state(2);
  const Carry carry(first, {});
  first[1].values.fill_(9);
  EXPECT_EQ(numbers(carry), (std::vector<float>{0, 1}));
}

TEST(Carry, GradientsEndAtTheEndOfAnUpdate) {
  Carry carry = carry_of(1);
  const at::Tensor weight = at::ones({1}).requires_grad_();
  carry.begin({{0}});
  carry.propose({0}, {weight * at::ones({1, 2}), weight * 2});
  carry.commit();
  for (const at::Tensor& rows : carry.rows({0})) EXPECT_FALSE(rows.requires_grad());
  EXPECT_EQ(numbers(carry), (std::vector<float>{2}));
}

TEST(Carry, HalfPrecisionIsKeptAsFp32) {
  Carry carry = carry_of(1);
  carry.begin({{0}});
  carry.propose({0}, {at::ones({1, 2}, at::kBFloat16), at::full({1}, 3, at::kHalf)});
  carry.commit();
  EXPECT_EQ(carry.states()[0].values.scalar_type(), at::kFloat);
  EXPECT_EQ(numbers(carry), (std::vector<float>{3}));
}

TEST(Carry, LanesInTheWrongPlaceAreRefused) {
  struct Row {
    std::vector<Lanes> before, now;
    std::string what;
  };
  const std::vector<Row> table{
      {{}, {{0, 4}}, "lane 4 does not exist: the state has 4 lanes"},
      {{}, {{-1}}, "lane -1 does not exist"},
      {{}, {{1, 2}, {3, 1}}, "lane 1 comes twice in one update"},
      {{}, {{2, 2}}, "lane 2 comes twice in one update"},
      {{{0}, {1}}, {{0}, {}, {1}}, "lane 1 comes in micro-batch 2 of an update, and came in"},
  };
  for (const Row& row : table) {
    Carry carry = carry_of(4);
    carry.begin(row.before);
    const Error error = failure(ExitCode::kUsage, [&] { carry.begin(row.now); });
    EXPECT_TRUE(error.message().starts_with(row.what)) << error.message();
    EXPECT_NE(error.advice().find("train.update_freq"), std::string::npos) << error.advice();
  }
}

TEST(Carry, TensorsOfAnotherShapeAreRefused) {
  Carry carry = carry_of(4);
  carry.begin({{0, 1}});
  const at::Tensor h = at::zeros({2, 2}), n = at::zeros({2});
  EXPECT_THROW(carry.propose({0, 1}, {h}), c10::Error);
  EXPECT_THROW(carry.propose({0, 1}, {}), c10::Error);
  EXPECT_THROW(carry.propose({0, 1}, {h, at::zeros({2, 1})}), c10::Error);
  EXPECT_THROW(carry.propose({0, 1}, {at::zeros({4, 2}), n}), c10::Error);
  carry.propose({0, 1}, {h, n});
  EXPECT_THROW(Carry({{.name = "h", .values = at::zeros({2}, at::kDouble)}}, {}), c10::Error);
  EXPECT_THROW(Carry({{.name = "h", .values = at::zeros({})}}, {}), c10::Error);
  EXPECT_THROW(Carry({{.name = "h", .values = at::zeros({0, 2})}}, {}), c10::Error);
  EXPECT_THROW(Carry({{.name = "h", .values = h}, {.name = "n", .values = at::zeros({3})}}, {}),
               c10::Error);
}

TEST(Carry, IsEmptyWithoutTensors) {
  Carry none({}, {});
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.num_lanes(), 0);
  EXPECT_TRUE(none.rows({}).empty());
  none.commit();
  none.gather();
}

TEST(Carry, EachRankHasItsOwnLanesAndGatherBringsAllOfThem) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  // Lane 6 comes in no update. A sum would lose the sign of -0 and the bits of a NaN.
  const std::vector<Lanes> micro_batches{{5, 0}, {3}, {1}, {4}, {2}};
  const std::vector<float> values{-0.0F, 1e-42F, kNan, -3, std::copysign(kNan, -1.0F)};
  const auto step = [&](Carry& carry, int64_t rank, int64_t ranks) {
    carry.begin(micro_batches);
    for (size_t j = 0; j < micro_batches.size(); ++j) {
      if (static_cast<int64_t>(j) % ranks != rank) continue;
      carry.propose(micro_batches[j], all_of(micro_batches[j], values[j]));
    }
    carry.commit();
  };
  Carry alone = carry_of(7);
  step(alone, 0, 1);
  for (const int ranks : {1, 2, 3, 4, 7}) {
    run_ranks(ranks, [&](const distributed::ProcessGroup& group) {
      Carry carry(first_state(7), group);
      step(carry, group.rank(), ranks);
      if (ranks > 1 && group.rank() != 0) {
        EXPECT_EQ(carry.rows({5})[1].item<float>(), 5) << "not told yet";
      }
      for (int time = 0; time < 2; ++time) {
        carry.gather();
        for (size_t i = 0; i < 2; ++i) {
          EXPECT_EQ(bytes_of(carry.states()[i].values), bytes_of(alone.states()[i].values))
              << ranks << " ranks, rank " << group.rank();
        }
      }
    });
  }
}

}  // namespace
}  // namespace stretto::parallel
