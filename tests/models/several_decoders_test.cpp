#include "models/several_decoders.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "data/pairs/pair_columns.h"
#include "losses/registry.h"
#include "models/option_conflicts.h"
#include "models/registry.h"
#include "nn/watch.h"
#include "tests/models/part_cases.h"
#include "tests/text/special_ids.h"

namespace stretto::models {
namespace {

using testing::first_batch, testing::kRows, testing::kWidth, testing::relative_distance,
    testing::second_batch;

const std::vector<std::string> kTies{"all", "decoder", "none"};

/// A Transformer of two layers as head `de`, an LSTM as head `fr`.
Seq2SeqOptions two_heads(const std::string& tie) {
  Seq2SeqOptions options;
  options.d_model = kWidth;
  options.encoder = StackOptions{.num_layers = 1, .num_heads = 2, .ffn_dim = 24};
  options.heads = {
      {.name = "de", .decoder = StackOptions{.num_layers = 2, .num_heads = 2, .ffn_dim = 24}},
      {.name = "fr", .decoder = LstmDecoderOptions{.num_layers = 1}}};
  options.norm = "pre";
  options.activation = "gelu";
  options.dropout = 0;
  options.tie_embeddings = tie;
  return options;
}

const ModelSetup kTwoSides{.src_rows = kRows,
                           .tgt_rows = kRows,
                           .num_tgt_classes = kRows,
                           .src_specials = stretto::testing::kSpecials,
                           .tgt_specials = stretto::testing::kSpecials};

std::shared_ptr<Seq2SeqModel> built(const Seq2SeqOptions& options) {
  return make_model(options, kTwoSides, losses::make_loss({}));
}

std::map<std::string, at::Tensor> tensors_of(const torch::nn::Module& model) {
  std::map<std::string, at::Tensor> tensors;
  for (const auto& item : model.named_parameters()) tensors[item.key()] = item.value();
  return tensors;
}

/// `decoder.x` and `output.x` of a model with one decoder, as a model with several calls them.
std::string name_in(const std::string& head, const std::string& name) {
  for (const std::string part : {"decoder", "output"}) {
    if (name.starts_with(part + ".")) return part + "s." + head + name.substr(part.size());
  }
  return name;
}

/// The model with this head alone, with the weights that it has among the others.
std::shared_ptr<Seq2SeqModel> alone(const Seq2SeqOptions& options, size_t head,
                                    const Seq2SeqModel& among) {
  const torch::NoGradGuard no_grad;
  auto model = built(model_of_head(options, head));
  model->to(at::kDouble);
  const auto from = tensors_of(among);
  for (auto& [name, tensor] : tensors_of(*model)) {
    tensor.copy_(from.at(name_in(options.heads[head].name, name)));
  }
  return model;
}

data::Batch of_stream(data::Batch batch, int64_t stream) {
  batch.stream = stream;
  return batch;
}

TEST(SeveralDecoders, CallTheirParametersByTheirHeads) {
  for (const std::string& tie : kTies) {
    SCOPED_TRACE(tie);
    const auto model = built(two_heads(tie));
    EXPECT_EQ(model->heads(), (std::vector<std::string>{"de", "fr"}));
    std::set<std::string> tables;
    for (const auto& [name, tensor] : tensors_of(*model)) {
      const bool known = name.starts_with("encoder.") || name.starts_with("decoders.de.") ||
                         name.starts_with("decoders.fr.") || name.starts_with("outputs.") ||
                         name == "embedding.weight";
      EXPECT_TRUE(known) << name;
      const bool is_table = name.ends_with("embedding.weight") || name.starts_with("outputs.");
      if (is_table && !name.ends_with("encoder.embedding.weight")) tables.insert(name);
    }
    const std::set<std::string> want =
        tie == "all" ? std::set<std::string>{"embedding.weight"}
        : tie == "decoder"
            ? std::set<std::string>{"decoders.de.embedding.weight", "decoders.fr.embedding.weight"}
            : std::set<std::string>{"decoders.de.embedding.weight", "decoders.fr.embedding.weight",
                                    "outputs.de.weight", "outputs.fr.weight"};
    for (const auto& name : want) EXPECT_TRUE(tables.contains(name)) << name;
    const auto tensors = tensors_of(*model);
    for (const auto& table : model->vocabulary_tables()) {
      EXPECT_TRUE(tensors.contains(table.parameter)) << table.parameter;
    }
    for (const auto& tied : model->tied_names()) {
      EXPECT_TRUE(tensors.contains(tied.parameter)) << tied.parameter;
      EXPECT_FALSE(tie == "none") << tied.name;
    }
  }
}

TEST(SeveralDecoders, AreEachTheModelThatTheyWouldBeAlone) {
  for (const std::string& tie : kTies) {
    const auto options = two_heads(tie);
    const auto model = built(options);
    model->to(at::kDouble);
    for (size_t head = 0; head < 2; ++head) {
      SCOPED_TRACE(tie + ", " + options.heads[head].name);
      const auto other = alone(options, head, *model);
      for (auto& parameter : model->parameters()) parameter.mutable_grad() = at::Tensor();
      const auto batch = of_stream(first_batch(), static_cast<int64_t>(head));
      const auto got = model->loss(batch, {}), want = other->loss(first_batch(), {});
      EXPECT_NEAR(got.loss_sum.item<double>(), want.loss_sum.item<double>(), 1e-9);
      EXPECT_EQ(got.target_tokens, want.target_tokens);
      got.loss_sum.backward();
      want.loss_sum.backward();
      const auto tensors = tensors_of(*model);
      for (const auto& [name, tensor] : tensors_of(*other)) {
        const auto& own = tensors.at(name_in(options.heads[head].name, name)).grad();
        ASSERT_TRUE(own.defined()) << name;
        EXPECT_LE((own - tensor.grad()).abs().max().item<double>(), 1e-9) << name;
      }
      const std::string absent = options.heads[1 - head].name;
      for (const auto& [name, tensor] : tensors) {
        if (!name.starts_with("decoders." + absent) && !name.starts_with("outputs." + absent))
          continue;
        EXPECT_FALSE(tensor.grad().defined()) << name;
      }
    }
  }
}

TEST(SeveralDecoders, DecodeStepByStepAsTheyAreTrained) {
  const torch::NoGradGuard no_grad;
  for (const std::string& tie : kTies) {
    const auto model = built(two_heads(tie));
    model->to(at::kDouble);
    for (size_t head = 0; head < 2; ++head) {
      SCOPED_TRACE(tie + ", head " + std::to_string(head));
      data::Batch pair = data::part(first_batch(), 0, 1);
      pair.stream = static_cast<int64_t>(head);
      const auto token_nll = model->loss(pair, {}).token_nll;
      const auto steps = model->head(head)->start(data::source(pair), 1);
      int64_t before = stretto::testing::kSpecials.bos;
      const auto target = data::target(pair).sequence(0);
      for (size_t t = 0; t < target.size(); ++t) {
        const auto log_probs = steps->step(at::tensor({before}, at::kLong));
        const double nll = -log_probs[0][target[t]].item<double>();
        EXPECT_NEAR(nll, token_nll[static_cast<int64_t>(t)].item<double>(), 1e-4) << t;
        before = target[t];
      }
    }
    EXPECT_THROW(model->start(data::source(first_batch()), 1), std::logic_error);
    EXPECT_THROW(model->head(2), std::out_of_range);
    EXPECT_THROW(model->loss(of_stream(first_batch(), 2), {}), std::out_of_range);
  }
}

// Each sequence of the source column is two sources.
TEST(SeveralDecoders, ReadTwoSourcesAsEachWouldAlone) {
  const data::Batch batch =
      data::pair_batch({17, 4}, testing::sequences({{5, 9, 3, 14, 7, 3}, {20, 3, 11, 6, 3}}),
                       testing::sequences({{10, 4, 3}, {13, 12, 5, 3}}));
  for (const std::string& tie : kTies) {
    Seq2SeqOptions options = two_heads(tie);
    options.encoders = {EncoderChoice(StackOptions{.num_layers = 1, .num_heads = 2, .ffn_dim = 24}),
                        EncoderChoice(LstmEncoderOptions{.num_layers = 1})};
    EXPECT_TRUE(option_conflicts(options).empty());
    const auto model = built(options);
    model->to(at::kDouble);
    const auto tensors = tensors_of(*model);
    EXPECT_TRUE(tensors.contains("encoders.1.layers.0.forward.hidden.weight"));
    EXPECT_EQ(tensors.contains("encoders.1.embedding.weight"), tie == "none");
    for (const auto& table : model->vocabulary_tables()) {
      EXPECT_TRUE(tensors.contains(table.parameter)) << table.parameter;
    }
    for (const auto& tied : model->tied_names()) {
      EXPECT_TRUE(tensors.contains(tied.parameter)) << tied.parameter;
    }
    for (size_t head = 0; head < 2; ++head) {
      SCOPED_TRACE(tie + ", " + options.heads[head].name);
      const auto other = alone(options, head, *model);
      const auto got = model->loss(of_stream(batch, static_cast<int64_t>(head)), {});
      const auto want = other->loss(batch, {});
      EXPECT_NEAR(got.loss_sum.item<double>(), want.loss_sum.item<double>(), 1e-9);
      EXPECT_DOUBLE_EQ(model->head(head)->operations(9, 7), other->operations(9, 7));
    }
  }
}

// L = L_de / W_de + 3 L_fr / W_fr, against central differences.
TEST(SeveralDecoders, GradientsOfAWeightedSumAreThoseOfDifferences) {
  for (const std::string& tie : kTies) {
    SCOPED_TRACE(tie);
    const auto model = built(two_heads(tie));
    model->to(at::kDouble);
    const auto value = [&] {
      const auto de = model->loss(of_stream(first_batch(), 0), {});
      const auto fr = model->loss(of_stream(second_batch(), 1), {});
      return de.loss_sum / de.target_tokens + 3 * fr.loss_sum / fr.target_tokens;
    };
    value().backward();
    const torch::NoGradGuard no_grad;
    constexpr double kStep = 1e-5;
    for (auto& [name, tensor] : tensors_of(*model)) {
      ASSERT_TRUE(tensor.grad().defined()) << name;
      const auto gradient = tensor.grad().flatten();
      const int64_t at = gradient.abs().argmax().item<int64_t>();
      double* number = tensor.data_ptr<double>() + at;
      const double here = *number;
      *number = here + kStep;
      const double above = value().item<double>();
      *number = here - kStep;
      const double below = value().item<double>();
      *number = here;
      const double want = (above - below) / (2 * kStep);
      EXPECT_NEAR(gradient[at].item<double>(), want, 1e-5 * std::max(1.0, std::abs(want))) << name;
    }
  }
}

TEST(SeveralDecoders, TellWatchersOfTheirOwnProjectionHoweverItIsTied) {
  for (const std::string& tie : kTies) {
    const auto options = two_heads(tie);
    const auto model = built(options);
    for (size_t head = 0; head < 2; ++head) {
      SCOPED_TRACE(tie + ", " + options.heads[head].name);
      std::set<std::string> told;
      const nn::WatchScope scope(*model, [&](const nn::Watched& watched) {
        if (watched.parameter) told.insert(watched.module);
      });
      model->loss(of_stream(first_batch(), static_cast<int64_t>(head)), {}).loss_sum.backward();
      EXPECT_EQ(told, std::set<std::string>{"outputs." + options.heads[head].name + ".weight"});
    }
  }
}

TEST(SeveralDecoders, FirstWeightsOfAHeadDoNotDependOnTheOthers) {
  const auto both = tensors_of(*built(two_heads("none")));
  Seq2SeqOptions one = two_heads("none");
  one.heads.erase(one.heads.begin());
  for (const auto& [name, tensor] : tensors_of(*built(one))) {
    EXPECT_TRUE(at::equal(tensor, both.at(name))) << name;
  }
}

TEST(SeveralDecoders, AreDescribedWithoutMemory) {
  ModelSetup meta = kTwoSides;
  meta.device = at::kMeta;
  for (const std::string& tie : kTies) {
    SCOPED_TRACE(tie);
    const auto options = two_heads(tie);
    const auto model = make_model(options, meta, nullptr);
    EXPECT_EQ(num_parameters(*model), num_parameters(*built(options)));
    double sum = 0;
    for (size_t head = 0; head < 2; ++head) {
      sum += make_model(model_of_head(options, head), meta, nullptr)->operations(9, 7);
    }
    EXPECT_DOUBLE_EQ(model->operations(9, 7), sum / 2);
  }
}

TEST(SeveralDecoders, ThatDoNotFitAreNamed) {
  Seq2SeqOptions options = two_heads("all");
  options.heads[0].decoder = StackOptions{.num_layers = 2, .num_heads = 3, .ffn_dim = 24};
  options.heads[1].decoder = LstmDecoderOptions{.num_layers = 1, .initial_state = "last"};
  options.encoder = StackOptions{.num_layers = 1, .num_heads = 5, .ffn_dim = 24};
  std::map<std::string, std::string> found;
  for (const auto& conflict : option_conflicts(options)) {
    EXPECT_TRUE(found.emplace(conflict.keys.front(), conflict.what).second)
        << conflict.keys.front();
  }
  EXPECT_EQ(found.size(), 3U);
  EXPECT_EQ(found["model.encoder.num_heads"], "5 heads do not divide model.d_model = 16");
  EXPECT_EQ(found["model.heads.0.decoder.num_heads"],
            "head `de`: 3 heads do not divide model.d_model = 16");
  EXPECT_EQ(found["model.heads.1.decoder.initial_state"],
            "head `fr`: \"last\" needs a recurrent encoder, not `transformer`");
}

}  // namespace
}  // namespace stretto::models
