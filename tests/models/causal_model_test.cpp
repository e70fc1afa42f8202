// Language models with a Transformer, in the forms of GPT-2, Llama and others.
#include "models/causal_model.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "losses/registry.h"
#include "models/decoders/transformer_step.h"
#include "models/memory.h"
#include "models/packed.h"
#include "models/registry.h"
#include "tests/base/failure.h"
#include "tests/kernels/scopes.h"
#include "tests/models/part_cases.h"
#include "tests/models/plain_causal.h"
#include "tests/text/special_ids.h"

namespace stretto::models {
namespace {

using testing::kRows, testing::kWidth, testing::sequences;

constexpr int64_t kIds = kRows - 3;

struct Form {
  std::string name;
  CausalTransformerOptions options;
};

CausalTransformerOptions small() {
  CausalTransformerOptions options;
  options.preset = "none";
  options.num_layers = 3;
  options.d_model = kWidth;
  options.num_heads = 4;
  options.ffn_dim = 20;
  options.dropout = 0;
  // As large as those of a trained model, so that every part shows in the result.
  options.init_std = 0.4;
  options.scale_residual_init = false;
  return options;
}

CausalTransformerOptions llama() {
  CausalTransformerOptions options = small();
  options.norm_layer = "rms_norm";
  options.activation = "swiglu";
  options.biases = "none";
  options.positions = "rotary";
  options.rope.base = 500;
  options.num_kv_heads = 2;
  options.tie_embeddings = false;
  return options;
}

std::vector<Form> forms() {
  std::vector<Form> all{{"GPT-2", small()}, {"Llama", llama()}};
  CausalTransformerOptions plain = small();
  plain.biases = "none";
  plain.norm_bias = false;
  plain.activation = "relu_squared";
  plain.norm_epsilon = 0.01;
  plain.positions = "none";
  all.push_back({"without biases", plain});
  CausalTransformerOptions qwen2 = llama();
  qwen2.biases = "qkv";
  qwen2.rope.scaling = "linear";
  qwen2.rope.factor = 3;
  qwen2.norm_epsilon = 0.02;
  all.push_back({"Qwen2", qwen2});
  CausalTransformerOptions qwen3 = llama();
  qwen3.qk_norm = true;
  qwen3.head_dim = 6;
  qwen3.tie_embeddings = true;
  all.push_back({"Qwen3", qwen3});
  CausalTransformerOptions llama3 = llama();
  llama3.rope.scaling = "llama3";
  llama3.rope.factor = 8;
  llama3.rope.original_positions = 64;
  all.push_back({"Llama 3.1", llama3});
  CausalTransformerOptions yarn = llama();
  yarn.rope.scaling = "yarn";
  yarn.rope.factor = 4;
  yarn.rope.original_positions = 64;
  all.push_back({"YaRN", yarn});
  CausalTransformerOptions gemma = llama();
  gemma.activation = "geglu";
  gemma.sliding_window = 3;
  gemma.full_attention_every = 2;
  gemma.attention_softcap = 2;
  gemma.logit_softcap = 3;
  gemma.embedding_scale = "sqrt";
  gemma.output_bias = true;
  gemma.init_std = 0.2;
  all.push_back({"Gemma", gemma});
  CausalTransformerOptions mistral = llama();
  mistral.sliding_window = 4;
  all.push_back({"Mistral", mistral});
  CausalTransformerOptions alibi = small();
  alibi.positions = "alibi";
  alibi.sliding_window = 5;
  alibi.parallel_residual = true;
  alibi.activation = "gelu";
  all.push_back({"ALiBi", alibi});
  CausalTransformerOptions olmo = small();
  olmo.norm = "res_post";
  olmo.norm_layer = "rms_norm";
  olmo.qk_norm = true;
  olmo.activation = "silu";
  all.push_back({"norms behind parts", olmo});
  return all;
}

CausalModelSetup setup_of(const CausalModelOptions& options, at::Device device = at::kCPU) {
  return {.model = options,
          .rows = kRows,
          .num_ids = kIds,
          .specials = stretto::testing::kSpecials,
          .seed = 3,
          .device = device};
}

std::shared_ptr<CausalModel> made(const CausalModelOptions& options,
                                  const losses::CrossEntropyOptions& loss = {}) {
  return make_causal_model(setup_of(options), losses::make_loss(loss));
}

data::PackedTokens documents() {
  return sequences({{5, 9, 14, 7, 10, 12, 3}, {8}, {20, 11, 6, 4, 4, 19, 7, 13, 5, 9, 16, 3}});
}

nn::PackedRows packed(const data::PackedTokens& tokens) {
  std::vector<int64_t> samples{17, 4, 99};
  samples.resize(static_cast<size_t>(tokens.num_sequences()));
  return pack(tokens, &samples, at::kCPU);
}

std::shared_ptr<Decoder> decoder_of(const CausalModel& model) {
  return std::dynamic_pointer_cast<Decoder>(model.named_children()["decoder"]);
}

TEST(CausalModel, RowsAndGradientsAreThoseOfThePlainFormula) {
  for (const Form& form : forms()) {
    SCOPED_TRACE(form.name);
    const auto model = made(form.options);
    model->to(at::kDouble);
    const testing::PlainCausal plain(form.options, *model);
    testing::expect_same(
        *model, [&] { return model->forward(packed(documents()), {}, {}).rows; },
        [&] { return plain.rows(documents()); }, 1e-10);
  }
}

TEST(CausalModel, LossesAndProbabilitiesAreThoseOfThePlainFormula) {
  for (const Form& form : forms()) {
    SCOPED_TRACE(form.name);
    const auto model = made(form.options, {.label_smoothing = 0});
    model->to(at::kDouble);
    const testing::PlainCausal plain(form.options, *model);
    const at::Tensor next = at::arange(20, at::kLong) * 7 % kIds;
    const auto log_probs = [&] {
      return at::log_softmax(plain.logits(documents()).narrow(1, 0, kIds), 1);
    };
    testing::expect_same(
        *model,
        [&] {
          const CausalPass pass = model->forward(packed(documents()), {}, {});
          return model->head().loss(pass.rows, {.labels = next}).loss_sum.view({1});
        },
        [&] { return -log_probs().gather(1, next.unsqueeze(1)).sum().view({1}); }, 1e-10);
    const torch::NoGradGuard no_grad;
    const at::Tensor rows = model->forward(packed(documents()), {}, {}).rows;
    EXPECT_TRUE(
        at::allclose(model->head().log_probs(rows), log_probs().to(at::kFloat), 1e-5, 1e-6));
  }
}

TEST(CausalModel, EveryParameterHasAGradient) {
  for (const Form& form : forms()) {
    SCOPED_TRACE(form.name);
    const auto model = made(form.options);
    const CausalPass pass = model->forward(packed(documents()), {}, {});
    EXPECT_TRUE(pass.carry.empty());
    EXPECT_FALSE(pass.regulariser.defined());
    const at::Tensor next = at::arange(20, at::kLong) * 7 % kIds;
    model->head().loss(pass.rows, {.labels = next}).loss_sum.backward();
    for (const auto& item : model->named_parameters()) {
      ASSERT_TRUE(item.value().grad().defined()) << item.key();
      EXPECT_GT(item.value().grad().abs().sum().item<double>(), 0) << item.key();
    }
  }
}

TEST(CausalModel, StepsAndPromptsAreTeacherForcing) {
  for (const Form& form : forms()) {
    SCOPED_TRACE(form.name);
    const auto model = made(form.options);
    Decoder& decoder = *decoder_of(*model);
    testing::expect_steps_of_teacher_forcing(decoder, no_memory(3, at::kCPU),
                                             testing::first_batch(), 5e-5);
    testing::expect_lanes_to_keep_their_histories(decoder, no_memory(1, at::kCPU));
    for (const int64_t length : {1, 5, 37}) {
      testing::expect_prefill_of_steps(decoder, no_memory(3, at::kCPU), length, 5e-5);
    }
    testing::expect_no_look_ahead(decoder, {}, testing::first_batch());
  }
}

TEST(CausalModel, StepsThatNoWindowReachesAreForgotten) {
  const torch::NoGradGuard no_grad;
  constexpr int64_t kSteps = 150;
  std::vector<int64_t> ids;
  for (int64_t t = 0; t < kSteps; ++t) ids.push_back(4 + (5 * t + t * t % 7) % 19);
  for (const char* positions : {"rotary", "learned", "alibi"}) {
    SCOPED_TRACE(positions);
    CausalTransformerOptions options = llama();
    options.positions = positions;
    options.sliding_window = 4;
    const auto model = made(options);
    const at::Tensor want = model->forward(packed(sequences({ids})), {}, {}).rows;
    const auto steps = decoder_of(*model)->start(no_memory(2, at::kCPU), 1);
    const auto& cached = dynamic_cast<const TransformerStepDecoder&>(*steps);
    int64_t most = 0;
    // The second lane begins three tokens later.
    steps->prefill_packed({.ids = {ids[0], ids[1], ids[2], ids[3], ids[0]}, .lengths = {4, 1}}, 1);
    for (int64_t t = 4; t < kSteps; ++t) {
      const at::Tensor rows = steps->step(
          at::tensor({ids[static_cast<size_t>(t)], ids[static_cast<size_t>(t - 3)]}, at::kLong));
      EXPECT_LT(testing::relative_distance(rows[0], want[t]), 5e-5) << t;
      EXPECT_LT(testing::relative_distance(rows[1], want[t - 3]), 5e-5) << t;
      most = std::max(most, cached.cached_numbers());
    }
    // Keys and values of three layers, two lanes, two heads of four columns.
    EXPECT_LE(most, 2 * 3 * 2 * 2 * 4 * 64);
    options.full_attention_every = 3;  // one layer reads all steps
    const auto all = decoder_of(*made(options))->start(no_memory(1, at::kCPU), 1);
    for (int64_t t = 0; t < kSteps; ++t) all->step(at::tensor({5}, at::kLong));
    EXPECT_GE(dynamic_cast<const TransformerStepDecoder&>(*all).cached_numbers(),
              2 * 3 * 2 * 4 * kSteps);
  }
}

TEST(CausalModel, GenerationScoresWhatFollowsAPrompt) {
  for (const Form& form : forms()) {
    SCOPED_TRACE(form.name);
    const torch::NoGradGuard no_grad;
    const auto model = made(form.options);
    model->to(at::kDouble);
    const at::Tensor want =
        at::log_softmax(testing::PlainCausal(form.options, *model)
                            .logits(sequences({{5, 9, 14, 7, 10, 12}, {8, 11, 6, 4, 19, 7}}))
                            .narrow(1, 0, kIds),
                        1);
    model->to(at::kFloat);
    const auto steps = model->start(2, 1);
    EXPECT_EQ(steps->vocab_size(), kIds);
    const at::Tensor ids =
        at::tensor({5, 9, 14, 7, 10, 12, 8, 11, 6, 4, 19, 7}, at::kLong).view({2, 6});
    std::vector<at::Tensor> got{steps->prefill(ids.slice(1, 0, 4), 1)};
    for (int64_t t = 4; t < 6; ++t) got.push_back(steps->step(ids.select(1, t).contiguous()));
    for (int64_t i = 0; i < 3; ++i) {
      const at::Tensor rows = at::tensor({3 + i, 9 + i}, at::kLong);
      EXPECT_TRUE(at::allclose(got[static_cast<size_t>(i)].to(at::kDouble),
                               want.index_select(0, rows), 1e-4, 1e-4))
          << "token " << 3 + i;
    }
  }
}

TEST(CausalModel, PackedDocumentsHaveTheBitsOfEachAlone) {
  const torch::NoGradGuard no_grad;
  const stretto::testing::OwnProducts own;
  const std::vector<std::vector<int64_t>> texts{
      {5, 9, 14, 7, 10, 12, 3}, {8}, {20, 11, 6, 4, 4, 19, 7, 13, 5, 9, 16, 3}};
  for (const Form& form : forms()) {
    SCOPED_TRACE(form.name);
    const auto model = made(form.options);
    std::vector<at::Tensor> alone;
    for (const auto& ids : texts) {
      alone.push_back(model->forward(packed(sequences({ids})), {}, {}).rows);
    }
    EXPECT_TRUE(at::equal(model->forward(packed(documents()), {}, {}).rows, at::cat(alone)));
  }
}

TEST(CausalModel, DropoutDoesNotDependOnTheCutIntoMicroBatches) {
  const torch::NoGradGuard no_grad;
  CausalTransformerOptions options = llama();
  options.sliding_window = 3;
  options.dropout = options.attention_dropout = options.activation_dropout = 0.3;
  const auto model = made(options);
  const auto rows_of = [&](const data::Batch& batch, uint64_t key) {
    const ForwardContext context{.training = true, .dropout_key = key};
    return model->forward(testing::targets(batch), {}, context).rows;
  };
  const data::Batch a = testing::first_batch(), b = testing::second_batch();
  const at::Tensor parts = at::cat({rows_of(a, 5), rows_of(b, 5)});
  EXPECT_LT(testing::relative_distance(parts, rows_of(data::concatenate({a, b}), 5)), 1e-5);
  EXPECT_GT(testing::relative_distance(rows_of(a, 5), rows_of(a, 6)), 1e-3);
}

int64_t parameters_of(const CausalTransformerOptions& options, int64_t vocabulary) {
  return num_parameters(
      *make_causal_model({.model = options, .rows = vocabulary, .device = at::kMeta}, nullptr));
}

// Checkpoints have these names, and first weights follow from them.
TEST(CausalModel, NamesOfParametersNeverChange) {
  const auto names_of = [](CausalTransformerOptions options) {
    options.num_layers = 1;
    std::vector<std::string> names;
    for (const auto& item : made(options)->named_parameters()) names.push_back(item.key());
    std::sort(names.begin(), names.end());
    return names;
  };
  const std::string layer = "decoder.layers.0.";
  EXPECT_EQ(names_of(small()),
            (std::vector<std::string>{
                "decoder.embedding.weight", "decoder.final_norm.bias", "decoder.final_norm.weight",
                layer + "ffn.down.bias", layer + "ffn.down.weight", layer + "ffn.up.bias",
                layer + "ffn.up.weight", layer + "ffn_residual.norm.bias",
                layer + "ffn_residual.norm.weight", layer + "self_attention.out.bias",
                layer + "self_attention.out.weight", layer + "self_attention.qkv.bias",
                layer + "self_attention.qkv.weight", layer + "self_residual.norm.bias",
                layer + "self_residual.norm.weight", "decoder.positions.weight"}));
  CausalTransformerOptions qwen3 = llama();
  qwen3.qk_norm = true;
  EXPECT_EQ(names_of(qwen3),
            (std::vector<std::string>{
                "decoder.embedding.weight", "decoder.final_norm.weight", layer + "ffn.down.weight",
                layer + "ffn.up.weight", layer + "ffn_residual.norm.weight",
                layer + "self_attention.k_norm.weight", layer + "self_attention.out.weight",
                layer + "self_attention.q_norm.weight", layer + "self_attention.qkv.weight",
                layer + "self_residual.norm.weight", "output.weight"}));
}

TEST(CausalModel, PublishedModelsHaveTheirNumbersOfParameters) {
  const std::vector<std::pair<const char*, int64_t>> gpt2{{"small", 124'439'808},
                                                          {"medium", 354'823'168},
                                                          {"large", 774'030'080},
                                                          {"xl", 1'557'611'200}};
  for (const auto& [preset, count] : gpt2) {
    CausalTransformerOptions options;
    options.preset = preset;
    EXPECT_EQ(parameters_of(options, 50257), count) << preset;
  }
  CausalTransformerOptions form;
  form.preset = "none";
  form.norm_layer = "rms_norm";
  form.activation = "swiglu";
  form.biases = "none";
  form.positions = "rotary";
  CausalTransformerOptions llama2 = form;  // 7B
  llama2.num_layers = llama2.num_heads = 32;
  llama2.d_model = 4096;
  llama2.ffn_dim = 11008;
  llama2.tie_embeddings = false;
  EXPECT_EQ(parameters_of(llama2, 32000), 6'738'415'616);
  CausalTransformerOptions llama3 = form;  // 3.2 1B
  llama3.num_layers = 16;
  llama3.d_model = 2048;
  llama3.num_heads = 32;
  llama3.num_kv_heads = 8;
  llama3.ffn_dim = 8192;
  EXPECT_EQ(parameters_of(llama3, 128256), 1'235'814'400);
  CausalTransformerOptions qwen3 = form;  // 0.6B
  qwen3.num_layers = 28;
  qwen3.d_model = 1024;
  qwen3.num_heads = 16;
  qwen3.num_kv_heads = 8;
  qwen3.head_dim = 128;
  qwen3.ffn_dim = 3072;
  qwen3.qk_norm = true;
  EXPECT_EQ(parameters_of(qwen3, 151936), 596'049'920);
}

TEST(CausalModel, FirstWeightsAreGpt2s) {
  CausalTransformerOptions options;
  options.preset = "nano";
  const auto model =
      make_causal_model({.model = options, .rows = 200, .specials = {.pad = 0}}, nullptr);
  const auto parameters = model->named_parameters();
  const double residual = 0.02 / std::sqrt(8.0);  // two parts of each of four layers
  const std::vector<std::pair<std::string, double>> expected{
      {"decoder.embedding.weight", 0.02},
      {"decoder.positions.weight", 0.02},
      {"decoder.layers.1.self_attention.qkv.weight", 0.02},
      {"decoder.layers.1.self_attention.out.weight", residual},
      {"decoder.layers.1.ffn.up.weight", 0.02},
      {"decoder.layers.1.ffn.down.weight", residual}};
  for (const auto& [name, deviation] : expected) {
    EXPECT_NEAR(parameters[name].std().item<double>() / deviation, 1, 0.03) << name;
  }
  EXPECT_EQ(parameters["decoder.embedding.weight"][0].abs().sum().item<double>(), 0);
  EXPECT_EQ(parameters["decoder.layers.1.ffn.down.bias"].abs().sum().item<double>(), 0);
  options.scale_residual_init = false;
  options.init_std = 0.1;
  options.tie_embeddings = false;
  const auto other = make_causal_model({.model = options, .rows = 200}, nullptr);
  for (const char* name : {"decoder.layers.1.ffn.down.weight", "output.weight"}) {
    EXPECT_NEAR(other->named_parameters()[name].std().item<double>(), 0.1, 0.003) << name;
  }
}

TEST(CausalModel, RulesOfTheConfigurationComeFirst) {
  CausalTransformerOptions options = small();
  options.init = {"*.self_attention.out.weight constant value=0.5"};
  const auto model = made(options);
  EXPECT_TRUE(model->named_parameters()["decoder.layers.2.self_attention.out.weight"]
                  .eq(0.5)
                  .all()
                  .item<bool>());
}

TEST(CausalModel, SaysWhichTablesAndTiesItHas) {
  const auto tied = made(small()), untied = made(llama());
  ASSERT_EQ(tied->vocabulary_tables().size(), 1u);
  EXPECT_EQ(tied->vocabulary_tables()[0].parameter, "decoder.embedding.weight");
  ASSERT_EQ(tied->tied_names().size(), 1u);
  EXPECT_FALSE(tied->named_parameters().contains("output.weight"));
  ASSERT_EQ(untied->vocabulary_tables().size(), 2u);
  EXPECT_EQ(untied->vocabulary_tables()[1].parameter, "output.weight");
  EXPECT_TRUE(untied->tied_names().empty());
  EXPECT_TRUE(untied->named_parameters().contains("output.weight"));
}

TEST(CausalModel, KnowsItsPositionsAndHasNoState) {
  CausalTransformerOptions options = small();
  options.max_positions = 9;
  const auto learned = made(options);
  EXPECT_EQ(learned->max_length(), 9);
  EXPECT_EQ(max_length_of(CausalModelOptions(options)), 9);
  EXPECT_THROW(learned->forward(packed(documents()), {}, {}), Error);
  EXPECT_GT(made(llama())->max_length(), 1'000'000);
  EXPECT_TRUE(learned->carry_shapes().empty());
  EXPECT_TRUE(learned->first_carry(3).empty());
  EXPECT_THROW(learned->forward(packed(sequences({{5, 6}})), {at::zeros({1, 4})}, {}), c10::Error);
}

TEST(CausalModel, AWindowCostsLessThanAllTokens) {
  CausalTransformerOptions options = llama();
  const double all = made(options)->operations(100);
  options.sliding_window = 10;
  const double near = made(options)->operations(100);
  // Three layers, whose rows are 16 wide, attend to 90 tokens less.
  EXPECT_DOUBLE_EQ(all - near, 3 * 90 * 2 * 2 * 16.0);
  options.full_attention_every = 3;
  EXPECT_DOUBLE_EQ(all - made(options)->operations(100), 2 * 90 * 2 * 2 * 16.0);
  EXPECT_EQ(cost_of(*made(options), 100).training_flops, 3 * made(options)->operations(100));
}

std::string problem_of(const CausalModelOptions& options) {
  const Error error = stretto::testing::failure(ExitCode::kUsage, [&] { made(options); });
  return error.what();
}

TEST(CausalModel, RefusesOptionsThatContradictEachOther) {
  CausalTransformerOptions options = small();
  options.num_heads = 5;
  EXPECT_NE(problem_of(options).find("5 heads do not divide a width of 16"), std::string::npos);
  options.head_dim = 4;
  EXPECT_NO_THROW(made(options));
  options = llama();
  options.head_dim = 5;
  EXPECT_NE(problem_of(options).find("model.head_dim: rotary positions need an even head width"),
            std::string::npos);
  options = llama();
  options.num_kv_heads = 3;
  EXPECT_NE(problem_of(options).find("model.num_kv_heads: 3 heads of keys"), std::string::npos);
  options = small();
  options.d_model = 0;
  EXPECT_NE(problem_of(options).find("model.d_model: model.preset = \"none\" gives no d_model"),
            std::string::npos);
  options = small();
  options.positions = "alibi";
  options.attention_softcap = 2;
  EXPECT_NE(problem_of(options).find("model.attention_softcap"), std::string::npos);
  options = small();
  options.parallel_residual = true;
  options.norm = "post";
  EXPECT_NE(problem_of(options).find("model.parallel_residual"), std::string::npos);
  options = llama();
  options.rope = {.scaling = "llama3", .factor = 8, .high_frequency_factor = 1};
  EXPECT_NE(problem_of(options).find("model.rope.low_frequency_factor"), std::string::npos);
  options = llama();
  options.rope = {.scaling = "yarn", .factor = 8, .fast_rotations = 1};
  EXPECT_NE(problem_of(options).find("model.rope.slow_rotations"), std::string::npos);
  options = small();
  options.logit_softcap = 3;
  const losses::CrossEntropyOptions r_drop{.r_drop = 1};
  EXPECT_THROW(make_causal_model(setup_of(options), losses::make_loss(r_drop),
                                 losses::make_pair_loss(r_drop)),
               Error);
}

}  // namespace
}  // namespace stretto::models
