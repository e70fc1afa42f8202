// LazyAdam: rows that were looked up are stepped as by Adam, the others stay.
#include "optim/lazy_adam.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <set>

#include "base/error.h"
#include "base/random.h"
#include "tests/optim/toy.h"

namespace stretto::optim {
namespace {

using testing::Numbers;

using Rows = std::set<int64_t>;

/// `embedding.weight` and an output projection with its bias.
struct TableAndOutput : torch::nn::Module {
  torch::Tensor table, output, bias;

  explicit TableAndOutput(int64_t rows = 6, int64_t columns = 3) {
    RandomStream random(5);
    embedding_ = register_module("embedding", std::make_shared<torch::nn::Module>());
    table = add(*embedding_, "weight", {rows, columns}, random);
    output = add(*this, "output", {4, columns}, random);
    bias = add(*this, "bias", {4}, random);
  }

  /// Sets gradients of the rows that were looked up, of the output but for a row, and of the bias.
  void fill_gradients(int step, const Rows& looked_up) {
    for (const torch::Tensor& tensor : {table, output, bias}) {
      auto grad = tensor.grad().view({-1});
      for (int64_t i = 0; i < grad.numel(); ++i) {
        grad.data_ptr<float>()[i] = static_cast<float>(std::sin(0.7 * step + 1.3 * double(i)) + 2);
      }
    }
    for (int64_t row = 0; row < table.size(0); ++row) {
      if (!looked_up.contains(row)) table.grad()[row].zero_();
    }
    if (step > 1) output.grad()[2].zero_();
  }

 private:
  static torch::Tensor add(torch::nn::Module& owner, const std::string& name,
                           const std::vector<int64_t>& shape, RandomStream& random) {
    torch::Tensor values = torch::empty(shape);
    for (int64_t i = 0; i < values.numel(); ++i) {
      values.data_ptr<float>()[i] = static_cast<float>(random.normal());
    }
    return owner.register_parameter(name, values);
  }

