#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "data/pairs/pair_columns.h"
#include "tests/models/plain_recurrent.h"
#include "tests/models/recurrent_pairings.h"
#include "tests/text/special_ids.h"

namespace stretto::models {
namespace {

using namespace testing::recurrent;

at::Tensor plain_rows(const Pairing& made, const Joined& joined, const data::Batch& batch) {
  const testing::PlainRecurrent plain(made.encoder, made.decoder, joined);
  const data::PackedTokens input =
      shift_right(data::target(batch), stretto::testing::kSpecials.bos);
  std::vector<at::Tensor> rows;
  for (int64_t i = 0; i < input.num_sequences(); ++i) {
    rows.push_back(plain.decode(ids_of(input, i), plain.encode(ids_of(data::source(batch), i))));
  }
  return at::cat(rows);
}

TEST(RecurrentParts, PackedRowsAndGradientsEqualPlainOnes) {
  for (const Pairing& made : pairings()) {
    for (const auto dtype : {at::kDouble, at::kFloat}) {
      SCOPED_TRACE(made.text);
      Joined joined(made, dtype);
      const double bound = dtype == at::kDouble ? 1e-10 : 2e-5;
      const at::Tensor packed = joined.rows(three_pairs(), {});
      EXPECT_EQ(packed.size(1), kModelWidth);
      probe(packed).backward();
      const at::Tensor packed_gradients = taken_gradients(joined);
      const at::Tensor plain = plain_rows(made, joined, three_pairs());
      probe(plain).backward();
      EXPECT_LT(apart(packed, plain), bound);
      EXPECT_LT(apart(packed_gradients, taken_gradients(joined)), 10 * bound);
    }
  }
}

TEST(RecurrentParts, EveryParameterGetsAGradient) {
  for (const Pairing& made : pairings()) {
    SCOPED_TRACE(made.text);
    const Joined joined(made);
    probe(joined.rows(three_pairs(), {})).backward();
    for (const auto& item : joined.named_parameters()) {
      ASSERT_TRUE(item.value().grad().defined()) << item.key();
      EXPECT_GT(item.value().grad().abs().sum().item<double>(), 0) << item.key();
    }
  }
}

TEST(RecurrentParts, StepsHaveTheRowsOfTeacherForcing) {
  for (const Pairing& made : pairings()) {
    for (const auto dtype : {at::kDouble, at::kFloat}) {
      SCOPED_TRACE(made.text);
      const torch::NoGradGuard no_grad;
      const Joined joined(made, dtype);
      const data::Batch batch = three_pairs();
      const data::PackedTokens input =
          shift_right(data::target(batch), stretto::testing::kSpecials.bos);
      const at::Tensor expected = joined.rows(batch, {});
      // Two lanes a source; the second of each goes astray and then follows the first.
      const auto steps = joined.decoder->start(
          joined.encoder->forward(pack(data::source(batch), nullptr, at::kCPU), {}), 2);
      std::vector<size_t> alive{0, 1, 2};
      for (int32_t t = 0; !alive.empty(); ++t) {
        std::vector<int64_t> tokens, parents;
        std::vector<size_t> next;
        for (const size_t i : alive) {
          const int64_t token = input.values[static_cast<size_t>(input.offsets[i] + t)];
          tokens.insert(tokens.end(), {token, (token + 5) % kWords});
        }
        const at::Tensor rows = steps->step(at::tensor(tokens));
        for (size_t k = 0; k < alive.size(); ++k) {
          const at::Tensor wanted = expected[input.offsets[alive[k]] + t];
          EXPECT_LT((rows[static_cast<int64_t>(2 * k)] - wanted).abs().max().item<double>(), 1e-5)
              << "source " << alive[k] << ", step " << t;
          if (input.offsets[alive[k]] + t + 1 == input.offsets[alive[k] + 1]) continue;
          next.push_back(alive[k]);
          parents.insert(parents.end(), 2, static_cast<int64_t>(2 * k));
        }
        alive = next;
        if (!alive.empty()) steps->reorder(parents);
      }
    }
  }
}

TEST(RecurrentParts, LanesThatSwapPlacesKeepTheirHistories) {
  const torch::NoGradGuard no_grad;
  const Joined joined(gnmt(), at::kFloat);
  const Encoded memory =
      joined.encoder->forward(pack(data::source(three_pairs()), nullptr, at::kCPU), {});
  const auto straight = joined.decoder->start(memory, 2),
             swapped = joined.decoder->start(memory, 2);
  const at::Tensor turned = at::tensor({1, 0, 3, 2, 5, 4});
  for (int64_t t = 0; t < 8; ++t) {
    const at::Tensor tokens = (at::arange(6, at::kLong) * 7 + t) % kWords;
    const bool odd = t % 2 == 1;
    const at::Tensor a = straight->step(tokens);
    const at::Tensor b = swapped->step(odd ? tokens.index_select(0, turned) : tokens);
    EXPECT_TRUE(at::allclose(a, odd ? b.index_select(0, turned) : b, 1e-5, 1e-6)) << "step " << t;
    swapped->reorder({1, 0, 3, 2, 5, 4});
  }
}

at::Tensor first_rows(const Pairing& made, int64_t last_token) {
  const torch::NoGradGuard no_grad;
  data::PackedTokens src;
  add(src, {5, 9, last_token});
  return Joined(made).encoder->forward(pack(src, nullptr, at::kCPU), {}).keys[0];
}

TEST(RecurrentParts, OnlyABidirectionalEncoderSeesWhatComesLater) {
  Pairing made = gnmt();
  EXPECT_FALSE(at::equal(first_rows(made, 3), first_rows(made, 4)));
  made.encoder.bidirectional = false;
  EXPECT_TRUE(at::equal(first_rows(made, 3), first_rows(made, 4)));
}

TEST(RecurrentParts, BackwardIsForwardOfTheReversedSequence) {
  const torch::NoGradGuard no_grad;
  const RecurrentPart part(gnmt().encoder);
  const RecurrentLayer layer(nn::Init(5, at::kCPU), part, kModelWidth, 6);
  const at::Tensor x = at::arange(5 * kModelWidth, at::kFloat).sin().view({5, kModelWidth});
  data::PackedTokens tokens;
  add(tokens, {1, 2, 3, 4, 5});
  const nn::PackedRows rows = pack(tokens, nullptr, at::kCPU);
  const RecurrentPass pass(part, rows, {}, kEncoderSites);
  const auto back = layer->forward(x, {}, pass.of(0, Direction::kBackward));
  const auto ahead = layer->forward(x.flip(0), {}, pass.of(0, Direction::kForward));
  EXPECT_TRUE(at::allclose(back.h, ahead.h.flip(0), 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(back.last.h, back.h.narrow(0, 0, 1), 1e-5, 1e-6));
}

TEST(RecurrentParts, ALayerThatAddsNothingLeavesItsResidual) {
  const torch::NoGradGuard no_grad;
  Pairing made = pairing("", "lstm", 2);
  made.encoder.bidirectional = false;
  made.encoder.residual_from = 0;
  const Joined joined(made);
  at::Tensor table;
  for (const auto& item : joined.encoder->named_parameters()) {
    if (item.key() == "embedding.weight") {
      table = item.value();
    } else {
      item.value().zero_();
    }
  }
  const nn::PackedRows src = pack(data::source(three_pairs()), nullptr, at::kCPU);
  const at::Tensor expected = table.index_select(0, src.ids);
  EXPECT_TRUE(at::allclose(joined.encoder->forward(src, {}).keys, expected));
}

TEST(RecurrentParts, StatesOfTheEncoderAreThoseBehindItsLastTokens) {
  const torch::NoGradGuard no_grad;
  Pairing made = pairing("", "lstm", 2);
  made.encoder.bidirectional_layers = 2;
  const Encoded encoded =
      Joined(made).encoder->forward(pack(data::source(three_pairs()), nullptr, at::kCPU), {});
  ASSERT_EQ(encoded.state.size(), 4u);
  const at::Tensor h = encoded.state[2];  // of the upper layer
  ASSERT_EQ(h.sizes(), (std::vector<int64_t>{3, kModelWidth}));
  const int64_t half = kModelWidth / 2;
  EXPECT_TRUE(at::equal(h[0].narrow(0, 0, half), encoded.keys[4].narrow(0, 0, half)));
  EXPECT_TRUE(at::equal(h[0].narrow(0, half, half), encoded.keys[0].narrow(0, half, half)));
  EXPECT_TRUE(at::equal(h[1], encoded.keys[5]));  // a sequence of one token
}

TEST(RecurrentParts, AttentionIsThatOfThePlainForm) {
  for (const Pairing& made : pairings()) {
    SCOPED_TRACE(made.text);
    const torch::NoGradGuard no_grad;
    const Joined joined(made);
    const data::Batch batch = three_pairs();
    const data::PackedTokens input =
        shift_right(data::target(batch), stretto::testing::kSpecials.bos);
    const Encoded memory =
        joined.encoder->forward(pack(data::source(batch), nullptr, at::kCPU), {});
    const auto blocks = joined.decoder->attention(pack(input, nullptr, at::kCPU), memory, -1);
    ASSERT_EQ(blocks.size(), 3u);
    const testing::PlainRecurrent plain(made.encoder, made.decoder, joined);
    for (int64_t i = 0; i < 3; ++i) {
      at::Tensor weights;
      plain.decode(ids_of(input, i), plain.encode(ids_of(data::source(batch), i)), &weights);
      EXPECT_TRUE(at::allclose(blocks[static_cast<size_t>(i)], weights)) << "sequence " << i;
    }
  }
}

}  // namespace
}  // namespace stretto::models
