#include "train/prepared.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <new>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "tests/kernels/scopes.h"

namespace stretto::train {
namespace {

/// Two samples with ids, frames of two floats, and bytes.
data::Batch batch_of_columns() {
  return {
      .sample_ids = {4, 9},
      .columns = {data::PackedTokens{.values = {1, 2, 3}, .offsets = {0, 2, 3}},
                  data::Ragged<float>{.values = {0.5F, 1, 2, 4}, .offsets = {0, 1, 2}, .width = 2},
                  data::Ragged<uint8_t>{.values = {7, 255}, .offsets = {0, 1, 2}},
                  data::PackedTokens{.offsets = {0, 0, 0}}}};
}

TEST(Prepared, HasColumnsAsTensorsOfTheirKindAndWidth) {
  const Prepared batch(batch_of_columns());
  EXPECT_TRUE(at::equal(batch.column(0), at::tensor({1, 2, 3}, at::kLong)));
  EXPECT_TRUE(at::equal(batch.column(1), at::tensor({0.5F, 1.F, 2.F, 4.F}).view({2, 2})));
  EXPECT_TRUE(at::equal(batch.column(2), at::tensor({7, 255}, at::kByte)));
  EXPECT_TRUE(at::equal(batch.column(3), at::empty({0}, at::kLong)));
  EXPECT_THROW(batch.column(4), std::out_of_range);
}

TEST(Prepared, IntegersStandOnTheMemoryOfTheBatchAndKeepIt) {
  at::Tensor ids, bytes;
  {
    Prepared batch(batch_of_columns());
    ids = batch.column(0);
    bytes = batch.column(2);
    const Prepared moved = std::move(batch);
    EXPECT_EQ(ids.const_data_ptr<int64_t>(), moved.batch().column<int64_t>(0).values.data());
  }
  EXPECT_TRUE(at::equal(ids, at::tensor({1, 2, 3}, at::kLong)));
  EXPECT_TRUE(at::equal(bytes, at::tensor({7, 255}, at::kByte)));
}

TEST(Prepared, FloatsBeginWhereTensorsDo) {
  for (const int64_t rows : {1, 7, 100, 100000}) {
    const std::vector<float> values(static_cast<size_t>(rows), 1.5F);
    data::Ragged<float> frames;
    frames.append(values);
    const Prepared batch({.sample_ids = {0}, .columns = {frames}});
    const at::Tensor column = batch.column(0);
    const auto place = [](const at::Tensor& tensor) {
      return reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % 64;
    };
    EXPECT_EQ(place(column), place(at::empty({rows}))) << rows << " rows";
    EXPECT_TRUE(at::equal(column, at::full({rows}, 1.5F)));
  }
}

TEST(Prepared, HasWhatWasAddedByNumber) {
  Prepared batch(batch_of_columns());
  EXPECT_THROW(batch.rows(), std::out_of_range);
  EXPECT_THROW(batch.tensor(), std::out_of_range);
  batch.add(at::tensor({1}));
  batch.add(at::tensor({2}));
  batch.add(nn::PackedRows{.ids = batch.column(0)});
  EXPECT_EQ(batch.tensor(1).item<int64_t>(), 2);
  EXPECT_TRUE(at::equal(batch.rows().ids, batch.column(0)));
}

TEST(Prepared, AllTensorsGoToTheDevice) {
  Prepared batch(batch_of_columns());
  const at::Tensor ids = batch.column(0);
  batch.add(nn::PackedRows{.ids = ids,
                           .positions = ids,
                           .row_keys = ids,
                           .offsets = {.values = ids, .max_length = 2},
                           .dropped_words = ids,
                           .segments = ids});
  batch.add(nn::PackedRows{.ids = ids});
  batch.add(ids);
  for (int again = 0; again < 2; ++again) {
    batch.send(at::kMeta);
    const nn::PackedRows& rows = batch.rows();
    for (const at::Tensor& one : {rows.ids, rows.positions, rows.row_keys, rows.offsets.values,
                                  rows.dropped_words, rows.segments, batch.tensor()}) {
      EXPECT_TRUE(one.is_meta());
    }
    EXPECT_EQ(rows.offsets.max_length, 2);
    EXPECT_TRUE(batch.rows(1).ids.is_meta());
    EXPECT_FALSE(batch.rows(1).segments.defined());
  }
}

TEST(Preparation, MakesTensorsWithoutGradientsAndNoneOfNoSample) {
  const Preparation preparation{.prepare = [](data::Batch batch) {
    Prepared made(std::move(batch));
    made.add(at::ones({1}).requires_grad_().mul(2));
    return made;
  }};
  const Prepared made = preparation.make(batch_of_columns());
  EXPECT_FALSE(made.tensor().requires_grad());
  EXPECT_THROW(preparation.make({}).tensor(), std::out_of_range);
  EXPECT_EQ(Preparation{}.now(batch_of_columns()).batch().sample_ids, (std::vector<int64_t>{4, 9}));
}

TEST(Preparation, OfALoaderTakesNoThreadsOfTheModel) {
  const stretto::testing::Threads three(3);
  int threads = 0;
  const Preparation preparation{.prepare = [&](data::Batch batch) {
    threads = at::get_num_threads();
    return Prepared(std::move(batch));
  }};
  std::thread([&] { preparation.ahead(batch_of_columns()); }).join();
  EXPECT_EQ(threads, 1);
  EXPECT_EQ(at::get_num_threads(), 3);
  preparation.now(batch_of_columns());
  EXPECT_EQ(threads, 3);
}

}  // namespace
}  // namespace stretto::train
