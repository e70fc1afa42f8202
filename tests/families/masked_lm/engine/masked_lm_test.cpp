#include "families/masked_lm/engine/masked_lm.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/text.h"
#include "experiment/rules.h"
#include "experiment/task_rules.h"
#include "families/masked_lm/engine/masked_lm_family.h"
#include "families/masked_lm/engine/masked_text_view.h"
#include "families/masked_lm/masked_lm_display.h"
#include "families/masked_lm/masked_lm_options.h"
#include "families/masked_lm/requests.h"
#include "tests/base/failure.h"
#include "tests/base/standard_output.h"
#include "tests/base/temp_dir.h"
#include "tests/families/masked_lm/small_masked_lm.h"
#include "tests/tasks/listed_scores.h"
#include "tests/tasks/size_in_events.h"
#include "tests/tasks/train_family.h"
#include "tests/train/toy_task.h"
#include "text/tokenizer_spec.h"

namespace stretto::tasks {
namespace {

using stretto::testing::failure;
using train::test::events;

class MaskedLmTest : public ::testing::Test {
 protected:
  MaskedLmTest() {
    experiment_.options.task = experiment::MaskedLmOptions{};
    stretto::testing::make_small(sections(), folder_, 300, 40);
    experiment_.options.report.samples = 3;
  }

  experiment::MaskedLmOptions& sections() {
    return experiment_.options.task.as<experiment::MaskedLmOptions>();
  }

  std::unique_ptr<MaskedLmTask> make_task() {
    if (assets_.empty()) assets_ = family_.first_assets(experiment_);
    return std::make_unique<MaskedLmTask>(experiment_.options, assets_, CommandContext{});
  }

  train::TrainerSetup train(int64_t updates) {
    return train_family(family_, experiment_, folder_ / "run", {.updates = updates});
  }

  template <class Command>
  std::string output_of(const Command& command) {
    return stretto::testing::standard_output_of([&] { EXPECT_EQ(command(), 0); });
  }

