#include "families/text/engine/embedder.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "base/random.h"
#include "models/packed.h"

namespace stretto::tasks {
namespace {

constexpr int64_t kIds = 40, kWidth = 16;

std::shared_ptr<models::TextModel> small_encoder() {
  models::TextModelSetup setup;
  setup.model.preset = "none";
  setup.model.num_layers = 2;
  setup.model.d_model = kWidth;
  setup.model.num_heads = 2;
  setup.model.max_positions = 64;
  setup.model.pooling = "cls";
  setup.model.head = "none";
  setup.model.init_std = 0.5;
  setup.rows = kIds;
  return models::make_text_model(setup);
}

std::vector<text::EncodedText> texts_of(const std::vector<size_t>& lengths) {
  std::vector<text::EncodedText> texts;
  RandomStream random(3);
  for (const size_t length : lengths) {
    text::EncodedText text;
    for (size_t i = 0; i < length; ++i) {
      text.ids.push_back(static_cast<int64_t>(random.below(kIds)));
      text.segments.push_back(static_cast<int64_t>(i % 2));
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

/// Rows of the encoder for a text alone, [tokens, D].
at::Tensor rows_alone(models::TextModel& model, const text::EncodedText& text) {
  const torch::NoGradGuard no_grad;
  model.eval();
  data::PackedTokens ids, segments;
  ids.append(text.ids);
  segments.append(text.segments);
  return model.encode(models::pack_text(ids, &segments, nullptr, at::kCPU), {});
}

const std::vector<size_t> kLengths{3, 1, 20, 7, 3, 64, 12, 2, 2, 9};

TEST(Embedder, GivesEachTextTheMeanOfItsRowsInTheirOrder) {
  const auto model = small_encoder();
  const auto texts = texts_of(kLengths);
  const Embedder embedder(model, {});
  const auto vectors = embedder.embed(texts);
  EXPECT_FALSE(vectors.requires_grad());
  EXPECT_EQ(embedder.width(), kWidth);
  ASSERT_EQ(vectors.sizes(), (std::vector<int64_t>{std::ssize(texts), kWidth}));
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto wanted = rows_alone(*model, texts[i]).mean(0);
    EXPECT_TRUE(at::allclose(vectors[static_cast<int64_t>(i)], wanted, 1e-5, 1e-5)) << i;
    const auto alone = embedder.embed(std::span(texts).subspan(i, 1));
    EXPECT_TRUE(at::allclose(alone[0], wanted, 1e-5, 1e-5)) << i;
  }
}

TEST(Embedder, TakesTheFirstRowOnRequestAndNormalises) {
  const auto model = small_encoder();
  const auto texts = texts_of(kLengths);
  const auto vectors = Embedder(model, {.pooling = "cls"}).embed(texts);
  EXPECT_TRUE(at::allclose(vectors[2], rows_alone(*model, texts[2])[0], 1e-5, 1e-5));
  const auto unit = Embedder(model, {.pooling = "cls", .normalize = true}).embed(texts);
  EXPECT_TRUE(at::allclose(unit[2], vectors[2] / vectors[2].norm(), 1e-5, 1e-6));
}

}  // namespace
}  // namespace stretto::tasks
