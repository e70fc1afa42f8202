#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/pairs/pair_columns.h"
#include "models/decoder.h"
#include "models/encoder.h"
#include "models/packed.h"
#include "models/parts.h"
#include "tests/text/special_ids.h"

/// Batches, and what encoders and decoders of every family are asked for. Header of tests alone.
namespace stretto::models::testing {

constexpr int64_t kRows = 24, kWidth = 16;

inline data::PackedTokens sequences(const std::vector<std::vector<int64_t>>& all) {
  data::PackedTokens tokens;
  for (const auto& ids : all) {
    tokens.append(ids);
  }
  return tokens;
}

/// Sequences of one token, of fewer than a kernel's taps, and of more.
inline data::Batch first_batch() {
  return data::pair_batch({17, 4, 99}, sequences({{5, 9, 14, 7, 10, 12, 3}, {3}, {20, 11, 6, 3}}),
                          sequences({{10, 4, 3}, {13, 12, 5, 18, 19, 15, 3}, {3}}));
}

inline data::Batch second_batch() {
  return data::pair_batch({1000, 2}, sequences({{4, 4, 15, 3}, {16, 3}}),
                          sequences({{6, 7, 8, 9, 3}, {20, 3}}));
}

inline nn::PackedRows sources(const data::Batch& batch) {
  return pack(data::source(batch), &batch.sample_ids, at::kCPU);
}
inline nn::PackedRows targets(const data::Batch& batch) {
  return pack(shift_right(data::target(batch), stretto::testing::kSpecials.bos), &batch.sample_ids,
              at::kCPU);
}

inline PartSetup setup_of(const char* name, at::Device device = at::kCPU) {
  return {.init = nn::Init(3, device).child(name),
          .d_model = kWidth,
          .memory_width = kWidth,
          .rows = kRows,
          .pad = 0,
          .first_site = std::string(name) == "encoder" ? kEncoderSites : kDecoderSites};
}

/// Rows of an encoder that has no other values than its keys, or has.
inline Encoded any_memory(const data::Batch& batch, at::ScalarType dtype, bool has_values) {
  const nn::PackedRows rows = sources(batch);
  const auto numbers = [&](uint64_t seed) {
    const auto generator = at::detail::createCPUGenerator(seed);
    return at::randn({rows.ids.size(0), kWidth}, generator, at::kDouble).to(dtype);
  };
  return {.rows = rows,
          .keys = numbers(1),
          .values = has_values ? numbers(2) : at::Tensor(),
          .state = {}};
}

/// The gradients of sum(rows * fixed numbers), which are taken away from the module.
inline std::vector<at::Tensor> gradients_of(torch::nn::Module& module, const at::Tensor& rows) {
  const auto generator = at::detail::createCPUGenerator(7);
  (rows * at::randn(rows.sizes(), generator, at::kDouble).to(rows.scalar_type())).sum().backward();
  std::vector<at::Tensor> all;
  for (at::Tensor& parameter : module.parameters()) {
    all.push_back(parameter.grad().defined() ? parameter.grad().flatten().clone()
                                             : at::zeros_like(parameter).flatten());
    parameter.mutable_grad() = at::Tensor();
  }
  return all;
}

inline double relative_distance(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).norm().item<double>() / b.norm().item<double>();
}

/// Rows and gradients are the same as those of `expected`, a slow way to compute the same rows.
template <class Rows, class SlowRows>
void expect_same(torch::nn::Module& module, const Rows& packed, const SlowRows& expected,
                 double tolerance) {
  const at::Tensor rows = packed(), slow = expected();
  ASSERT_EQ(rows.sizes(), slow.sizes());
  EXPECT_LT(relative_distance(rows, slow), tolerance);
  EXPECT_LT(
      relative_distance(at::cat(gradients_of(module, rows)), at::cat(gradients_of(module, slow))),
      tolerance);
}

inline void expect_a_gradient_for_every_parameter(torch::nn::Module& module,
                                                  const at::Tensor& rows) {
  const auto found = gradients_of(module, rows);
  const auto names = module.named_parameters();
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_GT(found[i].abs().sum().item<double>(), 0) << names[i].key();
  }
}