  const Family& family_ = masked_lm_family();
  testing::TempDir folder_;
  experiment::LoadedExperiment experiment_;
  Assets assets_;
};

// The loss.

/// -log p of the masked tokens of a batch, [M], sequence after sequence and with whole logits.
at::Tensor slow_nll(MaskedLmTask& task, const data::Batch& batch) {
  auto& model = dynamic_cast<models::TextModel&>(task.model());
  const auto p = model.named_parameters();
  std::vector<at::Tensor> losses;
  for (int64_t i = 0; i < batch.num_sequences(); ++i) {
    const data::Batch alone = data::part(batch, i, i + 1);
    const at::Tensor rows = model.encode(prepare_texts(alone, model).rows(), {});
    const auto places = data::masked_rows(alone).sequence(0);
    const auto labels = data::masked_labels(alone).sequence(0);
    for (size_t k = 0; k < places.size(); ++k) {
      at::Tensor row = at::linear(rows[places[k]], p["head.dense.weight"], p["head.dense.bias"]);
      row = at::layer_norm(at::gelu(row), {row.size(0)}, p["head.norm.weight"], p["head.norm.bias"],
                           model.options().norm_epsilon);
      const at::Tensor logits = at::linear(row, p["encoder.embedding.weight"], p["head.bias"])
                                    .slice(0, 0, model.masked_tokens().num_classes());
      losses.push_back(-logits.log_softmax(0)[labels[k]]);
    }
  }
  return at::stack(losses);
}

TEST_F(MaskedLmTest, LossAndGradientsAreThoseOfEachMaskedToken) {
  const auto task = make_task();
  task->model().to(at::kDouble);
  const data::Batch batch = task->train_batches().load(0, 0);
  ASSERT_GT(batch.num_sequences(), 5);
  const at::Tensor loss = task->loss(task->prepare(batch), {}).losses.at(0);
  const at::Tensor slow = slow_nll(*task, batch).sum();
  EXPECT_NEAR(loss.item<double>(), slow.item<double>(), 1e-9 * slow.item<double>());
  EXPECT_EQ(task->weights(batch).at(0), static_cast<double>(data::masked_labels(batch).num_rows()));
  EXPECT_EQ(size_in_events(*task, batch, masked_lm_display().loss_unit),
            task->weights(batch).at(0));
  const auto gradients = [&](const at::Tensor& of) {
    return torch::autograd::grad({of}, task->model().parameters(), {}, std::nullopt, false, true);
  };
  const auto found = gradients(loss), wanted = gradients(slow);
  for (size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(found[i].defined(), wanted[i].defined()) << i;
    if (wanted[i].defined()) {
      EXPECT_TRUE(at::allclose(found[i], wanted[i], 1e-7, 1e-9)) << i;
    }
  }
}

/// Processes share a micro-batch, and a batch without memory is cut in halves.
TEST_F(MaskedLmTest, PartsOfABatchAddUpToIt) {
  const auto task = make_task();
  task->model().to(at::kDouble);
  const data::Batch whole = task->train_batches().load(0, 0);
  const auto expected = task->loss(task->prepare(whole), {});
  double loss = 0, right = 0, weight = 0;
  int64_t tokens = 0, texts = 0;
  for (int64_t i = 0; i < 3; ++i) {
    const data::Batch part = data::even_part(whole, i, 3);
    const auto sums = task->loss(task->prepare(part), {});
    loss += sums.losses.at(0).item<double>();
    right += sums.statistics.at(0).item<double>();
    weight += task->weights(part).at(0);
    tokens += sums.counts.at(0);
    texts += sums.counts.at(1);
  }
  EXPECT_NEAR(loss, expected.losses.at(0).item<double>(), 1e-9 * loss);
  EXPECT_EQ(right, expected.statistics.at(0).item<double>());
  EXPECT_EQ(weight, task->weights(whole).at(0));
  EXPECT_EQ(tokens, expected.counts.at(0));
  EXPECT_EQ(texts, expected.counts.at(1));
}

TEST_F(MaskedLmTest, ABatchMayHaveNoMaskedToken) {
  const auto task = make_task();
  data::Batch batch = data::masked_batch();
  batch.sample_ids = {0};
  data::tokens(batch).append(std::vector<int64_t>{2, 1, 3});
  data::segments(batch).append(std::vector<int64_t>{0, 0, 0});
  batch.column<int64_t>(data::kMaskedRows).close_sequence();
  batch.column<int64_t>(data::kMaskedLabels).close_sequence();
  const auto sums = task->loss(task->prepare(batch), {});
  EXPECT_EQ(task->weights(batch).at(0), 0);
  EXPECT_EQ(sums.statistics.at(0).item<double>(), 0);
  for (const auto& gradient : torch::autograd::grad({sums.losses.at(0)}, task->model().parameters(),
                                                    {}, std::nullopt, false, true)) {
    if (gradient.defined()) {
      EXPECT_EQ(gradient.abs().sum().item<double>(), 0);
    }
  }
}

// Scores.

TEST_F(MaskedLmTest, AValidationIsTheMeanOverMaskedTokens) {
  const auto task = make_task();
  const auto text =
      open_masked_text(experiment_.options, *load_tokenizer(experiment_.options, assets_).tokenizer,
                       sections().data.valid, "data.valid");
  auto& model = dynamic_cast<models::TextModel&>(task->model());
  double nll = 0;
  int64_t right = 0, tokens = 0;
  for (int64_t i = 0; i < text.sequences->size(); ++i) {
    const at::NoGradGuard no_grad;
    const data::Batch one = data::masked_eval_sample(text, i, 1);
    nll += slow_nll(*task, one).sum().item<double>();
    const auto fillers = fillers_of(model, one, 1);
    const auto& labels = data::masked_labels(one).values;
    for (size_t k = 0; k < labels.size(); ++k) {
      right += fillers[k].best.front().id == labels[k] ? 1 : 0;
      ++tokens;
    }
  }
  for (const int64_t max_tokens : {16, 100, 100000}) {
    const auto batches = data::make_masked_eval_batches(text, max_tokens, 0, /*seed=*/1);
    const auto score = score_masked(model, *batches);
    EXPECT_EQ(score.masked_tokens, tokens);
    EXPECT_EQ(score.tokens, text.sequences->num_rows());
    EXPECT_NEAR(score.nll, nll / static_cast<double>(tokens), 1e-5);
    EXPECT_NEAR(score.accuracy, static_cast<double>(right) / static_cast<double>(tokens), 1e-12);
  }
  const auto scores = task->validate().scores;
  EXPECT_NEAR(train::find_score(scores, "nll")->value, nll / static_cast<double>(tokens), 1e-5);
  EXPECT_NEAR(train::find_score(scores, "ppl")->value,
              std::exp(train::find_score(scores, "nll")->value), 1e-9);
}

TEST_F(MaskedLmTest, ItsNumbersAreThoseOfItsList) {
  const auto task = make_task();
  expect_listed(task->validate(), experiment_.options);
  const auto measures = task->measures({.losses = {6}, .weights = {4}, .statistics = {2}});
  EXPECT_EQ(measures.size(), 3U);
  expect_listed(measures, experiment_.options);
}

TEST_F(MaskedLmTest, FillersAreTheMostProbableTokens) {
  const at::Tensor log_probs = torch::tensor({{0.2, 0.5, 0.3}, {0.6, 0.1, 0.3}}).log();
  const auto fillers = best_fillers(log_probs, 2);
  ASSERT_EQ(fillers.size(), 2U);
  EXPECT_EQ(fillers[0].best[0].id, 1);
  EXPECT_EQ(fillers[0].best[1].id, 2);
  EXPECT_EQ(fillers[1].best[0].id, 0);
  EXPECT_NEAR(fillers[1].best[1].probability, 0.3, 1e-6);
  EXPECT_EQ(best_fillers(log_probs, 10)[0].best.size(), 3U);
}

TEST_F(MaskedLmTest, FillersTellOfLogProbabilitiesThatAreNotFinite) {
  const float inf = std::numeric_limits<float>::infinity();
  const auto fillers = best_fillers(
      torch::tensor({{-0.5F, -1.0F, -2.0F}, {-0.1F, -3.0F, -inf}, {NAN, NAN, NAN}}), 2);
  EXPECT_TRUE(fillers[0].is_finite);
  EXPECT_FALSE(fillers[1].is_finite) << "the token is not among the best";
  EXPECT_GT(fillers[1].best[1].probability, 0);
  EXPECT_FALSE(fillers[2].is_finite);
}

// The log-probabilities of many masks are made in blocks.
TEST_F(MaskedLmTest, FillersOfManyMasksAreThoseOfFew) {
  const auto task = make_task();
  const auto text =
      open_masked_text(experiment_.options, *load_tokenizer(experiment_.options, assets_).tokenizer,
                       sections().data.valid, "data.valid");
  auto& model = dynamic_cast<models::TextModel&>(task->model());
  model.eval();
  std::vector<data::Batch> parts;
  std::vector<MaskFillers> one_by_one;
  for (int64_t i = 0; one_by_one.size() <= 600; i = (i + 1) % text.sequences->size()) {
    parts.push_back(data::masked_eval_sample(text, i, parts.size()));
    for (const auto& filler : fillers_of(model, parts.back(), 2)) one_by_one.push_back(filler);
  }
  const auto together = fillers_of(model, data::concatenate(parts), 2);
  ASSERT_EQ(together.size(), one_by_one.size());
  for (size_t i = 0; i < together.size(); ++i) {
    EXPECT_NEAR(together[i].best.front().probability, one_by_one[i].best.front().probability, 1e-5)
        << i;
  }
}

// Texts.

TEST_F(MaskedLmTest, SamplesShowTextGuessAndTruth) {
  const auto task = make_task();
  const auto samples = task->validate().samples;
  ASSERT_EQ(samples.size(), 3U);
  const auto& rows = std::get<report::RowsSample>(samples.front()).rows;
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_NE(rows[0].second.find('['), std::string::npos) << rows[0].second;
  EXPECT_NE(rows[1].second.find('('), std::string::npos) << rows[1].second;
  EXPECT_FALSE(rows[2].second.empty());
}

TEST_F(MaskedLmTest, MaskedTextHasChosenTokensInBrackets) {
  const auto tokenizer = text::make_spec_tokenizer(
      text::parse_vocab_txt("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\n##s\n", "v"), "v", 1);
  data::Batch batch = data::masked_batch();
  batch.sample_ids = {0};
  data::tokens(batch).append(std::vector<int64_t>{2, 5, 4, 6, 8, 7, 4, 3});
  data::segments(batch).append(std::vector<int64_t>(8));
  batch.column<int64_t>(data::kMaskedRows).append(std::vector<int64_t>{2, 5, 6});
  batch.column<int64_t>(data::kMaskedLabels).append(std::vector<int64_t>{6, 7, 8});
  EXPECT_EQ(masked_text(*tokenizer, batch, 0), "a [MASK] bs [c] [MASK]");
  const auto sample = masked_sample(*tokenizer, batch, 0, {{6, 0.5}, {7, 0.25}, {5, 1}});
  EXPECT_EQ(sample.rows.at(1).second, "b (0.50) | c (0.25) | a (1.00)");
  EXPECT_EQ(sample.rows.at(2).second, "b | c | ##s");
}

// Rules.

TEST_F(MaskedLmTest, RulesNameTheKeys) {
  auto& own = sections();
  experiment_.options.train.max_steps = 5000;
  const auto problems = [&] {
    std::vector<config::Problem> found;
    experiment::check_rules(experiment_.options, {},
                            experiment::find_task_rules(experiment_.options), found);
    std::vector<std::string> keys;
    for (const auto& problem : found) keys.push_back(problem.key);
    return keys;
  };
  EXPECT_EQ(problems(), std::vector<std::string>{});
  own.data.mask_keep = 0.2;
  EXPECT_EQ(problems(), std::vector<std::string>{"data.mask_replace"});
  own.data.mask_keep = 0.1;
  own.tokenizer.type = "sentencepiece";
  EXPECT_EQ(problems(), std::vector<std::string>{"tokenizer.type"});
  own.tokenizer.type = "byte_bpe";
  own.data.max_text_tokens = 1000;
  EXPECT_FALSE(problems().empty());
}

// Commands.

TEST_F(MaskedLmTest, ARunLearnsIsEvaluatedAndFillsMasks) {
  const auto setup = train(200);
  const auto valid = events(setup, "valid");
  ASSERT_EQ(valid.size(), 4U);
  EXPECT_LT(valid.back().number("ppl").value(), 0.5 * valid.front().number("ppl").value());
  EXPECT_GT(events(setup, "train").front().number("tokens_per_second").value(), 0);

  const std::string run = (folder_ / "run").string();
  const std::string score = output_of([&] {
    return family_.eval(
        {.experiment = experiment_, .run_directory = run, .checkpoint = "last", .json = true}, {});
  });
  const auto json = nlohmann::json::parse(score);
  EXPECT_NEAR(json.at("nll").get<double>(), valid.back().number("nll").value(), 1e-6);
  EXPECT_NEAR(json.at("ppl").get<double>(), std::exp(json.at("nll").get<double>()), 1e-9);
  EXPECT_GT(json.at("accuracy").get<double>(), 0.3);
  EXPECT_LE(json.at("accuracy").get<double>(), 1);

  const std::string input = folder_.write(
      "input.txt", "the dog [MASK] here .\nno mask\n\xff\nthe [MASK] moos [MASK] .\nnone\n");
  const auto fill = [&](bool as_json, int64_t nbest = MaskedLmInferArguments().nbest) {
    return output_of([&] {
      return family_.infer({.experiment = experiment_,
                            .run_directory = run,
                            .files = {input},
                            .json = as_json,
                            .own = MaskedLmInferArguments{.nbest = nbest}},
                           {});
    });
  };
  const auto lines = split(fill(true), '\n');
  ASSERT_EQ(lines.size(), 6U) << "and nothing behind the last";
  const auto first = nlohmann::json::parse(lines[0]);
  EXPECT_EQ(first.at("masks").at(0).at("fillers").at(0).at("token"), "barks");
  EXPECT_EQ(first.at("masks").at(0).at("fillers").size(), 5U);
  EXPECT_EQ(first.at("filled"), "the dog barks here.");
  const auto two = nlohmann::json::parse(split(fill(true, 2), '\n')[0]);
  EXPECT_EQ(two.at("masks").at(0).at("fillers").size(), 2U);
  EXPECT_EQ(two.at("filled"), "the dog barks here.");
  EXPECT_TRUE(nlohmann::json::parse(lines[1]).at("masks").empty());
  EXPECT_EQ(nlohmann::json::parse(lines[1]).at("filled"), "no mask");
  EXPECT_TRUE(nlohmann::json::parse(lines[2]).contains("problem"));
  EXPECT_FALSE(nlohmann::json::parse(lines[2]).contains("filled"));
  EXPECT_EQ(nlohmann::json::parse(lines[3]).at("masks").size(), 2U);
  ::testing::internal::CaptureStderr();
  const auto text = split(fill(false), '\n');
  const std::string told = ::testing::internal::GetCapturedStderr();
  ASSERT_EQ(text.size(), 6U);
  EXPECT_NE(told.find("input.txt:2: there is no mask token, `[MASK]`"), std::string::npos) << told;
  EXPECT_EQ(told.find("input.txt:5"), std::string::npos) << told;
  EXPECT_TRUE(text[0].starts_with("barks 0.")) << text[0];
  EXPECT_EQ(text[1], "");
  EXPECT_EQ(std::count(text[3].begin(), text[3].end(), '\t'), 1);
}

TEST_F(MaskedLmTest, TextWithoutAnythingToEvaluateIsRefused) {
  train(2);
  sections().data.valid.clear();
  failure(ExitCode::kUsage, [&] {
    family_.eval({.experiment = experiment_,
                  .run_directory = (folder_ / "run").string(),
                  .checkpoint = "last"},
                 {});
  });
}

}  // namespace
}  // namespace stretto::tasks
