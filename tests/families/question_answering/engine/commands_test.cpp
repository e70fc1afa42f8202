#include "families/question_answering/engine/commands.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "config/resolved.h"
#include "experiment/experiment_schema.h"
#include "families/question_answering/engine/loaded_questions.h"
#include "families/question_answering/engine/question_answering_family.h"
#include "families/question_answering/question_data.h"
#include "families/question_answering/requests.h"
#include "runs/provenance.h"
#include "runs/run_folder.h"
#include "runs/train_state.h"
#include "store/checkpoint.h"
#include "tests/base/failure.h"
#include "tests/base/standard_output.h"
#include "tests/base/temp_dir.h"
#include "tests/families/question_answering/engine/small_questions.h"

namespace stretto::tasks {
namespace {

store::TensorView view_of_parameter(const std::string& name, const at::Tensor& tensor) {
  return {.name = name,
          .dtype = store::DType::kF32,
          .shape = tensor.sizes().vec(),
          .bytes = {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()}};
}

/// A run of a model that knows nothing.
class QuestionCommands : public ::testing::Test {
 protected:
  QuestionCommands() {
    auto& e = loaded_.options;
    e = testing::small_experiment(folder_);
    e.train.max_steps = 5000;
    e.eval.best_metric = "f1";
    write_run();
  }

  void write_run() {
    const auto assets = question_answering_family().first_assets(loaded_);
    const auto task = question_answering_family().make_task(loaded_.options, assets, {});
    auto run = runs::RunFolder::open_for_training(run_);
    run.write_assets(assets);
    run.write_config(config::to_toml(experiment::experiment_schema(loaded_.options)), "0");
    const runs::RunIdentity identity{.run_id = run.run_id(),
                                     .config_hash = "0",
                                     .tokenizer = runs::tokenizer_hashes(task->assets())};
    std::vector<store::TensorView> tensors;
    for (const auto& item : task->model().named_parameters()) {
      tensors.push_back(view_of_parameter(item.key(), item.value()));
    }
    store::CheckpointStore(run_).save({.step = 0,
                                       .run_id = identity.run_id,
                                       .config_hash = identity.config_hash,
                                       .provenance = runs::provenance_of(identity),
                                       .files = {{"model", tensors}},
                                       .state_json = runs::TrainState{}.to_json()});
  }

  nlohmann::json eval(const QuestionEvalFiles& files) {
    const EvalRequest request{
        .experiment = loaded_, .run_directory = run_, .checkpoint = "", .json = true, .own = files};
    return nlohmann::json::parse(
        stretto::testing::standard_output_of([&] { EXPECT_EQ(evaluate_answers(request, {}), 0); }));
  }

  std::vector<std::string> infer(const std::string& file, bool json,
                                 const QuestionInferArguments& arguments = {}) {
    const InferRequest request{.experiment = loaded_,
                               .run_directory = run_,
                               .checkpoints = "",
                               .files = {file},
                               .json = json,
                               .own = arguments};
    std::istringstream output(
        stretto::testing::standard_output_of([&] { EXPECT_EQ(infer_answers(request, {}), 0); }));
    std::vector<std::string> lines;
    for (std::string line; std::getline(output, line);) lines.push_back(line);
    return lines;
  }