/// Two lanes a source; the second is fed another token at each step, then follows the first.
/// Sources leave when their targets end.
inline void expect_steps_of_teacher_forcing(Decoder& decoder, const Encoded& memory,
                                            const data::Batch& batch, double tolerance) {
  const torch::NoGradGuard no_grad;
  const nn::PackedRows input = targets(batch);
  const at::Tensor expected = decoder.forward(input, memory, {});
  const auto steps = decoder.start(memory, 2);
  std::vector<int64_t> alive;
  for (int64_t i = 0; i < batch.num_sequences(); ++i) alive.push_back(i);
  for (int64_t t = 0; !alive.empty(); ++t) {
    std::vector<int64_t> tokens, parents, next;
    for (const int64_t i : alive) {
      const auto token =
          input.ids[data::target(batch).offsets[static_cast<size_t>(i)] + t].item<int64_t>();
      tokens.insert(tokens.end(), {token, (token + 1) % kRows});
    }
    const at::Tensor rows = steps->step(at::tensor(tokens, at::kLong));
    for (size_t k = 0; k < alive.size(); ++k) {
      const auto lane = static_cast<int64_t>(2 * k);
      const at::Tensor wanted =
          expected[data::target(batch).offsets[static_cast<size_t>(alive[k])] + t];
      EXPECT_LT(relative_distance(rows[lane], wanted), tolerance)
          << "source " << alive[k] << ", step " << t;
      if (t + 1 == data::target(batch).length(alive[k])) continue;
      next.push_back(alive[k]);
      parents.insert(parents.end(), {lane, lane});
    }
    alive = next;
    if (!alive.empty()) steps->reorder(parents);
  }
}

/// Lanes of one source that change places take their histories along.
inline void expect_lanes_to_keep_their_histories(Decoder& decoder, const Encoded& memory) {
  const torch::NoGradGuard no_grad;
  const auto swapped = decoder.start(memory, 2), straight = decoder.start(memory, 2);
  for (int64_t t = 0; t < 20; ++t) {
    const at::Tensor tokens = at::tensor({4 + t % 7, 5 + t % 11}, at::kLong);
    const bool odd = t % 2 == 1;
    const at::Tensor a = straight->step(tokens), b = swapped->step(odd ? tokens.flip(0) : tokens);
    EXPECT_LT(relative_distance(odd ? b.flip(0) : b, a), 1e-5) << "step " << t;
    swapped->reorder({1, 0});
  }
}

inline void expect_lanes_to_keep_their_histories(Decoder& decoder) {
  data::Batch batch = first_batch();
  batch = data::pair_batch({1}, data::source(data::part(batch, 0, 1)));
  expect_lanes_to_keep_their_histories(decoder, any_memory(batch, at::kFloat, true));
}

/// prefill() gives what as many steps end with, and both go on alike: through lanes that change
/// places and a source that leaves. @param memory  of three sources
inline void expect_prefill_of_steps(Decoder& decoder, const Encoded& memory, int64_t length,
                                    double tolerance) {
  const torch::NoGradGuard no_grad;
  constexpr int64_t kSources = 3, kLanes = 2;
  const auto token = [](int64_t lane, int64_t t) { return 4 + (7 * lane + 5 * t) % 19; };
  at::Tensor prompts = at::empty({kSources, length}, at::kLong);
  for (int64_t i = 0; i < kSources; ++i)
    for (int64_t t = 0; t < length; ++t) prompts[i][t] = token(i, t);
  const auto filled = decoder.start(memory, kLanes), stepped = decoder.start(memory, kLanes);
  const at::Tensor got = filled->prefill(prompts, kLanes);
  at::Tensor want;
  for (int64_t t = 0; t < length; ++t) {
    want = stepped->step(prompts.select(1, t).repeat_interleave(kLanes).contiguous());
  }
  ASSERT_EQ(got.sizes(), want.sizes());
  EXPECT_LT(relative_distance(got, want), tolerance);
  std::vector<int64_t> parents{1, 1, 3, 2, 4, 5};
  for (int64_t t = 0; t < 40; ++t) {
    if (t == 8) parents = {1, 0, 4, 5};  // the second source is done
    if (t > 8) parents = {1, 0, 3, 2};
    filled->reorder(parents);
    stepped->reorder(parents);
    std::vector<int64_t> ids;
    for (size_t lane = 0; lane < parents.size(); ++lane) {
      ids.push_back(token(static_cast<int64_t>(lane), length + t));
    }
    const at::Tensor tokens = at::tensor(ids, at::kLong);
    EXPECT_LT(relative_distance(filled->step(tokens), stepped->step(tokens)), tolerance) << t;
  }
}

