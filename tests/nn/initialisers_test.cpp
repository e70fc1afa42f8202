#include "nn/initialisers.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "models/registry.h"
#include "nn/embedding.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/time_convolution.h"
#include "tests/base/failure.h"
#include "tests/text/special_ids.h"

namespace stretto::nn {
namespace {

constexpr uint64_t kKey = 0x5eed;

InitRule rule(const std::string& entry) {
  InitRule read;
  const auto problem = read_init_rule(entry, read);
  EXPECT_FALSE(problem) << problem->what;
  return read;
}

at::Tensor drawn_by(const std::string& name, const DrawnShape& shape) {
  return draw(rule("* " + name), shape, kKey);
}

TEST(Initialisers, HaveTheMomentsAndBoundsOfTheirPapers) {
  struct Case {
    const char* name;
    double deviation;
    double bound;  ///< 0 = none
  };
  // 400 rows of 300: fan_in 300, fan_out 400.
  const double third = 1 / std::sqrt(3.0), xavier = std::sqrt(6.0 / 700), he = std::sqrt(6.0 / 300);
  // Deviation of a standard normal between -2 and 2: sqrt(1 - 4 phi(2) / (2 Phi(2) - 1)).
  const double between = std::sqrt(1 - 4 * 0.05399096651318806 / 0.9544997361036416);
  for (const Case& c :
       {Case{"xavier_uniform", xavier * third, xavier},
        Case{"xavier_uniform gain=0.5", 0.5 * xavier * third, 0.5 * xavier},
        Case{"xavier_normal", std::sqrt(2.0 / 700), 0}, Case{"he_uniform", he * third, he},
        Case{"he_normal gain=2", 2 * std::sqrt(2.0 / 300), 0},
        Case{"uniform a=0.1", 0.1 * third, 0.1}, Case{"normal std=0.02", 0.02, 0},
        Case{"truncated_normal std=0.02", 0.02 * between, 0.04}}) {
    for (const auto dtype : {at::kFloat, at::kDouble}) {
      SCOPED_TRACE(c.name);
      const at::Tensor values = drawn_by(c.name, {.rows = 400, .columns = 300, .dtype = dtype});
      ASSERT_EQ(values.scalar_type(), dtype);
      ASSERT_EQ(values.sizes(), (std::vector<int64_t>{400, 300}));
      const at::Tensor wide = values.to(at::kDouble);
      EXPECT_NEAR(wide.mean().item<double>(), 0, 0.02 * c.deviation);
      EXPECT_NEAR(wide.std().item<double>(), c.deviation, 0.01 * c.deviation);
      const double largest = wide.abs().max().item<double>();
      if (c.bound > 0) {
        EXPECT_LE(largest, c.bound * (1 + 1e-7));
        EXPECT_GT(largest, 0.99 * c.bound);
      } else {
        EXPECT_GT(largest, 3.5 * c.deviation);
      }
    }
  }
}

TEST(Initialisers, OfConstantsFillWhateverTheShape) {
  EXPECT_TRUE(at::equal(drawn_by("zeros", {.columns = 3}), at::zeros({1, 3})));
  EXPECT_TRUE(at::equal(drawn_by("ones", {.rows = 2, .columns = 3}), at::ones({2, 3})));
  EXPECT_TRUE(at::equal(drawn_by("constant value=-0.5", {.columns = 3, .dtype = at::kDouble}),
                        at::full({1, 3}, -0.5, at::kDouble)));
}

TEST(Initialisers, TakeTheFanOfAMergedPart) {
  const auto largest = [](const char* name, int64_t parts) {
    return drawn_by(name, {.rows = 300, .columns = 50, .parts = parts}).abs().max().item<double>();
  };
  EXPECT_NEAR(largest("xavier_uniform", 3), std::sqrt(6.0 / 150), 1e-3);
  EXPECT_NEAR(largest("xavier_uniform", 1), std::sqrt(6.0 / 350), 1e-3);
  EXPECT_NEAR(largest("he_uniform", 3), std::sqrt(6.0 / 50), 1e-3) << "fan_in is the same";
}

TEST(Initialisers, OrthogonalPartsHaveOrthonormalRowsOrColumns) {
  for (const auto& [rows, columns] : {std::pair{40, 24}, std::pair{24, 40}, std::pair{24, 24}}) {
    for (const int64_t parts : {1, 3}) {
      for (const auto dtype : {at::kFloat, at::kDouble}) {
        const at::Tensor merged =
            drawn_by("orthogonal gain=2",
                     {.rows = parts * rows, .columns = columns, .parts = parts, .dtype = dtype});
        for (const at::Tensor& part : merged.chunk(parts)) {
          ASSERT_EQ(part.size(0), rows);
          const at::Tensor q = part.to(at::kDouble) / 2;
          const at::Tensor product = rows >= columns ? q.t().mm(q) : q.mm(q.t());
          const at::Tensor one = at::eye(product.size(0), at::kDouble);
          EXPECT_LT((product - one).abs().max().item<double>(), dtype == at::kFloat ? 1e-6 : 1e-11)
              << rows << " x " << columns;
        }
      }
    }
  }
}

TEST(Initialisers, OrthogonalIsTheQOfNormalsWhoseRHasAPositiveDiagonal) {
  constexpr int64_t kRows = 30, kColumns = 12;
  const at::Tensor normals = at::empty({kRows, kColumns}, at::kDouble);
  for (int64_t row = 0; row < kRows; ++row) {
    RandomStream stream(kKey, static_cast<uint64_t>(row));
    for (int64_t col = 0; col < kColumns; ++col) {
      normals.data_ptr<double>()[row * kColumns + col] = stream.normal();
    }
  }
  const auto [q, r] = at::linalg_qr(normals, "reduced");
  const at::Tensor expected = q * at::sign(at::diagonal(r));
  const at::Tensor got =
      drawn_by("orthogonal", {.rows = kRows, .columns = kColumns, .dtype = at::kDouble});
  EXPECT_LT((got - expected).abs().max().item<double>(), 1e-12);
}

TEST(Initialisers, DoNotDependOnThreads) {
  const int before = at::get_num_threads();
  const DrawnShape shape{.rows = 500, .columns = 400};
  for (const char* name : {"orthogonal", "truncated_normal std=1", "xavier_normal"}) {
    at::set_num_threads(1);
    const at::Tensor one = drawn_by(name, shape);
    at::set_num_threads(4);
    EXPECT_TRUE(at::equal(one, drawn_by(name, shape))) << name;
  }
  at::set_num_threads(before);
}

TEST(Initialisers, OfDoublesAreThoseOfFloatsBeforeTheyAreRounded) {
  for (const char* name : {"orthogonal", "normal std=0.1", "he_uniform"}) {
    const at::Tensor wide = drawn_by(name, {.rows = 9, .columns = 7, .dtype = at::kDouble});
    EXPECT_TRUE(at::equal(wide.to(at::kFloat), drawn_by(name, {.rows = 9, .columns = 7}))) << name;
  }
}

Init ruled(const std::vector<std::string>& entries, uint64_t seed = 1) {
  std::vector<InitRule> rules;
  for (const auto& entry : entries) rules.push_back(rule(entry));
  return Init(seed, at::kCPU).with_rules(rules);
}

TEST(InitRules, ARuleDrawsWhatAModelsOwnRuleOfThatKindDraws) {
  const Init plain(1, at::kCPU);
  EXPECT_TRUE(at::equal(ruled({"* xavier_uniform"}).normal("weight", 30, 20, 5),
                        plain.xavier_uniform("weight", 30, 20)));
  EXPECT_TRUE(at::equal(ruled({"* normal std=0.5"}).xavier_uniform("weight", 30, 20, 3),
                        plain.normal("weight", 30, 20, 0.5)));
}

TEST(InitRules, TheFirstThatMatchesCountsAndTheRestKeepTheModelsRule) {
  const Init plain(1, at::kCPU), init = ruled({"a.weight ones", "a.* zeros", "b.* zeros"});
  EXPECT_TRUE(at::equal(init.child("a").normal("weight", 2, 3, 1), at::ones({2, 3})));
  EXPECT_TRUE(at::equal(init.child("a").normal("other", 2, 3, 1), at::zeros({2, 3})));
  EXPECT_TRUE(at::equal(init.child("c").normal("weight", 2, 3, 1),
                        plain.child("c").normal("weight", 2, 3, 1)));
  EXPECT_TRUE(init.child("a").has_rule("weight"));
  EXPECT_FALSE(init.child("c").has_rule("weight"));
}

TEST(InitRules, ReachVectorsByTheirNamesAndNoBuffers) {
  const Init init = ruled({"norm.bias uniform a=0.5", "* constant value=3"});
  const LayerNorm norm(init.child("norm"), 200);
  EXPECT_TRUE(at::equal(norm->weight, at::full({200}, 3.0F)));
  EXPECT_LE(norm->bias.abs().max().item<double>(), 0.5);
  EXPECT_NEAR(norm->bias.std().item<double>(), 0.5 / std::sqrt(3.0), 0.04);
  EXPECT_TRUE(at::equal(init.buffer(2, 1.0), at::ones({2})));
}

TEST(InitRules, OfMatricesRefuseAVector) {
  const Error error = testing::failure(
      ExitCode::kUsage, [] { Linear(ruled({"* orthogonal"}).child("output"), 3, 4); });
  EXPECT_NE(std::string(error.what()).find("reaches the vector `output.bias`"), std::string::npos)
      << error.what();
}

TEST(InitRules, LeaveALayersInvariantsAlone) {
  const Embedding table(ruled({"* ones"}), 4, 3, /*pad=*/1);
  EXPECT_TRUE(at::equal(table->weight.sum(1), torch::tensor({3.F, 0.F, 3.F, 3.F})));
  // A gain is the length of the row, so that what is drawn is what acts.
  const TimeConvolution map(ruled({"*weight constant value=2"}), 4, 5,
                            TimeConvolutionOptions{.kernel = 1, .weight_norm = true});
  EXPECT_TRUE(at::allclose(map->gain, at::full({5}, 4.0F)));
  const TimeConvolution given(ruled({"gain ones"}), 4, 5,
                              TimeConvolutionOptions{.kernel = 1, .weight_norm = true});
  EXPECT_TRUE(at::equal(given->gain, at::ones({5})));
}

std::shared_ptr<models::Seq2SeqModel> model_with(std::vector<std::string> init,
                                                 bool recurrent = false, uint64_t seed = 3) {
  models::Seq2SeqOptions options;
  options.d_model = 16;
  options.encoder = models::StackOptions{.num_layers = 1, .num_heads = 2, .ffn_dim = 24};
  if (recurrent) {
    options.decoder = models::LstmDecoderOptions{};
  } else {
    options.decoder = models::StackOptions{.num_layers = 1, .num_heads = 2, .ffn_dim = 24};
  }
  options.init = std::move(init);
  return models::make_model(options,
                            {.src_rows = 12,
                             .tgt_rows = 12,
                             .num_tgt_classes = 12,
                             .src_specials = stretto::testing::kSpecials,
                             .tgt_specials = stretto::testing::kSpecials,
                             .seed = seed},
                            nullptr);
}

TEST(InitRules, OfAModelChangeTheTensorsThatTheyNameAndNoOther) {
  for (const bool recurrent : {false, true}) {
    const auto plain = model_with({}, recurrent)->named_parameters();
    const auto model = model_with({"encoder.*.weight normal std=0.3", "*.bias uniform a=0.2",
                                   "decoder.attention.score ones"},
                                  recurrent)
                           ->named_parameters();
    ASSERT_EQ(model.size(), plain.size());
    int changed = 0;
    for (const auto& item : plain) {
      const std::string& name = item.key();
      const bool named = (name.starts_with("encoder.") && name.ends_with(".weight")) ||
                         name.ends_with(".bias") || name == "decoder.attention.score";
      EXPECT_EQ(!at::equal(item.value(), model[name]), named) << name;
      changed += named ? 1 : 0;
    }
    EXPECT_GE(changed, 8);
  }
}

TEST(InitRules, ABiasThatIsNamedHasNoForgetBiasOfItsOwn) {
  const auto bias = [](std::vector<std::string> init) {
    const auto parameters = model_with(std::move(init), /*recurrent=*/true)->named_parameters();
    return parameters["decoder.layers.0.input.bias"].detach();
  };
  EXPECT_GT(bias({}).max().item<double>(), 0);
  EXPECT_TRUE(at::equal(bias({"decoder.*.bias zeros"}), at::zeros_like(bias({}))));
}

TEST(InitRules, OfAModelAreAFunctionOfSeedAndName) {
  const auto weight = [](std::vector<std::string> init, uint64_t seed) {
    const auto parameters = model_with(std::move(init), false, seed)->named_parameters();
    return parameters["encoder.layers.0.self_attention.qkv.weight"].detach();
  };
  const at::Tensor one = weight({"*.qkv.weight orthogonal"}, 3);
  EXPECT_TRUE(at::equal(one, weight({"*.bias ones", "*.qkv.weight orthogonal"}, 3)));
  EXPECT_FALSE(at::equal(one, weight({"*.qkv.weight orthogonal"}, 4)));
  for (const at::Tensor& part : one.chunk(3)) {
    EXPECT_LT((part.mm(part.t()) - at::eye(16)).abs().max().item<double>(), 1e-6);
  }
}

}  // namespace
}  // namespace stretto::nn