  testing::TempDir folder_;
  const std::string run_ = (folder_.path() / "run").string();
  experiment::LoadedExperiment loaded_;
};

TEST_F(QuestionCommands, EvalPrintsScoresAndWritesPredictions) {
  const auto predictions = (folder_.path() / "predictions.json").string();
  const auto nbest = (folder_.path() / "nbest.json").string();
  const auto found = eval({.predictions = predictions, .nbest = nbest});
  for (const char* key : {"exact_match", "f1", "HasAns_f1", "NoAns_f1", "loss", "best_f1_thresh"}) {
    EXPECT_TRUE(found.contains(key)) << key << " in " << found;
  }
  EXPECT_EQ(found.at("set"), "valid");
  EXPECT_EQ(found.at("total"), 4);
  const auto texts = nlohmann::json::parse(read_file(predictions));
  EXPECT_EQ(texts.size(), 4u);
  EXPECT_EQ(nlohmann::json::parse(read_file(nbest)).size(), 4u);
}

TEST_F(QuestionCommands, EvalAndInferTellWhatQuestionsLost) {
  const auto told = [&](const auto& command) {
    ::testing::internal::CaptureStderr();
    command();
    return ::testing::internal::GetCapturedStderr();
  };
  const std::string questions = (folder_.path() / "data.json").string();
  EXPECT_EQ(told([&] { eval({}); }).find("data.max_question_tokens"), std::string::npos);
  experiment::questions_of(loaded_.options).data.max_question_tokens = 3;
  // The questions have 5, 6, 8 and 2 tokens: words that are not known are spelt.
  const std::string said = "3 questions cut to data.max_question_tokens: 10 tokens were not read";
  EXPECT_NE(told([&] { eval({}); }).find(said), std::string::npos);
  EXPECT_NE(told([&] { infer(questions, true); }).find(said), std::string::npos);
  const auto file = folder_.write("one.txt", "Who lives in?\tIn Oslo lives Anna.\n");
  EXPECT_NE(told([&] {
              infer(file, false);
            }).find("1 question cut to data.max_question_tokens: 1 token was not read"),
            std::string::npos)
      << "who lives in ?";
}

TEST_F(QuestionCommands, InferAnswersAFileAsEvalDoes) {
  const auto predictions = (folder_.path() / "predictions.json").string();
  eval({.predictions = predictions});
  const auto texts = nlohmann::json::parse(read_file(predictions));
  const auto lines = infer((folder_.path() / "data.json").string(), true);
  ASSERT_EQ(lines.size(), 4u);
  for (const auto& line : lines) {
    const auto answer = nlohmann::json::parse(line);
    EXPECT_EQ(answer.at("answer"), texts.at(answer.at("id").get<std::string>())) << line;
  }
}

TEST_F(QuestionCommands, InferKeepsALineForEachQuestion) {
  const auto file = folder_.write("questions.txt",
                                  "Who?\tIn Oslo lives Anna.\n"
                                  "no tab\n"
                                  "{\"question\": \"Who?\", \"id\": 7}\n"
                                  "{\"question\": \"Who?\", \"context\": \"Änna.\"}\n");
  EXPECT_EQ(infer(file, false).size(), 4u);
  EXPECT_EQ(infer(file, false, {.scores = true, .nbest = 2}).size(), 8u);
  const auto json = infer(file, true, {.nbest = 3});
  ASSERT_EQ(json.size(), 4u);
  EXPECT_TRUE(nlohmann::json::parse(json[1]).contains("problem")) << json[1];
  const auto third = nlohmann::json::parse(json[2]);
  EXPECT_TRUE(third.contains("problem")) << json[2];
  EXPECT_EQ(third.at("id"), "7") << "whose line it answers";
  const auto last = nlohmann::json::parse(json[3]);
  EXPECT_EQ(last.at("answers").size(), 3u);
  for (const auto& one : last.at("answers")) {
    EXPECT_EQ(one.contains("begin"), !one.at("text").get<std::string>().empty()) << one;
  }
}

TEST_F(QuestionCommands, InferTellsAMissingFileBeforeItAnswersAnother) {
  const auto file = folder_.write("questions.txt", "Who?\tIn Oslo lives Anna.\n");
  const InferRequest request{.experiment = loaded_,
                             .run_directory = run_,
                             .checkpoints = "",
                             .files = {file, (folder_.path() / "gone.json").string()},
                             .own = QuestionInferArguments{}};
  EXPECT_EQ(stretto::testing::standard_output_of([&] {
              stretto::testing::failure(ExitCode::kUsage, [&] { infer_answers(request, {}); });
            }),
            "");
}

}  // namespace
}  // namespace stretto::tasks