inline void expect_no_look_ahead(Decoder& decoder, const Encoded& memory,
                                 const data::Batch& batch) {
  const torch::NoGradGuard no_grad;
  const nn::PackedRows input = targets(batch);
  const at::Tensor before = decoder.forward(input, memory, {});
  const int64_t first = data::target(batch).offsets[1],
                changed = first + 4;  // in the longest sequence
  nn::PackedRows other = input;
  other.ids = input.ids.clone();
  other.ids[changed] = 22;
  const at::Tensor moved = (decoder.forward(other, memory, {}) - before).abs().amax(1);
  for (int64_t row = 0; row < moved.size(0); ++row) {
    const bool may_move = row >= changed && row < data::target(batch).offsets[2];
    if (may_move) {
      EXPECT_GT(moved[row].item<double>(), 0) << "row " << row;
    } else {
      EXPECT_EQ(moved[row].item<double>(), 0) << "row " << row;
    }
  }
}

/// One batch in training has the rows of its parts; another key has others.
inline void expect_dropout_without_regard_to_the_cut(Encoder& encoder, Decoder& decoder) {
  const torch::NoGradGuard no_grad;
  const auto rows_of = [&](const data::Batch& batch, uint64_t key) {
    const ForwardContext context{.training = true, .dropout_key = key};
    const Encoded memory = encoder.forward(sources(batch), context);
    return decoder.forward(targets(batch), memory, context);
  };
  const data::Batch a = first_batch(), b = second_batch();
  const at::Tensor whole = rows_of(data::concatenate({a, b}), 12345);
  const at::Tensor parts = at::cat({rows_of(a, 12345), rows_of(b, 12345)});
  EXPECT_LT(relative_distance(parts, whole), 1e-5);
  EXPECT_GT(relative_distance(rows_of(a, 1), rows_of(a, 2)), 1e-3);
  const at::Tensor plain = decoder.forward(targets(a), encoder.forward(sources(a), {}), {});
  EXPECT_GT(relative_distance(rows_of(a, 1), plain), 1e-3);
}

inline void expect_alignments(Decoder& decoder, const Encoded& memory, const data::Batch& batch,
                              int64_t num_layers) {
  const nn::PackedRows input = targets(batch);
  const auto last = decoder.attention(input, memory, -1);
  ASSERT_EQ(last.size(), static_cast<size_t>(batch.num_sequences()));
  for (int64_t i = 0; i < batch.num_sequences(); ++i) {
    const at::Tensor& block = last[static_cast<size_t>(i)];
    EXPECT_EQ(block.sizes(),
              (std::vector<int64_t>{data::target(batch).length(i), data::source(batch).length(i)}));
    EXPECT_TRUE(at::allclose(block.sum(1), at::ones({block.size(0)}, block.options())));
  }
  EXPECT_TRUE(at::equal(last[0], decoder.attention(input, memory, num_layers - 1)[0]));
  EXPECT_FALSE(at::equal(last[0], decoder.attention(input, memory, 0)[0]));
  EXPECT_THROW(decoder.attention(input, memory, num_layers), c10::Error);
}

/// Rows of several sequences as a rectangle [B, T, …], zero behind their ends, and back.
class Rectangle {
 public:
  explicit Rectangle(const data::PackedTokens& tokens) : offsets_(tokens.offsets) {
    for (size_t i = 0; i + 1 < offsets_.size(); ++i) {
      longest_ = std::max<int64_t>(longest_, offsets_[i + 1] - offsets_[i]);
    }
  }

  at::Tensor of(const at::Tensor& rows) const {
    std::vector<at::Tensor> all;
    for (size_t i = 0; i + 1 < offsets_.size(); ++i) {
      const at::Tensor own = rows.slice(0, offsets_[i], offsets_[i + 1]);
      std::vector<int64_t> behind = own.sizes().vec();
      behind[0] = longest_ - own.size(0);
      all.push_back(at::cat({own, at::zeros(behind, own.options())}));
    }
    return at::stack(all);
  }

  at::Tensor rows(const at::Tensor& rectangle) const {
    std::vector<at::Tensor> all;
    for (size_t i = 0; i + 1 < offsets_.size(); ++i) {
      all.push_back(rectangle[static_cast<int64_t>(i)].slice(0, 0, offsets_[i + 1] - offsets_[i]));
    }
    return at::cat(all);
  }

  /// 1 where there is a row, 0 behind the ends: [B, T].
  at::Tensor mask(at::ScalarType dtype) const { return of(at::ones({offsets_.back()}, dtype)); }

 private:
  std::vector<int32_t> offsets_;
  int64_t longest_ = 0;
};

inline int64_t count_parameters(const torch::nn::Module& module) {
  int64_t count = 0;
  for (const at::Tensor& parameter : module.parameters()) count += parameter.numel();
  return count;
}

}  // namespace stretto::models::testing
