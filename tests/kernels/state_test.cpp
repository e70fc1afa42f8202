// The operators without a gradient: the optimizer's buffers, decoding, attention weights; and what
// every operator refuses.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>
#include <vector>

#include "kernels/cpu/table.h"
#include "kernels/gemm/gemm.h"
#include "tests/kernels/cases.h"
#include "tests/kernels/scopes.h"

namespace stretto::kernels {
namespace {

using testing::noise;

TEST(KernelsState, SumOfSquaresIsExactToDoubleAndEqualForAnyThreads) {
  const at::Tensor x = noise({300'007});
  const double want = x.to(at::kDouble).square().sum().item<double>();
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const double alone = sum_of_squares(x);
  at::set_num_threads(3);
  const double shared = sum_of_squares(x);
  at::set_num_threads(before);
  EXPECT_EQ(alone, shared);
  EXPECT_NEAR(alone, want, 1e-12 * want);
  EXPECT_EQ(sum_of_squares(at::empty({0})), 0.0);
  EXPECT_NEAR(sum_of_squares(at::tensor({3.0, 4.0}, at::kDouble)), 25.0, 0);
}

TEST(KernelsState, SumOfSquaresIsNotFiniteWhenANumberIsNot) {
  at::Tensor x = noise({70'000});
  x[69'999] = NAN;
  EXPECT_TRUE(std::isnan(sum_of_squares(x)));
}

TEST(KernelsState, DecodingStepByStepEqualsCausalAttention) {
  constexpr int64_t kSteps = 5, kLanes = 3, kWidth = 20, kHeads = 2;
  for (const cpu::Table* level : cpu::levels())
    for (const auto type : {at::kFloat, at::kDouble}) {
      const cpu::LevelGuard guard(*level);
      const at::Tensor qkv = noise({kLanes, kSteps, 3 * kWidth}).to(type);
      at::Tensor keys = at::zeros({kSteps + 2, kLanes, kWidth}, type), values = keys.clone();
      at::Tensor lineage = at::arange(kLanes, at::kInt).unsqueeze(1).repeat({1, kSteps + 2});
      for (int64_t t = 0; t < kSteps; ++t) {
        const auto parts = qkv.select(1, t).chunk(3, 1);
        const at::Tensor got =
            decode_self_attention(parts[0], parts[1], parts[2], keys, values, lineage, t, kHeads);
        for (int64_t lane = 0; lane < kLanes; ++lane) {
          const at::Tensor want = reference::self_attention(
              qkv[lane].slice(0, 0, t + 1),
              {cases::lengths({0, static_cast<int>(t) + 1}), kHeads, true, {}});
          EXPECT_TRUE(at::allclose(got[lane], want[t], 1e-4, 1e-5)) << level->name << t << lane;
        }
      }
    }
}

TEST(KernelsState, DecodingFollowsTheLineageOfBeamsThatMoved) {
  const at::Tensor q = noise({3, 8}), k = noise({3, 8}, 8), v = noise({3, 8}, 9);
  at::Tensor keys = noise({4, 3, 8}, 10), values = noise({4, 3, 8}, 11);
  at::Tensor other_keys = keys.clone(), other_values = values.clone();
  const at::Tensor lineage =
      at::tensor({2, 0, 0, 0, 1, 1, 0, 0, 2, 0, 0, 0}, at::kInt).view({3, 4});
  const at::Tensor got = decode_self_attention(q, k, v, keys, values, lineage, 2, 2);
  const at::Tensor want =
      reference::decode_self_attention(q, k, v, other_keys, other_values, lineage, 2, 2);
  EXPECT_TRUE(at::allclose(got, want, 1e-4, 1e-5));
  EXPECT_TRUE(at::equal(keys, other_keys));
  EXPECT_TRUE(at::equal(values[2], v));
}

// What stands in front of a history is no number: nobody may read it.
TEST(KernelsState, DecodingOfAHistoryThatBeginsLaterHasTheBitsOfOneThatBeginsAtOnce) {
  constexpr int64_t kSteps = 9, kLanes = 3, kWidth = 24, kHeads = 2;
  const std::vector<int64_t> begins{0, 5, 8};
  const at::Tensor qkv = noise({kLanes, kSteps, 3 * kWidth}), table = noise({kHeads, kSteps});
  const DistanceBias none, shared{.table = table, .zero = kSteps - 1};
  const DistanceBias of_queries{.table = noise({kLanes, kHeads, 3}), .zero = 2};
  for (const cpu::Table* level : cpu::levels()) {
    for (const DistanceBias& bias : {none, shared, of_queries}) {
      const cpu::LevelGuard guard(*level);
      const auto parts_of = [&](int64_t lane, int64_t step) {
        return qkv[lane][step].unsqueeze(0).chunk(3, 1);
      };
      const at::Tensor lineage =
          at::arange(kLanes, at::kInt).unsqueeze(1).repeat({1, kSteps}).contiguous();
      at::Tensor keys = at::full({kSteps, kLanes, kWidth}, NAN), values = keys.clone();
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        for (int64_t step = begins[static_cast<size_t>(lane)]; step + 1 < kSteps; ++step) {
          keys[step][lane] = parts_of(lane, step)[1][0];
          values[step][lane] = parts_of(lane, step)[2][0];
        }
      }
      const auto last = qkv.select(1, kSteps - 1).chunk(3, 1);
      const at::Tensor first = at::tensor(begins, at::kInt);
      at::Tensor plain_keys = keys.clone(), plain_values = values.clone();
      const at::Tensor got = decode_self_attention(last[0], last[1], last[2], keys, values, lineage,
                                                   kSteps - 1, kHeads, bias, first);
      const at::Tensor plain =
          reference::decode_self_attention(last[0], last[1], last[2], plain_keys, plain_values,
                                           lineage, kSteps - 1, kHeads, bias, first);
      EXPECT_TRUE(at::allclose(got, plain, 1e-4, 1e-5)) << level->name;
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        const int64_t begin = begins[static_cast<size_t>(lane)], length = kSteps - begin;
        const auto alone = [&](const at::Tensor& cache) {
          return cache.narrow(0, begin, length).narrow(1, lane, 1).clone().contiguous();
        };
        at::Tensor own_keys = alone(keys), own_values = alone(values);
        const DistanceBias own{
            .table = bias.is_of_queries() ? bias.table.narrow(0, lane, 1) : bias.table,
            .zero = bias.zero};
        const auto one = parts_of(lane, kSteps - 1);
        const at::Tensor want =
            decode_self_attention(one[0], one[1], one[2], own_keys, own_values,
                                  at::zeros({1, length}, at::kInt), length - 1, kHeads, own);
        EXPECT_TRUE(at::equal(got[lane], want[0])) << level->name << ", lane " << lane;
      }
    }
  }
}

// Histories are long enough for threads to share the heads of a lane.
TEST(KernelsState, DecodingHasTheSameBitsForAnyNumberOfThreads) {
  constexpr int64_t kSteps = 2800, kWidth = 24, kHeadWidth = 4, kHeads = 12;
  for (const int64_t lanes : {1, 2}) {
    const at::Tensor q = noise({lanes, kHeads * kHeadWidth}), k = noise({lanes, kWidth}, 8),
                     v = noise({lanes, kWidth}, 9);
    const at::Tensor keys = noise({kSteps, lanes, kWidth}, 10),
                     values = noise({kSteps, lanes, kWidth}, 11);
    const at::Tensor lineage =
        at::arange(lanes, at::kInt).unsqueeze(1).repeat({1, kSteps}).contiguous();
    const DistanceBias none, bias{.table = noise({kHeads, kSteps}, 12), .zero = kSteps - 1};
    for (const DistanceBias& distances : {none, bias}) {
      const auto decoded = [&](int threads) {
        const testing::Threads count(threads);
        at::Tensor own_keys = keys.clone(), own_values = values.clone();
        return decode_self_attention(q, k, v, own_keys, own_values, lineage, kSteps - 1, kHeads,
                                     distances);
      };
      const at::Tensor one = decoded(1);
      for (const int threads : {2, 4, 5, 16}) {
        EXPECT_TRUE(at::equal(decoded(threads), one)) << lanes << " lanes, " << threads;
      }
    }
  }
}

TEST(KernelsState, CrossAttentionWeightsEqualTheReference) {
  const at::Tensor q = noise({36, 40}), kv = noise({29, 80}, 8);
  for (const cpu::Table* level : cpu::levels()) {
    const cpu::LevelGuard guard(*level);
    const CrossAttention options{.query_offsets = cases::lengths({0, 3, 36}),
                                 .key_offsets = cases::lengths({0, 20, 29}),
                                 .num_heads = 4,
                                 .dropout = {}};
    const at::Tensor got = cross_attention_weights(q, kv, options);
    const at::Tensor want =
        reference::cross_attention_weights(q.to(at::kDouble), kv.to(at::kDouble), options);
    EXPECT_TRUE(at::allclose(got.to(at::kDouble), want, 1e-4, 1e-6)) << level->name;
    EXPECT_TRUE(at::allclose(got.slice(0, 0, 60).view({3, 20}).sum(1), at::ones({3})));
  }
}

TEST(KernelsState, OurProductEqualsDoubleForEveryOrientationAndSize) {
  for (const cpu::Table* level : cpu::levels())
    for (const int64_t rows : {1, 11, 26, 400})
      for (const int64_t depth : {1, 256, 515})
        for (const int64_t columns : {1, 33, 545}) {
          const cpu::LevelGuard guard(*level);
          const at::Tensor a = noise({rows, depth}), b = noise({depth, columns}, 8);
          const at::Tensor at = a.t().contiguous(), bt = b.t().contiguous();
          const at::Tensor bias = noise({columns}, 9);
          const at::Tensor want = at::mm(a.to(at::kDouble), b.to(at::kDouble));
          for (const gemm::Operand& left : {gemm::Operand{a}, gemm::Operand{at, true}})
            for (const gemm::Operand& right : {gemm::Operand{b}, gemm::Operand{bt, true}}) {
              at::Tensor out = at::full({rows, columns}, 2.0);
              gemm::multiply(left, gemm::Packed(right), bias, true, out);
              EXPECT_TRUE(
                  at::allclose(out.to(at::kDouble), want + 2 + bias.to(at::kDouble), 1e-4, 1e-4))
                  << level->name << ' ' << rows << ' ' << depth << ' ' << columns;
            }
        }
}

TEST(KernelsState, TargetsOutsideTheClassesAreRefused) {
  const at::Tensor x = noise({2, 8}), weight = noise({16, 8}, 8);
  for (const auto type : {at::kFloat, at::kDouble})
    for (const int64_t wrong : {-1, 11, 15})
      EXPECT_THROW(linear_cross_entropy(x.to(type), weight.to(type),
                                        at::tensor({int64_t{3}, wrong}, at::kLong), 0.1, 11),
                   c10::Error)
          << wrong;
  EXPECT_NO_THROW(linear_cross_entropy(x, weight, at::tensor({3, 10}, at::kLong), 0.1, 11));
}

// Tables of angles are kept from call to call, and grow.
TEST(KernelsState, RotaryPositionsTurnTheSameWhateverWasTurnedBefore) {
  std::vector<RotaryAngles> kinds(6);
  for (size_t kind = 1; kind < kinds.size(); ++kind) {  // more than are kept
    kinds[kind].frequencies = at::tensor({0.9, 0.01 * static_cast<double>(kind)}, at::kDouble);
    kinds[kind].factor = kind == 5 ? 1.5 : 1;
  }
  const at::Tensor x = noise({4, 8});
  const auto turned = [&](const RotaryAngles& angles, int64_t position) {
    return rotary(x, at::full({4}, position, at::kLong), 2, 8, 1, angles);
  };
  // 3,000,000 is beyond what is kept.
  const std::vector<int64_t> positions{0, 255, 256, 1000, 3'000'000, 300, 5, 4999};
  std::vector<std::vector<at::Tensor>> first(kinds.size());
  for (size_t kind = 0; kind < kinds.size(); ++kind) {
    const c10::InferenceMode inference(kind % 2 == 0);  // training may follow on an evaluation
    for (const int64_t position : positions) first[kind].push_back(turned(kinds[kind], position));
  }
  for (size_t kind = 0; kind < kinds.size(); ++kind) {
    for (size_t i = 0; i < positions.size(); ++i) {
      EXPECT_TRUE(turned(kinds[kind], positions[i]).equal(first[kind][i])) << kind << " " << i;
      const at::Tensor plain =
          reference::rotary(x, at::full({4}, positions[i], at::kLong), 2, 8, 1, kinds[kind]);
      EXPECT_TRUE(at::allclose(first[kind][i], plain, 1e-5, 1e-5)) << kind << " " << i;
    }
    at::Tensor learned = x.clone().requires_grad_();
    rotary(learned, at::full({4}, 256, at::kLong), 2, 8, 1, kinds[kind]).sum().backward();
    EXPECT_TRUE(learned.grad().defined());
  }
}

TEST(KernelsState, ThreadsShareTheAnglesOfRotaryPositions) {
  const at::Tensor x = noise({1, 64});
  const auto all = [&] {
    std::vector<at::Tensor> turned;
    for (int64_t position = 0; position < 3000; position += 7)
      turned.push_back(rotary(x, at::full({1}, position, at::kLong), 2, 64, 1));
    return at::cat(turned);
  };
  std::vector<at::Tensor> results(4);
  std::vector<std::thread> threads;
  for (at::Tensor& result : results) threads.emplace_back([&] { result = all(); });
  for (std::thread& thread : threads) thread.join();
  for (const at::Tensor& result : results) EXPECT_TRUE(result.equal(all()));
}

TEST(KernelsState, IdsOutsideTheTableAreRefused) {
  const at::Tensor table = noise({4, 8});
  EXPECT_THROW(embed(table, at::tensor({0, 4}, at::kLong), 1, {}), c10::Error);
  EXPECT_THROW(embed(table, at::tensor({-1}, at::kLong), 1, {}), c10::Error);
}

TEST(KernelsState, ShapesThatDoNotFitAreRefused) {
  const at::Tensor x = noise({4, 10});
  EXPECT_THROW(self_attention(x, {cases::lengths({0, 4}), 2, false, {}}), c10::Error);
  EXPECT_THROW(swiglu_dropout(noise({4, 9}), {}), c10::Error);
  EXPECT_THROW(dropout(x, cases::third(3)), c10::Error);
  EXPECT_THROW(dropout(x, {.p = 1.0, .key = 1, .row_keys = at::arange(4, at::kLong)}), c10::Error);
  EXPECT_THROW(rotary(x, at::arange(3, at::kLong), 1, 10, 1), c10::Error);
  EXPECT_THROW(kernels::linear(x, noise({3, 9})), c10::Error);
}

TEST(KernelsState, EmptyBatchesGiveEmptyResults) {
  const at::Tensor none = at::empty({0, 16});
  EXPECT_EQ(kernels::linear(none, noise({8, 16})).sizes(), at::IntArrayRef({0, 8}));
  EXPECT_EQ(embed(noise({4, 16}), at::empty({0}, at::kLong), 1, {}).size(0), 0);
  EXPECT_EQ(rotary(none, at::empty({0}, at::kLong), 2, 16, 1).size(0), 0);
  EXPECT_EQ(self_attention(at::empty({0, 48}), {cases::lengths({0}), 2, false, {}}).size(0), 0);
}

}  // namespace
}  // namespace stretto::kernels
