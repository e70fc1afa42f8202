#include "data/squad/predictions.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/base/failure.h"

namespace stretto::data {
namespace {

TEST(Predictions, KeepTheOrderOfTheirFile) {
  EXPECT_EQ(
      parse_predictions(R"({"b": "x", "a": "", "é": "\u6771\ud83d\ude00"})", "p.json"),
      (std::vector<std::pair<std::string, std::string>>{{"b", "x"}, {"a", ""}, {"é", "東😀"}}));
  EXPECT_EQ(parse_no_answer_probabilities(R"({"z": 0.25, "y": 1, "x": -3e1})", "n.json"),
            (std::vector<std::pair<std::string, double>>{{"z", 0.25}, {"y", 1}, {"x", -30}}));
  EXPECT_TRUE(parse_predictions("{}", "p.json").empty());
}

TEST(Predictions, AreRefusedWithFileAndId) {
  const auto refused = [](const std::string& json) {
    return std::string(
        testing::failure(ExitCode::kBadData, [&] { parse_predictions(json, "p.json"); }).what());
  };
  EXPECT_EQ(refused(R"([{"id": "a"}])"), "p.json: must be an object, is array");
  EXPECT_EQ(refused(R"({"a": "x", "b": ["y"]})"), "p.json: b: must be a string, is array");
  EXPECT_EQ(refused(R"({"a": null})"), "p.json: a: must be a string, is null");
  EXPECT_EQ(refused("{\"a\": \"x\",\n\"a\": \"y\"}"),
            "p.json: key \"a\" stands twice in one object");
  EXPECT_NE(refused("{\"a\": \"\xC3\"}").find("p.json:1:"), std::string::npos);
  EXPECT_NE(refused("{\"a\": " + std::string(100'000, '[')).find("nested deeper"),
            std::string::npos);
  EXPECT_THROW(parse_no_answer_probabilities(R"({"a": "0.5"})", "n.json"), Error);
  EXPECT_THROW(parse_no_answer_probabilities(R"({"a": 1e999})", "n.json"), Error);
}

TEST(Predictions, ThatAreNoJsonAreAnsweredWithTheirForm) {
  for (const char* json : {"a: x", R"({"a": "x", "a": "y"})", ""}) {
    const auto advice =
        testing::failure(ExitCode::kBadData, [&] { parse_predictions(json, "p.json"); }).advice();
    EXPECT_EQ(
        advice,
        "one JSON object is expected: {\"ID OF A QUESTION\": string, …}, in which each question "
        "stands once");
  }
  const auto advice = testing::failure(ExitCode::kBadData, [] {
                        parse_no_answer_probabilities("0.5", "n.json");
                      }).advice();
  EXPECT_NE(advice.find("{\"ID OF A QUESTION\": number"), std::string::npos) << advice;
}

}  // namespace
}  // namespace stretto::data
