#include "families/language_model/engine/language_model.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "data/documents/stream_columns.h"
#include "families/language_model/language_model_display.h"
#include "families/language_model/requests.h"
#include "optim/group_options.h"
#include "parallel/carry.h"
#include "tasks/exported_run.h"
#include "tests/base/failure.h"
#include "tests/base/standard_output.h"
#include "tests/families/language_model/engine/animals.h"
#include "tests/tasks/listed_scores.h"
#include "tests/tasks/size_in_events.h"
#include "tests/train/toy_task.h"
#include "text/tokenizer.h"

namespace stretto::tasks {
namespace {

using stretto::testing::failure;
using train::test::events;

// The loss.

TEST_F(LanguageModelTest, TheLossIsThatOfEachSequenceByItself) {
  for (const char* packing : {"stream", "document"}) {
    sections().data.packing = packing;
    const auto task = make_task();
    const data::Batch batch = task->train_batches().load(0, 0);
    ASSERT_GT(batch.num_sequences(), 3);
    double slow = 0;
    for (int64_t i = 0; i < batch.num_sequences(); ++i) {
      slow += nll_of(model_of(*task), ids_of(data::stream_inputs(batch).sequence(i)),
                     ids_of(data::stream_next(batch).sequence(i)))
                  .sum()
                  .item<double>();
    }
    const auto sums = task->loss(task->prepare(batch), {});
    EXPECT_NEAR(sums.losses.at(0).item<double>(), slow, 1e-4 * slow) << packing;
    EXPECT_NEAR(sums.statistics.at(0).item<double>(), slow, 1e-4 * slow);
    EXPECT_EQ(task->weights(batch).at(0), static_cast<double>(data::stream_next(batch).num_rows()));
    EXPECT_EQ(size_in_events(*task, batch, language_model_display().loss_unit),
              task->weights(batch).at(0));
  }
}

/// Processes share a micro-batch, and a batch without memory is cut in halves.
TEST_F(LanguageModelTest, PartsOfABatchAddUpToIt) {
  const auto task = make_task();
  const data::Batch whole = task->train_batches().load(0, 0);
  const auto expected = task->loss(task->prepare(whole), {});
  double loss = 0, weight = 0;
  int64_t tokens = 0;
  for (int64_t i = 0; i < 3; ++i) {
    const data::Batch part = data::even_part(whole, i, 3);
    const auto sums = task->loss(task->prepare(part), {});
    loss += sums.losses.at(0).item<double>();
    weight += task->weights(part).at(0);
    tokens += sums.counts.at(0);
  }
  EXPECT_NEAR(loss, expected.losses.at(0).item<double>(), 1e-5 * loss);
  EXPECT_EQ(weight, task->weights(whole).at(0));
  EXPECT_EQ(tokens, expected.counts.at(0));
}

TEST_F(LanguageModelTest, AStateGoesOnThroughTheStretchesOfALane) {
  choose("lstm");
  experiment_.options.train.update_freq = 2;  // two groups of lanes
  const auto task = make_task();
  parallel::Carry carry(task->carry(), {});
  EXPECT_EQ(carry.num_lanes(), 4);
  const auto& batches = task->train_batches();
  ASSERT_EQ(batches.order(), data::Order::kLanes);
  std::map<int32_t, std::vector<int64_t>> inputs, next;
  double loss = 0;
  for (int64_t update = 0; update < 3; ++update) {
    std::vector<data::Batch> micro_batches;
    std::vector<parallel::Lanes> lanes;
    for (int64_t i = 0; i < 2; ++i) {
      micro_batches.push_back(batches.load(0, 2 * update + i));
      lanes.push_back(micro_batches.back().lanes);
    }
    carry.begin(lanes);
    for (const data::Batch& batch : micro_batches) {
      const auto sums = task->loss(task->prepare(batch), {.update = update, .carry = &carry});
      loss += sums.losses.at(0).item<double>();
      carry.propose(batch.lanes, sums.carry);
      for (int64_t k = 0; k < batch.num_sequences(); ++k) {
        const int32_t lane = batch.lanes[static_cast<size_t>(k)];
        const auto read = data::stream_inputs(batch).sequence(k);
        inputs[lane].insert(inputs[lane].end(), read.begin(), read.end());
        const auto wanted = data::stream_next(batch).sequence(k);
        next[lane].insert(next[lane].end(), wanted.begin(), wanted.end());
      }
    }
    carry.commit();
  }
  double whole = 0;
  for (const auto& [lane, ids] : inputs) {
    whole += nll_of(model_of(*task), ids, next.at(lane)).sum().item<double>();
  }
  EXPECT_EQ(inputs.size(), 4U);
  EXPECT_NEAR(loss, whole, 1e-4 * whole);
}

// The fault of most reproductions of AWD-LSTM: a mask that never reaches the product, or that
// validation has too.
TEST_F(LanguageModelTest, WeightDropChangesTheLossOfTrainingAndNotThatOfValidation) {
  choose("lstm");
  const auto without = make_task();
  sections().model.as<models::CausalLstmModelOptions>().weight_drop = 0.5;
  const auto with = make_task();
  const data::Batch batch = without->train_batches().load(0, 0);
  parallel::Carry carry(without->carry(), {});
  carry.begin(std::vector<parallel::Lanes>{batch.lanes});
  const auto loss_of = [&](LanguageModelTask& task, int64_t update) {
    const auto sums = task.loss(task.prepare(batch), {.update = update, .carry = &carry});
    return sums.losses.at(0).item<double>();
  };
  const double plain = loss_of(*without, 0), dropped = loss_of(*with, 0);
  EXPECT_NE(dropped, plain);
  EXPECT_EQ(loss_of(*with, 0), dropped) << "one mask of an update";
  EXPECT_NE(loss_of(*with, 1), dropped);
  EXPECT_EQ(loss_of(*without, 1), plain);
  EXPECT_EQ(valid_nll(*with), valid_nll(*without));
}

TEST_F(LanguageModelTest, AModelWithoutAStateHasNoCarry) {
  EXPECT_TRUE(make_task()->carry().empty());
  EXPECT_FALSE(experiment::find_task_rules(experiment_.options)->has_carry(experiment_.options));
  choose("lstm");
  const auto states = make_task()->carry();
  ASSERT_EQ(states.size(), 4U);
  EXPECT_EQ(states.front().values.sizes(), (std::vector<int64_t>{4, 16}));
  EXPECT_TRUE(experiment::find_task_rules(experiment_.options)->has_carry(experiment_.options));
}

// Scores.

TEST_P(LanguageModelKinds, ItsNumbersAreThoseOfItsList) {
  choose(GetParam());
  const auto task = make_task();
  const auto validation = task->validate();
  expect_listed(validation, experiment_.options);
  EXPECT_EQ(validation.scores.size(), 5U);
  const auto measures = task->measures({.losses = {9}, .weights = {4}, .statistics = {8}});
  EXPECT_EQ(measures.size(), 2U);
  EXPECT_NEAR(measures.front().value, 2, 1e-12);
  expect_listed(measures, experiment_.options);
}

// Bad input.

TEST_F(LanguageModelTest, LanesThatTheTextDoesNotFillAreRefused) {
  choose("lstm");
  make_task();
  sections().data.bptt = 1000;
  EXPECT_NE(failure(ExitCode::kBadData, [&] { make_task(); }).message().find("data.bptt"),
            std::string::npos);
  sections().data.bptt = 10;
  sections().data.lanes = 5000;
  EXPECT_NE(failure(ExitCode::kBadData, [&] { make_task(); }).message().find("data.lanes"),
            std::string::npos);
  sections().data.lanes = 4;
  sections().eval.lanes = 500;
  EXPECT_NE(failure(ExitCode::kBadData, [&] { make_task(); }).message().find("eval.lanes"),
            std::string::npos);
}

TEST_P(LanguageModelKinds, DocumentsOfOneTokenAreRead) {
  choose(GetParam());
  std::string words;
  for (int i = 0; i < 100; ++i) words += "the\n\ndog\n";
  sections().data.train = {folder_.write("short.txt", words)};
  sections().data.packing = "document";
  const auto task = make_task();
  EXPECT_GT(task->train_batches().num_batches(), 0);
  EXPECT_TRUE(std::isfinite(valid_nll(*task)));
}

// Commands.

TEST_P(LanguageModelKinds, ARunLearnsAndIsEvaluated) {
  choose(GetParam());
  const auto setup = train(160);
  const auto valid = events(setup, "valid");
  ASSERT_EQ(valid.size(), 4U);
  EXPECT_LT(valid.back().number("ppl").value(), valid.front().number("ppl").value());
  EXPECT_LT(valid.back().number("ppl").value(), 4) << "of 17 words";
  EXPECT_GT(events(setup, "train").front().number("tokens_per_second").value(), 0);

  const std::string per_line = (folder_ / "lines.tsv").string();
  const std::string text = "the dog barks here .\n\nthe emu\n";
  const auto eval = [&](const LanguageModelEvalFiles& files, bool as_json) {
    return stretto::testing::standard_output_of([&] {
      EXPECT_EQ(family_.eval({.experiment = experiment_,
                              .run_directory = (folder_ / "run").string(),
                              .checkpoint = "last",
                              .json = as_json,
                              .own = files},
                             {}),
                0);
    });
  };
  const auto json = nlohmann::json::parse(eval({}, true));
  EXPECT_NEAR(json.at("nll").get<double>(), valid.back().number("nll").value(), 1e-6);
  EXPECT_NEAR(json.at("ppl").get<double>(), std::exp(json.at("nll").get<double>()), 1e-9);
  EXPECT_NEAR(json.at("bits_per_byte").get<double>(), valid.back().number("bits_per_byte").value(),
              1e-6);
  EXPECT_NEAR(json.at("word_ppl").get<double>(), valid.back().number("word_ppl").value(), 1e-4);

  const std::string printed =
      eval({.data = {folder_.write("test.txt", text)}, .per_line = per_line}, false);
  EXPECT_NE(printed.find("tokens 10"), std::string::npos) << printed;
  EXPECT_NE(printed.find("ends of lines counted; <unk> counted, 1 token"), std::string::npos)
      << printed;
  EXPECT_EQ(json.at("unknown").get<int64_t>(), 0);
  const auto lines = split(read_file(per_line), '\n');
  ASSERT_EQ(lines.size(), 4U) << "one for each line, a blank one too, and nothing behind the last";
  EXPECT_TRUE(lines[0].ends_with("\t6\t5")) << lines[0];
  EXPECT_TRUE(lines[1].ends_with("\t1\t0")) << lines[1];
  EXPECT_TRUE(lines[2].ends_with("\t3\t2")) << lines[2];
  for (int i = 0; i < 3; ++i) EXPECT_LT(std::stod(lines[static_cast<size_t>(i)]), 0);
}

TEST_F(LanguageModelTest, SampledTokensTrainAModelThatIsScoredOverAll) {
  choose("lstm");
  sections().loss.sampled_tokens = 64;  // with replacement, of about twenty tokens
  const auto setup = train(160);
  const auto valid = events(setup, "valid");
  EXPECT_LT(valid.back().number("ppl").value(), 0.7 * valid.front().number("ppl").value());
  const auto sampled = make_task();
  sections().loss.sampled_tokens = 0;
  const auto whole = make_task();
  EXPECT_EQ(valid_nll(*sampled), valid_nll(*whole)) << "of the same first weights";
}

TEST_F(LanguageModelTest, AnExportPutsInFrontOfATextWhatStandsThereHere) {
  sections().tokenizer.type = "byte_bpe";
  sections().tokenizer.vocab_size = 280;
  train(2);
  for (const std::string begin : {"separator", "tokenizer"}) {
    sections().decode.text_begin = begin;
    const ExportRequest request{.experiment = experiment_,
                                .run_directory = (folder_ / "run").string(),
                                .checkpoint = "last",
                                .folder = (folder_ / begin).string()};
    family_.export_model(open_exported_run(request), request);
    const auto tokenizer =
        text::make_json_tokenizer(read_file(folder_ / begin / "tokenizer.json"), "test");
    const auto ids = tokenizer->specials();
    const bool is_separator = begin == "separator";
    EXPECT_EQ(tokenizer->sequences().front(),
              std::vector<int64_t>{is_separator ? ids.eos : ids.bos});
    // The tokenizer is one of encoders, with an end behind a text too.
    EXPECT_EQ(tokenizer->sequences().single.size(), is_separator ? 2U : 3U);
  }
}

/// Groups of about twenty tokens, and matrices of their own.
void divide_into_groups(experiment::LanguageModelOptions& own) {
  const models::AdaptiveOptions groups{.cutoffs = {6, 12}, .div_value = 2};
  if (own.model.is<models::CausalLstmModelOptions>()) {
    auto& lstm = own.model.as<models::CausalLstmModelOptions>();
    lstm.adaptive_softmax = groups;
    lstm.tie_embeddings = lstm.output_bias = false;
  } else {
    auto& transformer = own.model.as<models::CausalTransformerOptions>();
    transformer.adaptive_softmax = groups;
    transformer.tie_embeddings = false;
  }
}

TEST_P(LanguageModelKinds, GroupsOfTokensTrainAModelThatIsScoredOverAll) {
  choose(GetParam());
  divide_into_groups(sections());
  const auto setup = train(160);
  const auto valid = events(setup, "valid");
  EXPECT_LT(valid.back().number("ppl").value(), valid.front().number("ppl").value());
  EXPECT_LT(valid.back().number("ppl").value(), 6) << "of 17 words";
  const auto eval = nlohmann::json::parse(stretto::testing::standard_output_of([&] {
    EXPECT_EQ(family_.eval({.experiment = experiment_,
                            .run_directory = (folder_ / "run").string(),
                            .checkpoint = "last",
                            .json = true,
                            .own = LanguageModelEvalFiles{}},
                           {}),
              0);
  }));
  EXPECT_NEAR(eval.at("nll").get<double>(), valid.back().number("nll").value(), 1e-6);

  // The loss of training is that of evaluation, over the whole vocabulary.
  sections().eval.window = 512;
  const auto task = make_task();
  const auto ids = stream_of(*valid_text().documents);
  const at::Tensor each =
      nll_of(model_of(*task), {ids.begin(), ids.end() - 1}, {ids.begin() + 1, ids.end()});
  EXPECT_NEAR(valid_nll(*task), each.mean().item<double>(), 1e-5);
  EXPECT_TRUE(task->notes().empty()) << task->notes().front();
}

TEST_P(LanguageModelKinds, GroupsOfTokensGoOnBehindAResume) {
  choose(GetParam());
  divide_into_groups(sections());
  const std::string whole = train::test::final_hash(train(24));
  std::filesystem::remove_all(folder_ / "run");
  auto setup = train(14);
  setup.train.max_steps = 24;
  const auto task = make_task();
  EXPECT_EQ(train::Trainer(*task, setup).run(), ExitCode::kOk);
  EXPECT_EQ(train::test::final_hash(setup), whole);
}

TEST_P(LanguageModelKinds, AVocabularyThatIsTooSmallForItsGroupsIsRefused) {
  choose(GetParam());
  divide_into_groups(sections());
  if (sections().model.is<models::CausalLstmModelOptions>()) {
    sections().model.as<models::CausalLstmModelOptions>().adaptive_softmax.cutoffs = {6, 300};
  } else {
    sections().model.as<models::CausalTransformerOptions>().adaptive_softmax.cutoffs = {6, 300};
  }
  const Error error = failure(ExitCode::kUsage, [&] { family_.first_assets(experiment_); });
  EXPECT_NE(std::string(error.what()).find("model.adaptive_softmax.cutoffs"), std::string::npos)
      << error.what();
  // Names of tensors depend on no vocabulary.
  const auto names = family_.tensor_names(experiment_.options);
  EXPECT_TRUE(std::ranges::any_of(
      names, [](const auto& tensor) { return tensor.name == "output.tails.1.weight"; }));
}

TEST_F(LanguageModelTest, TextWithoutAnythingToEvaluateIsRefused) {
  train(2);
  sections().data.valid.clear();
  failure(ExitCode::kUsage, [&] {
    family_.eval({.experiment = experiment_,
                  .run_directory = (folder_ / "run").string(),
                  .checkpoint = "last",
                  .own = LanguageModelEvalFiles{}},
                 {});
  });
}

INSTANTIATE_TEST_SUITE_P(Each, LanguageModelKinds, ::testing::Values("transformer", "lstm"),
                         [](const auto& kind) { return std::string(kind.param); });

}  // namespace
}  // namespace stretto::tasks
