#include "parallel/embedding_gradients.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "kernels/kernels.h"
#include "nn/embedding.h"
#include "parallel/gradient_reducer.h"
#include "tests/distributed/thread_group.h"
#include "tests/parallel/difference.h"

namespace stretto::parallel {
namespace {

using test::difference, test::run_ranks;

constexpr int64_t kRows = 900, kColumns = 32, kLookedUp = 14;

// A table that is looked up twice (source and target), with a layer between, and that may be the
// output projection as well.
struct TranslatorImpl : torch::nn::Module {
  explicit TranslatorImpl(bool tied) : tied_(tied) {
    const nn::Init init(3, at::kCPU);
    table = register_module("table", nn::Embedding(init.child("table"), kRows, kColumns, -1));
    middle =
        register_parameter("middle", init.child("middle").normal("m", kColumns, kColumns, 0.3));
    output = register_parameter("output", init.child("output").normal("o", kRows, kColumns, 0.3));
  }

  at::Tensor loss(int64_t j) {
    const auto i = torch::arange(kLookedUp, torch::kLong);
    const auto source = table->forward((i * 5 + j) % kRows, {});
    const auto target = table->forward((i * 3 + j * 7) % 20, {});  // rows that come again
    const auto x = torch::tanh(torch::matmul(source + target, middle));
    const auto logits = torch::matmul(x, (tied_ ? table->weight : output).t());
    return torch::nn::functional::cross_entropy(
        logits, (i * 53 + j * 29) % kRows,
        torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum));
  }

  nn::Embedding table{nullptr};
  at::Tensor middle, output;

 private:
  bool tied_;
};
TORCH_MODULE(Translator);

struct TiedRank {
  TiedRank(const distributed::ProcessGroup& processes, bool tied,
           const distributed::DistOptions& options)
      : model(tied), arena(*model), group(processes), reducer(arena, group, options) {
    reducer.watch_embeddings(*model);
  }

  void accumulate(int64_t n) {
    const int64_t local = (n - group.rank() + group.size() - 1) / group.size();
    reducer.begin(local);
    for (int64_t i = 0; i < local; ++i) {
      reducer.before_backward(i);
      model->loss(i * group.size() + group.rank()).backward();
      reducer.after_backward(i);
    }
  }
  void reduce(int64_t n) {
    accumulate(n);
    reducer.finish();
  }
  size_t slot(const std::string& name) const {
    size_t at = 0;
    while (arena.slots()[at].name != name) ++at;
    return at;
  }

  Translator model;
  optim::Arena arena;
  distributed::ProcessGroup group;
  GradientReducer reducer;
};

distributed::DistOptions overlapping() {
  distributed::DistOptions options;
  options.bucket_bytes = 20'000;
  return options;
}

at::Tensor plain_gradient(bool tied, int64_t begin, int64_t end) {
  Translator model(tied);
  optim::Arena arena(*model);
  for (int64_t j = begin; j < end; ++j) model->loss(j).backward();
  return arena.grads().clone();
}

class EmbeddingGradientsTest : public ::testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(1); }
  void TearDown() override { at::set_num_threads(threads_before_); }

  // Gradients of the last of several updates, by rank.
  static std::vector<at::Tensor> gradients(int ranks, bool tied, int64_t micro_batches) {
    std::vector<at::Tensor> all(static_cast<size_t>(ranks));
    run_ranks(ranks, [&](const distributed::ProcessGroup& group) {
      TiedRank rank(group, tied, overlapping());
      for (int update = 0; update < 4; ++update) rank.reduce(micro_batches);
      all[static_cast<size_t>(group.rank())] = rank.arena.grads().clone();
    });
    return all;
  }

 private:
  int threads_before_ = at::get_num_threads();
};

TEST_F(EmbeddingGradientsTest, GradientsAreThoseOfOneProcessAndTheSameBitsOnAll) {
  for (const bool tied : {true, false}) {
    for (const int64_t micro_batches : {1, 4, 7}) {  // 1: most ranks have none
      const auto expected = plain_gradient(tied, 0, micro_batches);
      for (const int ranks : {2, 3, 4}) {
        const auto all = gradients(ranks, tied, micro_batches);
        EXPECT_LT(difference(all[0], expected), 1e-6)
            << (tied ? "tied, " : "apart, ") << micro_batches << " on " << ranks;
        for (const auto& other : all) EXPECT_TRUE(other.equal(all[0]));
      }
    }
  }
}

TEST_F(EmbeddingGradientsTest, ATiedTableIsReadyFirstAndAnotherAsBefore) {
  run_ranks(2, [&](const distributed::ProcessGroup& group) {
    TiedRank tied(group, true, overlapping()), apart(group, false, overlapping());
    for (int update = 0; update < 3; ++update) {
      tied.reduce(4);
      apart.reduce(4);
    }
    EXPECT_EQ(tied.reducer.order().front(), tied.slot("table.weight"));
    EXPECT_EQ(apart.reducer.order().front(), apart.slot("output"));
    EXPECT_EQ(apart.reducer.order().back(), apart.slot("table.weight"));
    EXPECT_EQ(apart.reducer.stats().bytes, apart.arena.size() * 4);  // no rows beside it
    EXPECT_GT(tied.reducer.stats().bytes, tied.arena.size() * 4);
  });
}

