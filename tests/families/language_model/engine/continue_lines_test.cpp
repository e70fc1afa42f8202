#include "families/language_model/engine/continue_lines.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "families/language_model/generation_requests.h"
#include "tests/base/failure.h"
#include "tests/base/standard_output.h"
#include "tests/base/temp_dir.h"
#include "tests/families/language_model/engine/scripted_model.h"

namespace stretto::tasks {
namespace {

using stretto::testing::ScriptedModel;
using stretto::testing::standard_output_of;
using stretto::testing::TempDir;

decoding::GenerationOptions scripted_options() {
  decoding::GenerationOptions options;
  options.method = "beam";
  options.max_new_tokens = 20;
  return options;
}

/// What the command prints, on both channels.
struct PrintedByInfer {
  std::string out, err;
};

PrintedByInfer printed_by_infer(const InferRequest& request,
                                const decoding::GenerationOptions& options = scripted_options(),
                                int64_t max_length = 64) {
  PrintedByInfer all;
  ::testing::internal::CaptureStderr();
  try {
    all.out = standard_output_of([&] {
      continue_lines(request, options, [&] {
        return GenerationRun{.model = ScriptedModel::generating(true, max_length),
                             .tokenizer = ScriptedModel::tokenizer(),
                             .device = at::kCPU};
      });
    });
  } catch (...) {
    ::testing::internal::GetCapturedStderr();
    throw;
  }
  all.err = ::testing::internal::GetCapturedStderr();
  return all;
}

InferRequest of_prompts(std::vector<std::string> prompts, bool stream = false, bool echo = false) {
  InferRequest request;
  request.run_directory = "runs/mine";
  request.own = GenerationArguments{.prompts = std::move(prompts), .stream = stream, .echo = echo};
  return request;
}

std::string refused_by_infer(const InferRequest& request,
                             const decoding::GenerationOptions& options) {
  return stretto::testing::failure(ExitCode::kUsage,
                                   [&] {
                                     continue_lines(request, options, []() -> GenerationRun {
                                       ADD_FAILURE() << "the model is loaded";
                                       return {};
                                     });
                                   })
      .what();
}

TEST(ContinueLines, AnswersEveryLineWithOne) {
  const TempDir folder;
  InferRequest request = of_prompts({});
  request.files = {folder.write("lines.txt", "the cat\n\nmat\n\xff\nthe cat sat on\n")};
  const PrintedByInfer got = printed_by_infer(request, scripted_options(), 4);
  EXPECT_EQ(got.out, " sat on\n\n .\n\n\n");
  EXPECT_NE(got.err.find("an empty line is not continued"), std::string::npos) << got.err;
  EXPECT_NE(got.err.find("not UTF-8; it is not continued"), std::string::npos) << got.err;
  EXPECT_NE(got.err.find("5 tokens, and the model has positions for 4"), std::string::npos)
      << got.err;
}

TEST(ContinueLines, ContinuesPromptsOfTheCommandLine) {
  EXPECT_EQ(printed_by_infer(of_prompts({"the cat"})).out, " sat on mat .\n");
  EXPECT_EQ(printed_by_infer(of_prompts({"the cat"}, false, /*echo=*/true)).out,
            "the cat sat on mat .\n");
  EXPECT_EQ(printed_by_infer(of_prompts({""})).out, "the cat sat on mat .\n");
  EXPECT_EQ(printed_by_infer(of_prompts({"the", "mat"})).out, " cat sat on mat .\n .\n");
}

TEST(ContinueLines, StatsTellWhenTheFirstTokenCame) {
  InferRequest request = of_prompts({"the cat"});
  request.stats = true;
  const std::string said = printed_by_infer(request).err;
  EXPECT_TRUE(std::regex_search(
      said, std::regex(R"(4 new tokens, the first after \d\.\d\d s, \d\.\d\d s\n)")))
      << said;
  request.own = GenerationArguments{.prompts = {"."}, .stream = false, .echo = false};
  EXPECT_EQ(printed_by_infer(request).err.find("the first"), std::string::npos);  // nothing follows
}

TEST(ContinueLines, AStreamPrintsTheSameText) {
  for (const bool echo : {false, true}) {
    for (const std::vector<std::string>& prompts :
         {std::vector<std::string>{"the cat"}, std::vector<std::string>{"the", "", "mat"}}) {
      EXPECT_EQ(printed_by_infer(of_prompts(prompts, /*stream=*/true, echo)).out,
                printed_by_infer(of_prompts(prompts, /*stream=*/false, echo)).out);
    }
  }
  auto options = scripted_options();
  options.stop = {" mat"};
  EXPECT_EQ(printed_by_infer(of_prompts({"the"}, /*stream=*/true), options).out, " cat sat on\n");
}

TEST(ContinueLines, JsonHasEverySampleAndItsEnd) {
  auto options = scripted_options();
  options.beam_size = options.nbest = 2;
  options.stop = {" sat"};
  InferRequest request = of_prompts({"the"});
  request.json = true;
  const auto json = nlohmann::json::parse(printed_by_infer(request, options).out);
  EXPECT_EQ(json.at("prompt"), "the");
  ASSERT_EQ(json.at("continuations").size(), 2U);
  const auto& best = json.at("continuations")[0];
  EXPECT_EQ(best.at("text"), " cat");
  EXPECT_EQ(best.at("end"), "stop");
  EXPECT_EQ(best.at("pieces"), (std::vector<std::string>{"cat", "sat"}));
  EXPECT_EQ(best.at("token_log_probs").size(), 2U);
}

TEST(ContinueLines, TellsOfStopStringsThatDidNotCome) {
  auto options = scripted_options();
  options.max_new_tokens = 2;
  options.stop = {" dog"};
  const PrintedByInfer got = printed_by_infer(of_prompts({"the", "mat"}), options);
  EXPECT_EQ(got.out, " cat sat\n .\n");
  EXPECT_NE(got.err.find("1 of 2 continuations came to decode.max_new_tokens"), std::string::npos)
      << got.err;
}

TEST(ContinueLines, ALineStaysOneLine) {
  const TempDir folder;
  InferRequest request = of_prompts({}, false, /*echo=*/true);
  request.files = {folder.write("lines.txt", "a\rcat\nmat\n")};
  EXPECT_EQ(printed_by_infer(request).out.substr(0, 7), "a\\rcat ");
}

TEST(ContinueLines, RefusesWhatDoesNotGoTogether) {
  auto options = scripted_options();
  InferRequest request = of_prompts({"the"});
  request.files = {"lines.txt"};
  EXPECT_NE(refused_by_infer(request, options).find("--prompt stands in the place of files"),
            std::string::npos);
  request = of_prompts({"the"}, /*stream=*/true);
  request.json = true;
  EXPECT_NE(refused_by_infer(request, options).find("--json"), std::string::npos);
  request.json = false;
  options.beam_size = 2;
  EXPECT_NE(refused_by_infer(request, options).find("--stream prints one"), std::string::npos);
  options.nbest = 3;
  EXPECT_NE(refused_by_infer(of_prompts({"the"}), options).find("decode.nbest = 3 of a beam of 2"),
            std::string::npos);
}

TEST(ContinueLines, RefusesAPromptThatIsNotUtf8) {
  EXPECT_NE(refused_by_infer(of_prompts({"the", "\xff"}), scripted_options())
                .find("a text of --prompt is not UTF-8"),
            std::string::npos);
}

TEST(ContinueLines, RefusesAPromptThatTheModelHasNoPositionsFor) {
  const std::string said =
      stretto::testing::failure(ExitCode::kUsage, [] {
        printed_by_infer(of_prompts({"the cat sat on"}), scripted_options(), 4);
      }).what();
  EXPECT_NE(said.find("--prompt: 5 tokens, and the model has positions for 4"), std::string::npos)
      << said;
}

TEST(ContinueLines, RefusesAnEmptyPromptWhereNothingStandsInFront) {
  const auto load = [] {
    GenerationRun run{.model = ScriptedModel::generating(),
                      .tokenizer = ScriptedModel::tokenizer(),
                      .device = at::kCPU};
    run.model.before = {};
    return run;
  };
  const auto printed = [&](const InferRequest& request) {
    return standard_output_of([&] { continue_lines(request, scripted_options(), load); });
  };
  const std::string said =
      stretto::testing::failure(ExitCode::kUsage, [&] { printed(of_prompts({""})); }).what();
  EXPECT_NE(said.find("--prompt: an empty text"), std::string::npos) << said;
  EXPECT_EQ(printed(of_prompts({"the cat"})), " sat on mat .\n");
  const TempDir folder;
  InferRequest lines = of_prompts({});
  lines.files = {folder.write("lines.txt", "\nmat\n")};
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(printed(lines), "\n .\n");
  const std::string told = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("an empty line is not continued"), std::string::npos) << told;
  EXPECT_EQ(told.find("--prompt"), std::string::npos) << told;
}

}  // namespace
}  // namespace stretto::tasks