  std::shared_ptr<torch::nn::Module> embedding_;
};

const std::vector<Rows> kLookedUp{{0, 2}, {2}, {}, {0, 1, 2, 3, 4}, {5}, {0, 5}, {1}, {}};

OptimOptions lazy(double weight_decay = 0.1) {
  return {.name = "lazy_adam", .weight_decay = weight_decay};
}

/// One row of a matrix, or a vector, in double.
struct Plain {
  Numbers p, m, v;
};

void adam(const OptimOptions& o, Plain& t, const Numbers& g, double decay, double lr, int step) {
  for (size_t i = 0; i < g.size(); ++i) {
    const double d = g[i] + decay * t.p[i];
    t.m[i] = o.beta1 * t.m[i] + (1 - o.beta1) * d;
    t.v[i] = o.beta2 * t.v[i] + (1 - o.beta2) * d * d;
    t.p[i] -= lr * t.m[i] / (1 - std::pow(o.beta1, step)) /
              (std::sqrt(t.v[i] / (1 - std::pow(o.beta2, step))) + o.epsilon);
  }
}

TEST(LazyAdam, EightStepsEqualAPlainReferenceRowByRow) {
  TableAndOutput model;
  Arena arena(model);
  ASSERT_EQ(arena.slots()[0].name, "output");
  const auto options = lazy();
  const auto optimizer = make_optimizer(options, arena);
  std::vector<torch::Tensor> parts;
  for (int64_t row = 0; row < 6; ++row) parts.push_back(model.table[row]);
  parts.push_back(model.output);
  parts.push_back(model.bias);
  std::vector<Plain> expected;
  for (const auto& part : parts) {
    const Numbers p = testing::numbers_of(part), zeros(p.size());
    expected.push_back({p, zeros, zeros});
  }
  for (int step = 1; step <= 8; ++step) {
    const Rows& looked_up = kLookedUp[static_cast<size_t>(step) - 1];
    model.fill_gradients(step, looked_up);
    const auto before = model.table.detach().clone();
    std::vector<torch::Tensor> grads;
    for (int64_t row = 0; row < 6; ++row) grads.push_back(model.table.grad()[row]);
    grads.push_back(model.output.grad());
    grads.push_back(model.bias.grad());
    optimizer->step(arena, {.lr = testing::rate_at(step), .grad_scale = 0.5, .number = step});
    for (size_t i = 0; i < parts.size(); ++i) {
      const bool row = i < 6;
      if (!row || looked_up.contains(static_cast<int64_t>(i))) {
        Numbers g = testing::numbers_of(grads[i]);
        for (double& value : g) value *= 0.5;
        adam(options, expected[i], g, i == 7 ? 0 : 0.1, testing::rate_at(step), step);
      } else {
        EXPECT_TRUE(torch::equal(parts[i], before[static_cast<int64_t>(i)]))
            << "step " << step << ", row " << i;
      }
      const Numbers got = testing::numbers_of(parts[i]);
      for (size_t k = 0; k < got.size(); ++k) {
        EXPECT_NEAR(got[k], expected[i].p[k], 3e-5) << "step " << step << ", part " << i;
      }
    }
  }
}

TEST(LazyAdam, HasTheBitsOfAdamWhereEveryRowWasUsed) {
  const Rows all{0, 1, 2, 3, 4, 5};
  TableAndOutput model, twin;
  Arena arena(model), reference(twin);
  auto options = lazy();
  const auto optimizer = make_optimizer(options, arena);
  options.name = "adam";
  const auto adam = make_optimizer(options, reference);
  for (int step = 1; step <= 8; ++step) {
    model.fill_gradients(step, all);
    twin.fill_gradients(step, all);
    optimizer->step(arena, {.lr = 0.01, .number = step});
    adam->step(reference, {.lr = 0.01, .number = step});
  }
  EXPECT_TRUE(torch::equal(arena.params(), reference.params()));
  const auto mine = optimizer->state(), theirs = adam->state();
  ASSERT_EQ(mine.size(), theirs.size());
  for (size_t i = 0; i < mine.size(); ++i) {
    EXPECT_EQ(mine[i].name, theirs[i].name);
    EXPECT_TRUE(torch::equal(mine[i].values, theirs[i].values)) << mine[i].name;
  }
}

TEST(LazyAdam, AnUnusedRowMovesUnderAdam) {
  for (const std::string name : {"adam", "lazy_adam"}) {
    TableAndOutput model;
    Arena arena(model);
    const auto optimizer = make_optimizer({.name = name}, arena);
    model.fill_gradients(1, {0, 1});
    optimizer->step(arena, {.lr = 0.01, .number = 1});
    const auto before = model.table[0].detach().clone();
    model.fill_gradients(2, {1});
    optimizer->step(arena, {.lr = 0.01, .number = 2});
    EXPECT_EQ(torch::equal(model.table[0], before), name == "lazy_adam") << name;
  }
}

// A power of two, so that the scaled gradient has the same digits.
TEST(LazyAdam, ALossScaleChangesNothing) {
  TableAndOutput model, twin;
  Arena arena(model), scaled(twin);
  const auto one = make_optimizer(lazy(), arena), other = make_optimizer(lazy(), scaled);
  for (int step = 1; step <= 8; ++step) {
    model.fill_gradients(step, kLookedUp[static_cast<size_t>(step) - 1]);
    scaled.grads().copy_(arena.grads() * 1024);
    one->step(arena, {.lr = 0.01, .number = step});
    other->step(scaled, {.lr = 0.01, .grad_scale = 1.0 / 1024, .number = step});
  }
  EXPECT_TRUE(torch::equal(arena.params(), scaled.params()));
}

TEST(LazyAdam, GoesOnFromItsStateWithTheSameBits) {
  TableAndOutput model, twin;
  Arena arena(model), resumed(twin);
  const auto whole = make_optimizer(lazy(), arena);
  auto part = make_optimizer(lazy(), resumed);
  for (int step = 1; step <= 8; ++step) {
    if (step == 5) {
      const auto saved = part->state();
      part = make_optimizer(lazy(), resumed);
      const auto fresh = part->state();
      for (size_t i = 0; i < saved.size(); ++i) fresh[i].values.copy_(saved[i].values);
    }
    model.fill_gradients(step, kLookedUp[static_cast<size_t>(step) - 1]);
    twin.fill_gradients(step, kLookedUp[static_cast<size_t>(step) - 1]);
    whole->step(arena, {.lr = 0.01, .number = step});
    part->step(resumed, {.lr = 0.01, .number = step});
  }
  EXPECT_TRUE(torch::equal(arena.params(), resumed.params()));
}

TEST(LazyAdam, StepsTheRowsOfTheTablesThatAreNamed) {
  TableAndOutput model;
  Arena arena(model);
  OptimOptions options = lazy(0);
  options.lazy_tables = {"out*"};
  const auto optimizer = make_optimizer(options, arena);
  model.fill_gradients(1, {0, 1, 2, 3, 4, 5});
  optimizer->step(arena, {.lr = 0.01, .number = 1});
  const auto table = model.table.detach().clone(), output = model.output.detach().clone();
  model.fill_gradients(2, {0});  // and not row 2 of the output
  optimizer->step(arena, {.lr = 0.01, .number = 2});
  EXPECT_FALSE(torch::equal(model.table[5], table[5])) << "is Adam's now";
  EXPECT_TRUE(torch::equal(model.output[2], output[2]));
  EXPECT_FALSE(torch::equal(model.output[1], output[1]));
}

// The last row of one table lies before the first of the next, which has a rate of its own.
TEST(LazyAdam, RowsThatLieSideBySideStayInBothTables) {
  TableAndOutput model;
  Arena arena(model);
  OptimOptions options = lazy(0.1);
  options.lazy_tables = {"embedding*", "out*"};
  options.groups = {"embedding* lr_scale=0.1"};
  const auto optimizer = make_optimizer(options, arena);
  model.fill_gradients(1, {0, 1, 2, 3, 4, 5});
  optimizer->step(arena, {.lr = 0.01, .number = 1});
  const auto table = model.table.detach().clone(), output = model.output.detach().clone();
  model.fill_gradients(2, {0, 1, 2, 3, 4});
  model.output.grad().fill_(1);
  model.output.grad()[0].zero_();
  optimizer->step(arena, {.lr = 0.01, .number = 2});
  EXPECT_TRUE(torch::equal(model.table[5], table[5]));
  EXPECT_TRUE(torch::equal(model.output[0], output[0]));
  EXPECT_FALSE(torch::equal(model.table[4], table[4]));
  EXPECT_FALSE(torch::equal(model.output[1], output[1]));
}

TEST(LazyAdam, APatternWithoutATensorIsRefused) {
  TableAndOutput model;
  const Arena arena(model);
  try {
    make_optimizer({.name = "lazy_adam", .lazy_tables = {"embeding*"}}, arena);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_NE(error.message().find("optim.lazy_tables: `embeding*` matches no parameter"),
              std::string::npos)
        << error.message();
  }
}

// --- rows that two processes share -------------------------------------------------------------

constexpr int64_t kBlock = kernels::kStepBlock;
constexpr int64_t kTableRows = 700, kTableColumns = 100;

/// A row that lies on both sides of this place of the arena, and where in the row that is.
struct Divided {
  int64_t row = 0, column = 0;
};

Divided divided_at(const Arena& arena, int64_t place) {
  for (const auto& slot : arena.slots()) {
    if (slot.name != "embedding.weight") continue;
    const int64_t element = place - slot.offset;
    return {element / kTableColumns, element % kTableColumns};
  }
  return {};
}

// One of the divided rows has a gradient before the border alone, the other behind it.
void fill_divided(TableAndOutput& model, const Arena& arena) {
  model.fill_gradients(1, {3, 600});
  const Divided first = divided_at(arena, kBlock), second = divided_at(arena, 2 * kBlock);
  ASSERT_GT(first.column, 0);
  ASSERT_GT(second.column, 0);
  model.table.grad()[first.row][0] = 0.5;
  model.table.grad()[second.row][kTableColumns - 1] = 0.5;
}

/// Steps the slices one after another as so many processes: first each tells what it adds to the
/// sums, and is thrown away.
void step_in_slices(Arena& arena, const std::vector<int64_t>& begins) {
  std::vector<double> totals;
  const auto before = arena.params().clone();
  for (const bool collecting : {true, false}) {
    for (size_t i = 0; i + 1 < begins.size(); ++i) {
      const auto optimizer = make_optimizer(lazy(), arena, {begins[i], begins[i + 1]});
      optimizer->step(arena, {.lr = 0.01, .sum_over_ranks = [&](std::span<double> values) {
                                totals.resize(values.size());
                                for (size_t v = 0; v < values.size(); ++v) {
                                  if (collecting) {
                                    totals[v] += values[v];
                                  } else {
                                    values[v] = totals[v];
                                  }
                                }
                              }});
    }
    if (collecting) arena.params().copy_(before);
  }
  EXPECT_EQ(totals.size(), 2U) << "rows that a border of blocks divides";
}

TEST(LazyAdam, ARowInTwoSlicesIsUsedWhenEitherPartHasAGradient) {
  TableAndOutput model(kTableRows, kTableColumns), twin(kTableRows, kTableColumns);
  Arena arena(model), sliced(twin);
  const auto before = arena.params().clone();
  fill_divided(model, arena);
  fill_divided(twin, sliced);
  make_optimizer(lazy(), arena)->step(arena, {.lr = 0.01});
  for (const auto& begins : {std::vector<int64_t>{0, kBlock, 2 * kBlock, arena.size()},
                             std::vector<int64_t>{0, kBlock, arena.size(), arena.size()},
                             std::vector<int64_t>{0, 2 * kBlock, arena.size()}}) {
    sliced.params().copy_(before);
    step_in_slices(sliced, begins);
    EXPECT_TRUE(torch::equal(sliced.params(), arena.params()));
  }
  // Weight decay moves the part of a row that has no gradient itself.
  for (const int64_t border : {kBlock, 2 * kBlock}) {
    const Divided at = divided_at(arena, border);
    const auto& slot = arena.slots()[1];
    ASSERT_EQ(slot.name, "embedding.weight");
    EXPECT_TRUE(Arena::view(arena.params(), slot)[at.row]
                    .ne(Arena::view(before, slot)[at.row])
                    .all()
                    .item<bool>());
  }
}

TEST(LazyAdam, ASliceThatDividesARowNeedsTheSumAndABorderOfBlocks) {
  TableAndOutput model(kTableRows, kTableColumns);
  Arena arena(model);
  fill_divided(model, arena);
  EXPECT_THROW(make_optimizer(lazy(), arena, {0, kBlock})->step(arena, {.lr = 0.01}), c10::Error);
  const int64_t row = arena.slots()[1].offset + 10 * kTableColumns;
  EXPECT_NO_THROW(make_optimizer(lazy(), arena, {0, row}));
  EXPECT_THROW(make_optimizer(lazy(), arena, {0, row + 1}), c10::Error);
}

}  // namespace
}  // namespace stretto::optim
