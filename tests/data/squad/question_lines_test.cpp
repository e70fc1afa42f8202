#include "data/squad/question_lines.h"

#include <gtest/gtest.h>

namespace stretto::data {
namespace {

QuestionLine parsed_line(const std::string& text) {
  return parse_question_line({.place = "stdin:3", .text = text});
}

TEST(QuestionLines, AreAQuestionATabAndItsParagraph) {
  const auto line = parsed_line("Where?\tIn Århus.\tYes.");
  EXPECT_EQ(line.problem, "");
  EXPECT_EQ(line.question, "Where?");
  EXPECT_EQ(line.paragraph, "In Århus.\tYes.");
}

TEST(QuestionLines, AreJsonWithContextAndQuestion) {
  const auto line =
      parsed_line(R"( {"context": "In Oslo.", "question": "Where?", "id": "a", "x": []})");
  EXPECT_EQ(line.problem, "");
  EXPECT_EQ(line.question, "Where?");
  EXPECT_EQ(line.paragraph, "In Oslo.");
  EXPECT_EQ(line.id, "a");
  EXPECT_EQ(parsed_line(R"({"context": "c", "question": "q", "id": 7})").id, "7");
}

TEST(QuestionLines, SayWhatIsWrong) {
  const auto problem = [](const std::string& text) { return parsed_line(text).problem; };
  EXPECT_NE(problem("Where?").find("a tab"), std::string::npos);
  EXPECT_NE(problem("{\"context\": ").find("not JSON: stdin:3"), std::string::npos);
  EXPECT_NE(problem("{\"context\": \"x\"}").find("`question`"), std::string::npos);
  EXPECT_NE(problem("{\"context\": 1, \"question\": \"x\"}").find("`context`"), std::string::npos);
  EXPECT_NE(problem("{\"data\": []}").find(".json"), std::string::npos);
  EXPECT_EQ(problem("\tIn Oslo."), "no question");
  EXPECT_EQ(problem("Where?\t "), "no paragraph");
  EXPECT_EQ(parse_question_line({.place = "stdin:1", .text = "", .problem = "not UTF-8"}).problem,
            "not UTF-8");
}

TEST(QuestionLines, DifferFromFilesOfSquadByTheirNames) {
  for (const char* path : {"dev.json", "dev.json.gz", "a/dev.json.zst", "a.zip:dev.json"}) {
    EXPECT_TRUE(names_squad_file(path)) << path;
  }
  for (const char* path : {"-", "dev.jsonl", "dev.tsv.gz", "json"}) {
    EXPECT_FALSE(names_squad_file(path)) << path;
  }
}

TEST(QuestionLines, OnOneParagraphShareIt) {
  SquadData data;
  append_question(parsed_line("a\tA."), data);
  append_question(parsed_line("b\tA."), data);
  append_question(parsed_line("c\tC."), data);
  EXPECT_EQ(data.paragraphs.size(), 2u);
  ASSERT_EQ(data.questions.size(), 3u);
  EXPECT_EQ(data.questions[1].paragraph, 0u);
  EXPECT_EQ(data.questions[2].paragraph, 1u);
}

}  // namespace
}  // namespace stretto::data