TEST_F(EmbeddingGradientsTest, TheLocalSumOfSquaresCountsRowsToo) {
  run_ranks(2, [&](const distributed::ProcessGroup& group) {
    TiedRank rank(group, true, overlapping());
    rank.reducer.measure_local(true);
    for (int update = 0; update < 3; ++update) rank.reduce(2);
    const double expected =
        kernels::sum_of_squares(plain_gradient(true, group.rank(), group.rank() + 1));
    EXPECT_NEAR(rank.reducer.local_sum_of_squares() / expected, 1, 1e-6);
  });
}

TEST_F(EmbeddingGradientsTest, AnUpdateThatBrokeOffLeavesNothingBehind) {
  const auto expected = plain_gradient(true, 0, 4);
  run_ranks(2, [&](const distributed::ProcessGroup& group) {
    TiedRank rank(group, true, overlapping());
    rank.reduce(4);
    if (group.rank() == 1) {
      rank.reducer.begin(2);
      rank.reducer.before_backward(0);
      rank.model->loss(11).backward();
      rank.reducer.abandon();
    } else {
      rank.accumulate(4);
      rank.reducer.finish();
    }
    rank.reduce(4);
    EXPECT_LT(difference(rank.arena.grads(), expected), 1e-6);
  });
}

// The first update has less room than rows, the second has enough.
TEST_F(EmbeddingGradientsTest, RowsWithoutRoomComeInTurns) {
  constexpr int64_t kMany = 300;
  const auto ids = torch::arange(kMany, torch::kLong) * 2;
  const auto rows = torch::arange(kMany * kColumns, torch::kFloat).view({kMany, kColumns});
  run_ranks(3, [&](const distributed::ProcessGroup& group) {
    Translator model(true);
    optim::Arena arena(*model);
    EmbeddingGradients sums(arena, group, *model);
    for (int update = 0; update < 2; ++update) {
      arena.zero_grads();
      sums.begin();
      sums.keep(true);
      const int64_t mine = kMany - 100 * group.rank();  // they differ
      const auto place = torch::zeros({mine, kColumns});
      model->table->forward(ids.narrow(0, 0, mine), place).backward(rows.narrow(0, 0, mine));
      sums.keep(false);
      sums.prepare();
      sums.exchange();
      sums.apply();
      const auto grad = model->table->weight.grad();
      for (const int64_t row : {0, 99, 100, 199, 200, 299}) {
        const double times = row < 100 ? 3 : row < 200 ? 2 : 1;
        const auto expected = rows[row] * (times * std::sqrt(double{kColumns}));
        EXPECT_TRUE(torch::allclose(grad[2 * row], expected)) << row;
        EXPECT_EQ(grad[2 * row + 1].abs().sum().item<float>(), 0);
      }
    }
  });
}

TEST_F(EmbeddingGradientsTest, WithoutOverlapAndOnceItIsGoneTheTableHasADenseGradient) {
  const auto expected = plain_gradient(true, 0, 2);
  run_ranks(2, [&](const distributed::ProcessGroup& group) {
    auto options = overlapping();
    options.overlap = false;
    TiedRank rank(group, true, options);
    rank.reduce(2);
    EXPECT_LT(difference(rank.arena.grads(), expected), 1e-6);
    EXPECT_EQ(rank.reducer.stats().bytes, rank.arena.size() * 4);
  });
  Translator model(true);
  optim::Arena arena(*model);
  { const EmbeddingGradients rows(arena, {}, *model); }
  for (int64_t j = 0; j < 2; ++j) model->loss(j).backward();
  EXPECT_LT(difference(arena.grads(), expected), 1e-6);
}

TEST_F(EmbeddingGradientsTest, PositionsThatAreLearnedKeepTheirGradient) {
  const auto gradient_of_position = [](bool apart) {
    Translator model(true);
    optim::Arena arena(*model);
    std::unique_ptr<EmbeddingGradients> rows;
    if (apart)
      rows = std::make_unique<EmbeddingGradients>(arena, distributed::ProcessGroup(), *model);
    const at::Tensor position = torch::ones({2, kColumns}, torch::requires_grad());
    model->table->forward(torch::tensor({4, 4}), position).pow(2).sum().backward();
    return std::pair(position.grad().clone(), arena.grads().clone());
  };
  const auto [position, grads] = gradient_of_position(true);
  const auto [expected_position, expected] = gradient_of_position(false);
  EXPECT_TRUE(position.equal(expected_position));
  EXPECT_LT(difference(grads, expected), 1e-6);
}

}  // namespace
}  // namespace stretto::parallel
