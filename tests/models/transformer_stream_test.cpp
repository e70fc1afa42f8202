#include "models/decoders/transformer_stream.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/gemm/packed_weights.h"
#include "models/memory.h"
#include "models/seq2seq_options.h"
#include "tests/kernels/scopes.h"
#include "tests/models/part_cases.h"

namespace stretto::models {
namespace {

std::shared_ptr<TransformerDecoder> streamed_decoder(const std::string& positions = "sinusoidal",
                                                     int64_t num_kv_heads = 0,
                                                     int64_t head_dim = 0) {
  Seq2SeqOptions options;
  options.d_model = testing::kWidth;
  options.positions = positions;
  options.max_distance = 3;  // outputs are longer
  const StackOptions stack{.num_layers = 2,
                           .num_heads = 4,
                           .ffn_dim = 20,
                           .num_kv_heads = num_kv_heads,
                           .head_dim = head_dim};
  const auto decoder = std::make_shared<TransformerDecoder>(TransformerPart(options, stack),
                                                            testing::setup_of("decoder"));
  decoder->eval();
  return decoder;
}

/// Rows of sources of these lengths, of which each has its own.
Encoded memory_of(const std::vector<int64_t>& lengths, const std::vector<uint64_t>& seeds) {
  std::vector<int32_t> bounds{0};
  std::vector<at::Tensor> keys;
  for (size_t i = 0; i < lengths.size(); ++i) {
    bounds.push_back(bounds.back() + static_cast<int32_t>(lengths[i]));
    keys.push_back(at::randn({lengths[i], testing::kWidth},
                             at::detail::createCPUGenerator(seeds[i]), at::kFloat));
  }
  Encoded memory;
  memory.rows.offsets = {.values = at::tensor(bounds, at::kInt),
                         .max_length = *std::ranges::max_element(lengths)};
  memory.keys = at::cat(keys);
  return memory;
}

/// A source that is decoded by itself, with as many lanes from its first step on, and in a stream.
struct DecodedTwice {
  int64_t number, length, end;  ///< `end`: steps that it takes
  std::unique_ptr<StepDecoder> alone = nullptr;
  int64_t step = 0;
};

constexpr int64_t kStreamLanes = 3;

int64_t next_token(const DecodedTwice& source, int64_t lane) {
  return 4 + (5 * source.number + 7 * lane + 3 * source.step) % 17;
}

/// Which lanes of before the lanes of a source continue.
std::vector<int64_t> next_parents(const DecodedTwice& source) {
  if (source.step % 3 == 0) return {0, 0, 2};
  if (source.step % 3 == 1) return {1, 2, 0};
  return {2, 1, 1};
}

void expect_lanes_of_each_source_alone(const std::shared_ptr<TransformerDecoder>& decoder) {
  const stretto::testing::OwnProducts own_products;
  kernels::PackedWeights weights;
  const kernels::PackedWeightsScope packed(weights);
  const torch::NoGradGuard no_grad;
  const auto stream = decoder->start_stream();
  ASSERT_NE(stream, nullptr);
  std::vector<DecodedTwice> alive;
  for (int64_t time = 0, number = 0; time < 60 || !alive.empty(); ++time) {
    if (time < 60 && time % 4 == 0) {  // two more
      std::vector<int64_t> lengths;
      std::vector<uint64_t> seeds;
      for (int64_t k = 0; k < 2; ++k, ++number) {
        DecodedTwice source{
            .number = number, .length = 3 + (5 * number) % 11, .end = 3 + number % 9};
        lengths.push_back(source.length);
        seeds.push_back(static_cast<uint64_t>(40 + number));
        source.alone = decoder->start(memory_of({lengths.back()}, {seeds.back()}), kStreamLanes);
        alive.push_back(std::move(source));
      }
      stream->enter(memory_of(lengths, seeds));
    }
    std::vector<int64_t> tokens;
    for (const DecodedTwice& source : alive) {
      const int64_t lanes = source.step == 0 ? 1 : kStreamLanes;
      for (int64_t lane = 0; lane < lanes; ++lane) tokens.push_back(next_token(source, lane));
    }
    const at::Tensor rows = stream->step(at::tensor(tokens, at::kLong));
    std::vector<int64_t> parents;
    std::vector<DecodedTwice> going_on;
    int64_t first = 0;
    for (DecodedTwice& source : alive) {
      const int64_t lanes = source.step == 0 ? 1 : kStreamLanes;
      std::vector<int64_t> own;
      for (int64_t lane = 0; lane < kStreamLanes; ++lane) {
        own.push_back(next_token(source, source.step == 0 ? 0 : lane));
      }
      const at::Tensor alone = source.alone->step(at::tensor(own, at::kLong));
      EXPECT_TRUE(at::equal(rows.narrow(0, first, lanes), alone.narrow(0, 0, lanes)))
          << "source " << source.number << ", step " << source.step;
      const auto next = next_parents(source);
      const bool goes_on = ++source.step < source.end;
      if (goes_on) {
        for (const int64_t lane : next) parents.push_back(first + (lanes == 1 ? 0 : lane));
        source.alone->reorder(next);
        going_on.push_back(std::move(source));
      }
      first += lanes;
    }
    alive = std::move(going_on);
    stream->reorder(parents);
  }
}

TEST(TransformerStream, LanesThatComeAndGoHaveTheBitsOfEachSourceAlone) {
  for (const char* positions : {"sinusoidal", "learned", "rotary", "alibi", "t5"}) {
    for (const int64_t num_kv_heads : {0, 1, 2}) {
      SCOPED_TRACE(std::string(positions) + " " + std::to_string(num_kv_heads));
      expect_lanes_of_each_source_alone(streamed_decoder(positions, num_kv_heads));
    }
  }
}

TEST(TransformerStream, HeadsMayHaveAWidthOfTheirOwn) {
  expect_lanes_of_each_source_alone(streamed_decoder("rotary", /*num_kv_heads=*/2, /*head_dim=*/6));
}

TEST(TransformerStream, RowsThatNobodyReadsAreWrittenAgain) {
  const torch::NoGradGuard no_grad;
  TransformerStreamDecoder stream(streamed_decoder());
  for (int64_t number = 0; number < 200; ++number) {
    stream.enter(memory_of({5}, {static_cast<uint64_t>(number)}));
    for (int64_t t = 0; t < 6; ++t) {
      const int64_t lanes = t == 0 ? 1 : 2;
      stream.step(at::full({lanes}, 5, at::kLong));
      // Both lanes continue one: of its past no row is held twice.
      stream.reorder({0, 0});
      EXPECT_EQ(stream.rows_in_use(), t + 1);
    }
    stream.reorder({});
    EXPECT_EQ(stream.rows_in_use(), 0);
  }
  EXPECT_LE(stream.rows_of_steps(), 64);
  EXPECT_LE(stream.rows_of_memories(), 64);
}

TEST(TransformerStream, MemoriesAreMovedTogetherBeforeTheyTakeMoreRoom) {
  const torch::NoGradGuard no_grad;
  TransformerStreamDecoder stream(streamed_decoder());
  stream.enter(memory_of({7}, {1}));
  for (int64_t number = 0; number < 300; ++number) {
    stream.enter(memory_of({9}, {static_cast<uint64_t>(2 + number)}));
    stream.step(at::full({2}, 5, at::kLong));
    stream.reorder({1});  // the newer one stays
  }
  EXPECT_LE(stream.rows_of_memories(), 64);
  EXPECT_GT(stream.most_cache_bytes(), 0);
}

TEST(TransformerStream, RefusesLanesThatThereAreNotAndOtherOrders) {
  const torch::NoGradGuard no_grad;
  TransformerStreamDecoder stream(streamed_decoder());
  stream.enter(memory_of({2, 3}, {1, 2}));
  EXPECT_THROW(stream.step(at::full({3}, 5, at::kLong)), c10::Error);
  stream.step(at::full({2}, 5, at::kLong));
  EXPECT_THROW(stream.reorder({2}), c10::Error);
  EXPECT_THROW(stream.reorder({1, 0}), c10::Error);
}

TEST(TransformerStream, ThereIsNoneWithoutMemoryOrWithVectorsOfDistances) {
  EXPECT_EQ(streamed_decoder("shaw")->start_stream(), nullptr);
  PartSetup setup = testing::setup_of("decoder");
  setup.memory_width.reset();
  Seq2SeqOptions options;
  options.d_model = testing::kWidth;
  const auto alone = std::make_shared<TransformerDecoder>(
      TransformerPart(options, StackOptions{.num_layers = 1, .num_heads = 4, .ffn_dim = 20}),
      setup);
  EXPECT_EQ(alone->start_stream(), nullptr);
}

}  // namespace
}  // namespace stretto::models
