#include "tests/models/causal_recurrent.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "config/schema.h"
#include "models/causal_recurrent_steps.h"

namespace stretto::models {
namespace {

using namespace testing::recurrent;

static_assert(config::lists_every_member<CausalLstmOptions>);

constexpr const char* kCells[] = {"lstm", "gru", "norm_lstm"};
const ForwardContext kTraining{.training = true, .dropout_key = 12345};

/// All that a pass gives, as one number in which each has its own part.
at::Tensor probe_of(const CausalRecurrentPass& pass) {
  at::Tensor sum = probe(pass.rows);
  for (const at::Tensor& state : pass.state) sum = sum + probe(state);
  return pass.regulariser.defined() ? sum + pass.regulariser : sum;
}

/// The plain form of a pass over all lanes.
CausalRecurrentPass plain_pass(const CausalLstmOptions& options, const CausalRecurrent& model,
                               const Stretches& stretches, const std::vector<at::Tensor>& state,
                               const ForwardContext& context) {
  const PlainCausal plain(options, model, context);
  std::vector<at::Tensor> rows;
  std::vector<std::vector<at::Tensor>> states(state.size());
  at::Tensor regulariser = at::zeros({}, at::kDouble);
  for (int64_t i = 0; i < stretches.tokens.num_sequences(); ++i) {
    const auto lane = plain.read(ids_of(stretches.tokens, i), lane_of(state, i),
                                 stretches.samples[static_cast<size_t>(i)]);
    rows.push_back(lane.rows);
    for (size_t k = 0; k < states.size(); ++k) states[k].push_back(lane.state[k]);
    regulariser = regulariser + plain.regulariser(lane);
  }
  CausalRecurrentPass pass{.rows = at::cat(rows), .state = {}};
  for (const auto& lanes : states) pass.state.push_back(at::cat(lanes));
  if (context.training && options.has_regulariser()) pass.regulariser = regulariser;
  return pass;
}

void expect_near(const at::Tensor& got, const at::Tensor& want, double bound,
                 const std::string& what) {
  ASSERT_EQ(got.sizes(), want.sizes()) << what;
  EXPECT_LE((got - want).abs().max().item<double>(), bound) << what;
}

void expect_same(const CausalRecurrentPass& got, const CausalRecurrentPass& want, double bound) {
  expect_near(got.rows, want.rows, bound, "rows");
  ASSERT_EQ(got.state.size(), want.state.size());
  for (size_t i = 0; i < got.state.size(); ++i) {
    expect_near(got.state[i], want.state[i], bound, "state " + std::to_string(i));
  }
  ASSERT_EQ(got.regulariser.defined(), want.regulariser.defined());
  if (got.regulariser.defined()) {
    expect_near(got.regulariser, want.regulariser, bound, "regulariser");
  }
}

TEST(CausalRecurrent, RowsStatesRegulariserAndGradientsAreThoseOfThePlainForm) {
  for (const char* cell : kCells) {
    for (const bool variational : {true, false}) {
      for (const bool training : {true, false}) {
        SCOPED_TRACE(std::string(cell) + (variational ? ", locked" : "") +
                     (training ? ", training" : ""));
        CausalLstmOptions options = full_options(cell);
        options.variational = variational;
        const auto model = causal(options);
        const auto state = any_state(*model, 3);
        const ForwardContext context{.training = training, .dropout_key = 12345};
        const Stretches stretches = three_stretches();
        const auto got = model->forward(stretches.rows(), state, context);
        probe_of(got).backward();
        const at::Tensor gradients = taken_gradients(*model);
        const auto want = plain_pass(options, *model, stretches, state, context);
        probe_of(want).backward();
        expect_same(got, want, 1e-12);
        expect_near(gradients, taken_gradients(*model), 1e-10, "gradients");
      }
    }
  }
}

TEST(CausalRecurrent, IsLibtorchsLstmAndGru) {
  const torch::NoGradGuard no_grad;
  const Stretches stretches = three_stretches().lane(0);
  for (const std::string cell : {"lstm", "gru"}) {
    SCOPED_TRACE(cell);
    CausalLstmOptions options = bare_options(cell);
    options.hidden_dim = kModelWidth;
    const auto model = causal(options);
    const auto state = any_state(*model, 1);
    const auto got = model->forward(stretches.rows(), state, {});
    auto parameters = model->named_parameters();
    const auto fill = [&](auto& theirs) {
      theirs->to(at::kDouble);
      for (auto& item : theirs->named_parameters()) {
        const std::string layer = "layers." + item.key().substr(item.key().size() - 1) + ".";
        const std::string side =
            item.key().find("_ih_") != std::string::npos ? "input." : "hidden.";
        const std::string kind = item.key().starts_with("weight") ? "weight" : "bias";
        const at::Tensor* ours = parameters.find(layer + side + kind);
        if (ours == nullptr) {
          item.value().zero_();  // an LSTM has one bias here
        } else {
          item.value().copy_(*ours);
        }
      }
    };
    const at::Tensor x =
        parameters["embedding.weight"].index_select(0, ids_of(stretches.tokens, 0)).unsqueeze(1);
    if (cell == "lstm") {
      torch::nn::LSTM theirs(torch::nn::LSTMOptions(kModelWidth, kModelWidth).num_layers(3));
      fill(theirs);
      const auto [rows, last] =
          theirs->forward(x, std::make_tuple(at::stack({state[0], state[2], state[4]}),
                                             at::stack({state[1], state[3], state[5]})));
      expect_near(got.rows, rows.squeeze(1), 1e-12, "rows");
      expect_near(got.state[4], std::get<0>(last)[2], 1e-12, "h");
      expect_near(got.state[5], std::get<1>(last)[2], 1e-12, "c");
    } else {
      torch::nn::GRU theirs(torch::nn::GRUOptions(kModelWidth, kModelWidth).num_layers(3));
      fill(theirs);
      const auto [rows, last] = theirs->forward(x, at::stack(state));
      expect_near(got.rows, rows.squeeze(1), 1e-12, "rows");
      expect_near(got.state[2], last[2], 1e-12, "h");
    }
  }
}

TEST(CausalRecurrent, ATextReadInOneStretchOrInManyGivesTheSameRowsAndState) {
  const torch::NoGradGuard no_grad;
  std::vector<int64_t> text;
  for (int64_t i = 0; i < 97; ++i) text.push_back((i * i * 7 + 3 * i) % kWords);
  for (const char* cell : kCells) {
    for (const auto dtype : {at::kDouble, at::kFloat}) {
      SCOPED_TRACE(cell);
      const double bound = dtype == at::kDouble ? 1e-12 : 3e-6;
      const auto model = causal(full_options(cell), dtype);
      Stretches whole;
      whole.append(text, 0);
      const auto want = model->forward(whole.rows(), {}, {});
      for (const size_t length : {1U, 2U, 7U, 35U, 96U}) {
        CausalRecurrentPass got;
        std::vector<at::Tensor> rows;
        for (size_t begin = 0; begin < text.size(); begin += length) {
          const size_t end = std::min(begin + length, text.size());
          Stretches part;
          part.append({text.begin() + static_cast<int64_t>(begin),
                       text.begin() + static_cast<int64_t>(end)},
                      static_cast<int64_t>(begin));
          got = model->forward(part.rows(), got.state, {});
          rows.push_back(got.rows);
        }
        got.rows = at::cat(rows);
        expect_same(got, want, bound);
      }
    }
  }
}

TEST(CausalRecurrent, LanesTogetherAreTheLanesAlone) {
  const Stretches stretches = three_stretches();
  for (const char* cell : kCells) {
    for (const auto dtype : {at::kDouble, at::kFloat}) {
      for (const bool training : {false, true}) {
        SCOPED_TRACE(cell);
        const torch::NoGradGuard no_grad;
        const ForwardContext context{.training = training, .dropout_key = 5};
        const auto model = causal(full_options(cell), dtype);
        const auto state = any_state(*model, 3, dtype);
        const auto together = model->forward(stretches.rows(), state, context);
        CausalRecurrentPass alone;
        std::vector<at::Tensor> rows;
        std::vector<std::vector<at::Tensor>> states(state.size());
        for (int64_t i = 0; i < 3; ++i) {
          const auto one = model->forward(stretches.lane(i).rows(), lane_of(state, i), context);
          rows.push_back(one.rows);
          for (size_t k = 0; k < states.size(); ++k) states[k].push_back(one.state[k]);
          if (!one.regulariser.defined()) continue;
          alone.regulariser =
              alone.regulariser.defined() ? alone.regulariser + one.regulariser : one.regulariser;
        }
        alone.rows = at::cat(rows);
        for (const auto& lanes : states) alone.state.push_back(at::cat(lanes));
        expect_same(together, alone, dtype == at::kDouble ? 1e-12 : 1e-5);
      }
    }
  }
}

TEST(CausalRecurrent, ALaneWithoutTokensKeepsItsState) {
  const torch::NoGradGuard no_grad;
  const auto model = causal(bare_options("lstm"), at::kFloat);
  const auto state = any_state(*model, 2, at::kFloat);
  Stretches stretches;
  stretches.append({4, 5}, 1);
  stretches.append({}, 2);
  const auto pass = model->forward(stretches.rows(), state, {});
  EXPECT_EQ(pass.rows.size(0), 2);
  for (size_t i = 0; i < state.size(); ++i) {
    EXPECT_TRUE(at::equal(pass.state[i][1], state[i][1]));
    EXPECT_FALSE(at::equal(pass.state[i][0], state[i][0]));
  }
}

// The fault of most reproductions of AWD-LSTM: masks that are drawn and never multiplied with.
TEST(CausalRecurrent,
     WeightDropChangesTheRecurrentProductInTrainingAndNeitherInEvaluationNorSteps) {
  for (const char* cell : kCells) {
    SCOPED_TRACE(cell);
    const torch::NoGradGuard no_grad;
    CausalLstmOptions options = bare_options(cell);
    const auto without = causal(options, at::kFloat);
    options.weight_drop = 0.5;
    const auto with = causal(options, at::kFloat);
    Stretches stretches;
    stretches.append({5, 9, 14, 7}, 3);
    const auto rows = [&](CausalRecurrent& model, const ForwardContext& context) {
      return model.forward(stretches.rows(), {}, context).rows;
    };
    const at::Tensor plain = rows(*without, kTraining), dropped = rows(*with, kTraining);
    // From a state of zeros a first step has no product to change, but with a GRU's bias. The
    // second step of each layer has.
    EXPECT_TRUE(at::equal(plain[0], dropped[0]));
    EXPECT_GT((plain[1] - dropped[1]).abs().max().item<double>(), 1e-4);
    EXPECT_TRUE(at::equal(rows(*with, {}), rows(*without, {})));
    EXPECT_FALSE(at::equal(rows(*with, {.training = true, .dropout_key = 1}), dropped));
    const auto steps = with->start(1, 1), same = without->start(1, 1);
    for (const int64_t token : {5, 9, 14}) {
      const at::Tensor ids = at::full({1}, token, at::kLong);
      EXPECT_TRUE(at::equal(steps->step(ids), same->step(ids)));
    }
  }
}

TEST(CausalRecurrent, WeightDropIsOneMaskOfAnUpdateAndReachesTheGradient) {
  CausalLstmOptions options = bare_options("lstm");
  options.num_layers = 1;
  options.weight_drop = 0.5;
  const auto model = causal(options, at::kFloat);
  const Stretches stretches = three_stretches();
  const auto gradient = [&](const nn::PackedRows& rows) {
    for (at::Tensor& parameter : model->parameters()) parameter.mutable_grad() = at::Tensor();
    const auto state = any_state(*model, rows.offsets.values.size(0) - 1, at::kFloat);
    model->forward(rows, state, kTraining).rows.sum().backward();
    return model->named_parameters()["layers.0.hidden.weight"].grad().ne(0);
  };
  // What is dropped has no gradient; every other element has, from any lane of the update.
  const at::Tensor all = gradient(stretches.rows());
  EXPECT_NEAR(all.to(at::kDouble).mean().item<double>(), 0.5, 0.1);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(at::equal(gradient(stretches.lane(i).rows()), all)) << "lane " << i;
  }
}

/// Which elements of the rows are 0 in training, with this dropout alone.
at::Tensor zeros_of(CausalLstmOptions options, const Stretches& stretches) {
  const torch::NoGradGuard no_grad;
  const auto model = causal(options, at::kFloat);
  return model
      ->forward(stretches.rows(), any_state(*model, stretches.tokens.num_sequences(), at::kFloat),
                kTraining)
      .rows.eq(0);
}

TEST(CausalRecurrent, LockedDropoutHasOneMaskForAllStepsOfAStretch) {
  CausalLstmOptions options = bare_options("lstm");
  options.output_dropout = 0.5;
  const Stretches stretches = three_stretches();
  const at::Tensor locked = zeros_of(options, stretches);
  for (int64_t t = 1; t < 5; ++t) EXPECT_TRUE(at::equal(locked[t], locked[0]));
  EXPECT_FALSE(at::equal(locked[5], locked[0]));
  options.variational = false;
  const at::Tensor free = zeros_of(options, stretches);
  EXPECT_FALSE(at::equal(free[1], free[0]));
  EXPECT_GT(free.sum().item<int64_t>(), 0);
}

TEST(CausalRecurrent, AWordOfTheVocabularyIsDroppedWhereverAnUpdateReadsIt) {
  const torch::NoGradGuard no_grad;
  CausalLstmOptions options = bare_options("lstm");
  options.num_layers = 1;
  options.embedding_dropout = 0.5;
  const auto model = causal(options, at::kFloat);
  // With one layer and no state, a first row tells the vector of its token alone.
  Stretches together;
  for (int64_t word = 0; word < kWords; ++word) together.append({word}, word);
  for (int64_t word = 0; word < kWords; ++word) together.append({word}, 1000 + word);
  const at::Tensor rows = model->forward(together.rows(), {}, kTraining).rows;
  expect_near(rows.slice(0, 0, kWords), rows.slice(0, kWords), 1e-6, "in other lanes");
  const at::Tensor undropped = model->forward(together.rows(), {}, {}).rows;
  Stretches silent;
  silent.append({0}, 0);
  model->named_parameters()["embedding.weight"].zero_();
  const at::Tensor of_nothing = model->forward(silent.rows(), {}, {}).rows[0];
  int64_t dropped = 0;
  for (int64_t word = 0; word < kWords; ++word) {
    dropped += at::allclose(rows[word], of_nothing, 1e-5, 1e-7) ? 1 : 0;
    EXPECT_FALSE(at::equal(rows[word], undropped[word])) << "the others are scaled";
  }
  EXPECT_GT(dropped, kWords / 4);
  EXPECT_LT(dropped, 3 * kWords / 4);
}

TEST(CausalRecurrent, RegulariserIsThatOfAwdLstmTimesTheTokens) {
  CausalLstmOptions options = full_options("lstm");
  const auto model = causal(options);
  Stretches stretches;
  stretches.append({5, 9, 14, 5}, 17);
  stretches.append({20, 11, 5, 3}, 99);
  const auto state = any_state(*model, 2);
  const auto pass = model->forward(stretches.rows(), state, kTraining);
  // awd-lstm-lm: alpha * dropped.pow(2).mean() + beta * (raw[1:] - raw[:-1]).pow(2).mean()
  const PlainCausal plain(options, *model, kTraining);
  std::vector<at::Tensor> dropped, raw;
  for (int64_t i = 0; i < 2; ++i) {
    const auto lane = plain.read(ids_of(stretches.tokens, i), lane_of(state, i),
                                 stretches.samples[static_cast<size_t>(i)]);
    dropped.push_back(lane.rows);
    raw.push_back(lane.before_dropout);
  }
  const at::Tensor all = at::stack(raw, 1);  // [T, B, D]
  const at::Tensor want = 2 * at::stack(dropped, 1).square().mean() +
                          1 * (all.slice(0, 1) - all.slice(0, 0, 3)).square().mean();
  expect_near(pass.regulariser / 8.0, want, 1e-12, "per token");
  EXPECT_FALSE(model->forward(stretches.rows(), state, {}).regulariser.defined());
}

TEST(CausalRecurrent, StepsHaveTheRowsOfAWholePass) {
  for (const char* cell : kCells) {
    for (const auto dtype : {at::kDouble, at::kFloat}) {
      SCOPED_TRACE(cell);
      const torch::NoGradGuard no_grad;
      const auto model = causal(full_options(cell), dtype);
      Stretches stretches;
      stretches.append({5, 9, 14, 5, 3}, 1);
      stretches.append({20, 11, 5, 3, 8}, 2);
      const at::Tensor want = model->forward(stretches.rows(), {}, {}).rows;
      const auto steps = model->start(2, 2);
      for (int64_t t = 0; t < 5; ++t) {
        const int64_t a = ids_of(stretches.tokens, 0)[t].item<int64_t>();
        const int64_t b = ids_of(stretches.tokens, 1)[t].item<int64_t>();
        // The second lane of each source goes astray, and then follows the first.
        const at::Tensor rows = steps->step(at::tensor({a, (a + 5) % kWords, b, (b + 7) % kWords}));
        expect_near(rows[0], want[t], 1e-5, "source 0");
        expect_near(rows[2], want[5 + t], 1e-5, "source 1");
        steps->reorder({0, 0, 2, 2});
      }
      steps->reorder({2, 2});
      EXPECT_EQ(steps->step(at::tensor({4, 4}, at::kLong)).sizes(),
                (std::vector<int64_t>{2, kModelWidth}));
    }
  }
}

TEST(CausalRecurrent, PromptsOfAnyLengthsAreReadAtOnceAsStepsReadThem) {
  const torch::NoGradGuard no_grad;
  const Stretches prompts = three_stretches();
  for (const char* cell : kCells) {
    SCOPED_TRACE(cell);
    const auto model = causal(full_options(cell), at::kFloat);
    const auto steps = model->start(3, 2);
    const at::Tensor behind = steps->read(prompts.rows(), 2);
    const at::Tensor next = at::tensor({1, 2, 3, 4, 5, 6}, at::kLong);
    const at::Tensor rows = steps->step(next);
    for (int64_t i = 0; i < 3; ++i) {
      const auto alone = model->start(1, 1);
      at::Tensor last;
      const at::Tensor ids = ids_of(prompts.tokens, i);
      for (int64_t t = 0; t < ids.size(0); ++t) last = alone->step(ids.narrow(0, t, 1));
      expect_near(behind[2 * i], last[0], 3e-6, "behind the prompt");
      EXPECT_TRUE(at::equal(behind[2 * i], behind[2 * i + 1]));
      expect_near(rows[2 * i], alone->step(next.narrow(0, 2 * i, 1))[0], 3e-6, "one token on");
    }
    EXPECT_THROW(steps->read(prompts.rows(), 2), c10::Error);
  }
}

TEST(CausalRecurrent, PromptsOfOneLengthAreReadAsStepsReadThem) {
  const torch::NoGradGuard no_grad;
  const auto model = causal(full_options("gru"), at::kFloat);
  const at::Tensor prompts = at::tensor({4, 9, 7, 12, 6, 5}, at::kLong).view({2, 3});
  const auto filled = model->start(2, 3), stepped = model->start(2, 3);
  const at::Tensor got = filled->prefill(prompts, 3);
  at::Tensor want;
  for (int64_t t = 0; t < 3; ++t) {
    want = stepped->step(prompts.select(1, t).repeat_interleave(3).contiguous());
  }
  expect_near(got, want, 3e-6, "behind the prompts");
  EXPECT_THROW(model->start(2, 3)->prefill(prompts, 2), c10::Error);
  EXPECT_THROW(model->start(2, 3)->prefill(at::empty({2, 0}, at::kLong), 3), c10::Error);
}

TEST(CausalRecurrent, TheLastLayerIsAsWideAsTheRowsAreToBe) {
  CausalLstmOptions options = bare_options("lstm");
  EXPECT_EQ(options.output_width(kModelWidth, /*is_tied=*/true), kModelWidth);
  EXPECT_EQ(options.output_width(kModelWidth, /*is_tied=*/false), kUnits);
  const auto shapes_of = [](const CausalRecurrent& model) {
    std::string all;
    for (const auto& shape : model.state_shapes()) {
      all += shape.name + " " + std::to_string(shape.width) + " ";
    }
    return all;
  };
  EXPECT_EQ(shapes_of(*causal(options)), "h.0 6 c.0 6 h.1 6 c.1 6 h.2 8 c.2 8 ");
  EXPECT_EQ(shapes_of(*causal(bare_options("gru"), at::kFloat, kUnits)), "h.0 6 h.1 6 h.2 6 ");
  options.hidden_dim = 0;
  EXPECT_EQ(options.units(kModelWidth, 0, 5), kModelWidth);
  EXPECT_EQ(options.units(kModelWidth, 2, 5), 5);
}

TEST(CausalRecurrent, FirstWeightsLieWithinTheirBounds) {
  CausalLstmOptions options = bare_options("lstm");
  options.init_bound = 0;
  options.embedding_bound = 0.1;
  options.hidden_dim = 64;
  const auto model = causal(options, at::kFloat);
  for (const auto& item : model->named_parameters()) {
    if (item.value().dim() != 2) continue;
    const bool is_last = item.key().starts_with("layers.2");
    const double bound =
        item.key() == "embedding.weight" ? 0.1 : 1 / std::sqrt(is_last ? 8.0 : 64.0);
    const double most = item.value().abs().max().item<double>();
    EXPECT_LE(most, bound + 1e-6) << item.key();
    EXPECT_GT(most, 0.9 * bound) << item.key();
  }
  const at::Tensor bias = model->named_parameters()["layers.0.input.bias"];
  EXPECT_TRUE(bias.slice(0, 64, 128).eq(1).all().item<bool>());
  EXPECT_EQ(bias.slice(0, 0, 64).abs().max().item<double>(), 0);
}

TEST(CausalRecurrent, AwdLstmOnThePennTreebankHasItsNumberOfParameters) {
  constexpr int64_t kPtb = 10'000, kEmbedding = 400;
  const CausalLstmOptions options;
  const CausalRecurrent model(options,
                              {.init = nn::Init(3, at::kMeta), .d_model = kEmbedding, .rows = kPtb},
                              options.output_width(kEmbedding, /*is_tied=*/true));
  int64_t count = 0;
  for (const at::Tensor& parameter : model.parameters()) count += parameter.numel();
  // awd-lstm-lm has 24,221,600 with two biases in each gate and one of 10,000 behind the tied
  // table.
  const int64_t second_biases = 4 * (1150 + 1150 + 400);
  EXPECT_EQ(count, 24'221'600 - second_biases - kPtb);
  EXPECT_EQ(model.operations(),
            2.0 * (4 * 1150 * (400 + 1150) + 4 * 1150 * (1150 + 1150) + 4 * 400 * (1150 + 400)));
}

TEST(CausalRecurrent, RefusesStatesOfOtherShapes) {
  const torch::NoGradGuard no_grad;
  const auto model = causal(bare_options("lstm"), at::kFloat);
  const nn::PackedRows rows = three_stretches().rows();
  EXPECT_THROW(model->forward(rows, any_state(*model, 2, at::kFloat), {}), c10::Error);
  auto fewer = any_state(*model, 3, at::kFloat);
  fewer.pop_back();
  EXPECT_THROW(model->forward(rows, fewer, {}), c10::Error);
  const auto steps = model->start(2, 1);
  EXPECT_THROW(steps->step(at::tensor({1, 2, 3}, at::kLong)), c10::Error);
  EXPECT_THROW(steps->reorder({0, 2}), c10::Error);
}

}  // namespace
}  // namespace stretto::models
