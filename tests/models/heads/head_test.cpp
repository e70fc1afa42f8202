// What a model asks of the head behind its last layer.
#include "models/head.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>

#include "data/pairs/pair_columns.h"
#include "models/decoders/transformer.h"
#include "models/encoder_decoder.h"
#include "models/encoders/transformer.h"
#include "models/operations.h"
#include "nn/linear.h"
#include "tests/models/part_cases.h"
#include "tests/text/special_ids.h"

namespace stretto::models {
namespace {

using testing::first_batch, testing::kRows, testing::kWidth, testing::setup_of;

/// A head of another kind: layers of its own, a bias, and plain logits.
class BiasedHead : public Head {
 public:
  explicit BiasedHead(int64_t num_classes) {
    const nn::Init init = nn::Init(3, at::kCPU).child("output");
    dense_ = register_module("dense", nn::Linear(init.child("dense"), kWidth, num_classes));
  }

  kernels::CrossEntropy loss(const at::Tensor& rows, const HeadTargets& targets) override {
    ++losses;
    const at::Tensor nll = -logits(rows).log_softmax(1).gather(1, targets.labels.unsqueeze(1));
    return {.loss_sum = nll.sum(), .nll_sum = nll.detach().sum()};
  }
  at::Tensor log_probs(const at::Tensor& rows) override {
    return logits(rows).to(at::kFloat).log_softmax(1);
  }
  int64_t num_classes() const override { return dense_->weight.size(0); }
  double operations() const override { return weight_operations(*this); }
  c10::Device device() const override { return dense_->weight.device(); }

  int losses = 0;

 private:
  at::Tensor logits(const at::Tensor& rows) const { return dense_->forward(rows); }

  nn::Linear dense_{nullptr};
};

TransformerPart one_layer() {
  Seq2SeqOptions options;
  options.d_model = kWidth;
  return {options, StackOptions{.num_layers = 1, .num_heads = 2, .ffn_dim = 24}};
}

struct ModelWithHead {
  std::shared_ptr<Encoder> encoder =
      std::make_shared<TransformerEncoder>(one_layer(), setup_of("encoder"));
  std::shared_ptr<Decoder> decoder =
      std::make_shared<TransformerDecoder>(one_layer(), setup_of("decoder"));
  std::shared_ptr<BiasedHead> head;
  std::shared_ptr<EncoderDecoder> model;

  explicit ModelWithHead(int64_t num_classes) : head(std::make_shared<BiasedHead>(num_classes)) {
    model = std::make_shared<EncoderDecoder>(
        JoinedParts{.encoders = {.first = encoder}, .decoder = decoder, .head = head},
        EncoderDecoderParts{.d_model = kWidth, .tie_embeddings = "none"},
        ModelSetup{.src_specials = stretto::testing::kSpecials,
                   .tgt_specials = stretto::testing::kSpecials});
    model->to(at::kDouble);
  }
  /// The rows behind the last layer.
  at::Tensor rows(const data::Batch& batch) const {
    return decoder->forward(testing::targets(batch), encoder->forward(testing::sources(batch), {}),
                            {});
  }
};

TEST(Head, OfAnotherKindGivesTheModelItsLossAndItsParameters) {
  const ModelWithHead with(kRows);
  const data::Batch batch = first_batch();
  const auto names = with.model->named_parameters();
  EXPECT_TRUE(names.contains("output.dense.weight"));
  EXPECT_TRUE(names.contains("output.dense.bias"));
  const LossOutput got = with.model->loss(batch, {.training = true, .dropout_key = 1});
  EXPECT_EQ(with.head->losses, 1);
  got.loss_sum.backward();
  for (const auto& item : names) EXPECT_TRUE(item.value().grad().defined()) << item.key();

  const torch::NoGradGuard no_grad;
  const at::Tensor labels = at::tensor(data::target(batch).values, at::kLong);
  const at::Tensor logits =
      at::linear(with.rows(batch), names["output.dense.weight"], names["output.dense.bias"]);
  const at::Tensor want = -logits.log_softmax(1).gather(1, labels.unsqueeze(1)).sum();
  EXPECT_NEAR(with.model->loss(batch, {}).loss_sum.item<double>(), want.item<double>(), 1e-9);
}

TEST(Head, OfAnotherKindGivesSearchItsProbabilities) {
  const torch::NoGradGuard no_grad;
  const ModelWithHead with(kRows - 3);
  const data::Batch pair = data::part(first_batch(), 0, 1);
  const nn::PackedRows input = testing::targets(pair);
  const auto steps = with.model->start(data::source(pair), 1);
  EXPECT_EQ(steps->vocab_size(), kRows - 3);
  const at::Tensor want = with.head->log_probs(with.rows(pair));
  for (int64_t t = 0; t < input.ids.size(0); ++t) {
    const at::Tensor got = steps->step(input.ids.slice(0, t, t + 1));
    EXPECT_EQ(got.scalar_type(), at::kFloat);
    EXPECT_TRUE(at::allclose(got[0], want[t], 1e-4, 1e-5)) << t;
  }
}

TEST(Head, OfAnotherKindTellsItsShareOfTheOperations) {
  const double more = ModelWithHead(2 * kRows).model->operations(9, 7) -
                      ModelWithHead(kRows).model->operations(9, 7);
  EXPECT_DOUBLE_EQ(more, 7.0 * 2 * kWidth * kRows);
}

/// A decoder whose vectors of tokens are not a table.
class DecoderWithoutTable : public TransformerDecoder {
 public:
  using TransformerDecoder::TransformerDecoder;
  nn::Embedding embedding() const override { return nullptr; }
};

TEST(Head, IsTiedOnlyToADecoderWithATable) {
  EncoderDecoderParts parts{.d_model = kWidth};
  parts.encoder = [](const PartSetup& setup) {
    return std::make_shared<TransformerEncoder>(one_layer(), setup);
  };
  parts.decoder = [](const PartSetup& setup) {
    return std::make_shared<DecoderWithoutTable>(one_layer(), setup);
  };
  const ModelSetup setup{.src_rows = kRows, .tgt_rows = kRows, .num_tgt_classes = kRows};
  for (const char* tie : {"all", "decoder"}) {
    parts.tie_embeddings = tie;
    EXPECT_THROW(EncoderDecoder(parts, setup, {}), c10::Error) << tie;
  }
  parts.tie_embeddings = "none";
  EXPECT_TRUE(EncoderDecoder(parts, setup, {}).named_parameters().contains("output.weight"));
}

}  // namespace
}  // namespace stretto::models
