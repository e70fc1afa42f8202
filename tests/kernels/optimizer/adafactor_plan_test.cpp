// How the CUDA step of Adafactor is cut, carried out here one block after another: every sum, every
// share and every element must be there once, whatever the shapes.
#include "kernels/optimizer/adafactor_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace stretto::kernels {
namespace {

using Numbers = std::vector<double>;

/// Squares are small whole numbers, so that every order of a sum gives the same.
double square_at(int64_t element) {
  return static_cast<double>(element * 7919 % 97);
}

std::vector<AdafactorTensor> in_turn(std::vector<AdafactorTensor> tensors) {
  int64_t begin = 3;
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].begin = begin;
    if (i > 0) {
      tensors[i].row_moments = tensors[i - 1].row_moments_end();
      tensors[i].column_moments = tensors[i - 1].column_moments_end();
    }
    begin += tensors[i].numel() + static_cast<int64_t>(i % 4);
  }
  return tensors;
}

std::vector<AdafactorTensor> all_kinds() {
  std::vector<AdafactorTensor> tensors;
  for (const int64_t rows : {1, 3, 31, 32, 33, 64, 65, 300})
    for (const int64_t columns : {1, 2, 63, 64, 65, 255, 256, 257, 513})
      for (const int64_t matrices : {1, 2, 5})
        tensors.push_back({.matrices = matrices, .rows = rows, .columns = columns});
  tensors.push_back({.rows = 40'000, .columns = 5});
  tensors.push_back({.rows = 140'000, .columns = 1});
  tensors.push_back({.matrices = 1000, .rows = 3, .columns = 3});
  tensors.push_back({.matrices = 3, .rows = 0, .columns = 7});
  for (const int64_t size : {0, 1, 1000, 20'000})
    tensors.push_back({.columns = size, .factored = false});
  return in_turn(tensors);
}

/// What the tiles leave; each place is written once (NaN before, and never twice).
Numbers partial_sums(const AdafactorPlan& plan) {
  Numbers partials(static_cast<size_t>(plan.num_partials), -1);
  for (const FactorTile& tile : plan.tiles) {
    EXPECT_LE(tile.columns, kTileColumns);
    EXPECT_GE(std::min(tile.rows, tile.columns), 1);
    Numbers rows(static_cast<size_t>(tile.rows)), columns(static_cast<size_t>(tile.columns));
    for (int32_t r = 0; r < tile.rows; ++r)
      for (int32_t c = 0; c < tile.columns; ++c) {
        const double square = square_at(tile.grads + r * tile.stride + c);
        rows[static_cast<size_t>(r)] += square;
        columns[static_cast<size_t>(c)] += square;
      }
    const auto put = [&](int64_t at, const Numbers& sums) {
      for (const double sum : sums) {
        double& to = partials.at(static_cast<size_t>(at++));
        EXPECT_EQ(to, -1) << "a partial sum is written twice";
        to = sum;
      }
    };
    put(tile.row_sums, rows);
    put(tile.column_sums, columns);
  }
  EXPECT_EQ(std::count(partials.begin(), partials.end(), -1), 0) << "a partial sum is missing";
  return partials;
}

/// Means that the folds leave, of rows or of columns.
Numbers folded(const AdafactorPlan& plan, const Numbers& partials, bool of_rows, int64_t count) {
  Numbers means(static_cast<size_t>(count), -1);
  for (const FactorFold& fold : plan.folds) {
    EXPECT_EQ(kAdafactorThreads % fold.width, 0);
    EXPECT_LE(fold.last - fold.first, fold.width);
    EXPECT_LT(fold.first, fold.last);
    if (fold.of_rows != of_rows) continue;
    for (int64_t i = fold.first; i < fold.last; ++i) {
      double sum = 0;
      for (int32_t term = 0; term < fold.terms; ++term) {
        const int64_t from =
            fold.source + i / fold.group * fold.group_step + i % fold.group + term * fold.term_step;
        sum += fold.from_grads ? square_at(from) : partials.at(static_cast<size_t>(from));
      }
      double& mean = means.at(static_cast<size_t>(fold.moments + i));
      EXPECT_EQ(mean, -1) << "a moment is moved twice";
      mean = sum / fold.divisor;
    }
  }
  return means;
}

TEST(AdafactorPlan, CarriedOutItGivesTheMeansOfAllRowsAndColumns) {
  const auto tensors = all_kinds();
  const AdafactorPlan plan = plan_adafactor(tensors);
  const Numbers partials = partial_sums(plan);
  const Numbers rows = folded(plan, partials, true, tensors.back().row_moments_end());
  const Numbers columns = folded(plan, partials, false, tensors.back().column_moments_end());
  for (const AdafactorTensor& t : tensors) {
    if (t.numel() == 0) continue;
    Numbers want_rows(static_cast<size_t>(t.num_rows()));
    Numbers want_columns(static_cast<size_t>(t.num_columns()));
    for (int64_t i = 0; i < t.numel(); ++i) {
      const double square = square_at(t.begin + i);
      const int64_t row = i / t.columns;
      want_rows[static_cast<size_t>(row)] += square;
      want_columns[static_cast<size_t>(row / t.rows * t.columns + i % t.columns)] += square;
    }
    for (int64_t i = 0; t.factored && i < t.num_rows(); ++i)
      ASSERT_EQ(rows[static_cast<size_t>(t.row_moments + i)],
                want_rows[static_cast<size_t>(i)] / static_cast<double>(t.columns))
          << "row " << i << " of " << t.matrices << " [" << t.rows << ", " << t.columns << "]";
    for (int64_t i = 0; i < t.num_columns(); ++i)
      ASSERT_EQ(columns[static_cast<size_t>(t.column_moments + i)],
                want_columns[static_cast<size_t>(i)] / static_cast<double>(t.rows))
          << "column " << i << " of " << t.matrices << " [" << t.rows << ", " << t.columns << "]";
  }
}

TEST(AdafactorPlan, EveryRowHasOneShare) {
  const auto tensors = all_kinds();
  const AdafactorPlan plan = plan_adafactor(tensors);
  std::vector<int64_t> moment_of(static_cast<size_t>(plan.num_shares), -1);
  for (const FactorShares& chunk : plan.shares) {
    EXPECT_LE(chunk.matrices, chunk.by_thread ? kAdafactorThreads : 1);
    for (int64_t row = 0; row < chunk.matrices * chunk.rows; ++row) {
      int64_t& moment = moment_of.at(static_cast<size_t>(chunk.shares + row));
      EXPECT_EQ(moment, -1);
      moment = chunk.factored ? chunk.moments + row : -2;
    }
  }
  auto at = plan.tensors.begin();
  for (const AdafactorTensor& t : tensors) {
    if (t.numel() == 0) continue;
    for (int64_t row = 0; row < t.num_rows(); ++row)
      ASSERT_EQ(moment_of.at(static_cast<size_t>(at->shares + row)),
                t.factored ? t.row_moments + row : -2);
    ++at;
  }
  EXPECT_EQ(std::count(moment_of.begin(), moment_of.end(), -1), 0);
}

TEST(AdafactorPlan, BlocksOfATensorFollowOneAnotherToItsEnd) {
  const auto tensors = all_kinds();
  const AdafactorPlan plan = plan_adafactor(tensors);
  size_t block = 0, index = 0;
  for (const AdafactorTensor& t : tensors) {
    if (t.numel() == 0) continue;
    const FactorTensor& tensor = plan.tensors.at(index);
    EXPECT_EQ(tensor.begin, t.begin);
    EXPECT_EQ(tensor.count, static_cast<double>(t.numel()));
    EXPECT_EQ(tensor.first_block, static_cast<int64_t>(block));
    for (int64_t end = 0; end < t.numel(); ++block) {
      ASSERT_EQ(plan.blocks.at(block).tensor, static_cast<int64_t>(index));
      ASSERT_EQ(plan.blocks[block].begin, end);
      end = plan.blocks[block].end;
      ASSERT_LE(end - plan.blocks[block].begin, kAdafactorBlock);
    }
    EXPECT_EQ(plan.blocks[block - 1].end, t.numel());
    EXPECT_EQ(tensor.last_block, static_cast<int64_t>(block));
    ++index;
  }
  EXPECT_EQ(block, plan.blocks.size());
  EXPECT_EQ(index, plan.tensors.size());
}

TEST(AdafactorPlan, SmallMatricesAndVectorsTakeFewBlocks) {
  const auto convolution = plan_adafactor({{.matrices = 512 * 512, .rows = 3, .columns = 3}});
  EXPECT_TRUE(convolution.tiles.empty());
  EXPECT_EQ(convolution.folds.size(), 2U * 512 * 512 * 3 / 256);
  EXPECT_EQ(convolution.shares.size(), 512U * 512 / 256);
  const auto vector = plan_adafactor({{.columns = 100'000, .factored = false}});
  EXPECT_TRUE(vector.tiles.empty());
  EXPECT_EQ(vector.folds.size(), 391U);
  EXPECT_EQ(vector.num_shares, 1);
  const auto embedding = plan_adafactor({{.rows = 32'768, .columns = 512}});
  EXPECT_EQ(embedding.tiles.size(), 2U * 32'768 / 32);
}

}  // namespace
}  // namespace stretto::kernels
