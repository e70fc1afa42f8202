#include "data/squad/squad_file.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::data {
namespace {

SquadData parsed(const std::string& json, const SquadReading& reading = {}) {
  SquadData data;
  parse_squad(json, "dev.json", reading, data);
  return data;
}

Error refusal(const std::string& json, const SquadReading& reading = {}) {
  return testing::failure(ExitCode::kBadData, [&] { parsed(json, reading); });
}

std::string refused(const std::string& json, const SquadReading& reading = {}) {
  return refusal(json, reading).what();
}

std::string one_paragraph(const std::string& context, const std::string& questions) {
  return R"({"version": "1.1", "data": [{"title": "Cats", "paragraphs": [{"context": ")" + context +
         R"(", "qas": [)" + questions + "]}]}]}";
}

std::string question(const std::string& id, const std::string& answers) {
  return R"({"id": ")" + id + R"(", "question": "Why?", "answers": [)" + answers + "]}";
}

std::string answer(const std::string& text, const std::string& begin) {
  return R"({"text": ")" + text + R"(", "answer_start": )" + begin + "}";
}

TEST(SquadFile, HasParagraphsQuestionsAndAnswersInTheirOrder) {
  const auto data = parsed(R"({"data": [
    {"title": "T1", "paragraphs": [
      {"context": "One two.", "qas": [
        {"id": "b", "question": "First?", "answers": [{"text": "One", "answer_start": 0},
                                                      {"text": "two", "answer_start": 4}]},
        {"id": "a", "question": "Second?", "answers": [{"text": "two.", "answer_start": 4}]}]},
      {"context": "Three.", "qas": []}]},
    {"paragraphs": [
      {"context": "Four.", "document_id": 7, "qas": [
        {"id": "c", "question": "", "is_impossible": true, "answers": [],
         "plausible_answers": [{"text": "Four", "answer_start": 0}]}]}]}]})");
  ASSERT_EQ(data.paragraphs.size(), 3);
  EXPECT_EQ(data.paragraphs[0].text, "One two.");
  EXPECT_EQ(data.paragraphs[1].title, "T1");
  EXPECT_EQ(data.paragraphs[2].title, "");
  ASSERT_EQ(data.questions.size(), 3);
  EXPECT_EQ(data.questions[0].id, "b");
  EXPECT_EQ(data.questions[0].text, "First?");
  ASSERT_EQ(data.questions[0].answers.size(), 2);
  EXPECT_EQ(data.questions[0].answers[1].text, "two");
  EXPECT_EQ(data.questions[0].answers[1].begin, 4);
  EXPECT_EQ(data.questions[1].paragraph, 0);
  EXPECT_EQ(data.questions[2].paragraph, 2);
  EXPECT_TRUE(data.questions[2].is_impossible);
  EXPECT_TRUE(data.questions[2].answers.empty());
  EXPECT_FALSE(data.questions[0].is_impossible);
}

TEST(SquadFile, CountsOffsetsInCodePoints) {
  const auto data = parsed(one_paragraph("é😀東京 x", question("1", answer("東京", "2"))));
  EXPECT_EQ(data.questions[0].answers[0].begin, 2);
}

TEST(SquadFile, MayBeginWithAByteOrderMark) {
  EXPECT_EQ(
      parsed("\xEF\xBB\xBF" + one_paragraph("x", question("1", answer("x", "0")))).questions.size(),
      1);
}

TEST(SquadFile, RefusesAnAnswerOutsideItsParagraph) {
  for (const char* begin : {"3", "-1", "9223372036854775807", "-9223372036854775808"}) {
    const std::string what = refused(one_paragraph("aéb c", question("q1", answer("b c", begin))));
    EXPECT_EQ(what, std::string("dev.json: data[0].paragraphs[0].qas[0].answers[0]: question q1: "
                                "answer \"b c\" of 3 characters at ") +
                        begin + " is outside its paragraph, which has 5 characters");
  }
  EXPECT_NE(refused(one_paragraph("ab", question("q1", answer("a longer text", "0"))))
                .find("is outside its paragraph"),
            std::string::npos);
}

TEST(SquadFile, RefusesAnAnswerThatDiffersFromTheParagraphAtItsOffset) {
  const Error error = refusal(one_paragraph("one two", question("q1", answer("two", "3"))));
  EXPECT_EQ(std::string(error.what()),
            "dev.json: data[0].paragraphs[0].qas[0].answers[0]: question q1: answer \"two\" is not "
            "at 3, where the paragraph has \" tw\"");
  EXPECT_EQ(error.advice(), "answer_start counts Unicode characters from 0; the text is at 4");
}

TEST(SquadFile, NamesTheUnitThatAnOffsetCounts) {
  const auto advice = [](const std::string& begin) {
    return refusal(one_paragraph("é😀 two!", question("q", answer("two", begin)))).advice();
  };
  EXPECT_NE(advice("7").find("this one counts bytes of UTF-8"), std::string::npos) << advice("7");
  EXPECT_NE(advice("4").find("this one counts units of UTF-16"), std::string::npos) << advice("4");
  EXPECT_NE(advice("0").find("the text is at 3"), std::string::npos) << advice("0");
  EXPECT_NE(refusal(one_paragraph("two  words", question("q", answer("two words", "0"))))
                .advice()
                .find("does not contain this text"),
            std::string::npos);
}

TEST(SquadFile, RefusesEmptyAnswersAndAnswersOfImpossibleQuestions) {
  EXPECT_NE(refused(one_paragraph("x", question("q", answer("", "0")))).find("its answer is empty"),
            std::string::npos);
  EXPECT_NE(refused(one_paragraph("x", R"({"id": "q", "question": "?", "is_impossible": true,
                                          "answers": [)" +
                                           answer("x", "0") + "]}"))
                .find("is marked `is_impossible`, but has an answer"),
            std::string::npos);
}

TEST(SquadFile, SkipsAndCountsBadAnswersWhereTold) {
  const SquadReading skip{.bad_answers = BadAnswers::kSkip};
  const auto data = parsed(
      one_paragraph("one two", question("1", answer("two", "3") + "," + answer("two", "4")) + "," +
                                   question("2", answer("two", "99")) + "," + question("3", "")),
      skip);
  EXPECT_EQ(data.skipped_answers, 2);
  EXPECT_EQ(data.skipped_questions, 1);
  ASSERT_EQ(data.questions.size(), 2);
  EXPECT_EQ(data.questions[0].answers.size(), 1);
  EXPECT_EQ(data.questions[1].id, "3");
  EXPECT_NE(refused(one_paragraph("one", question("2", answer("two", "9"))), skip)
                .find("all questions were skipped"),
            std::string::npos);
}

TEST(SquadFile, LooksAtNoOffsetsWhereOnlyTextsMatter) {
  const SquadReading ignore{.bad_answers = BadAnswers::kIgnore};
  const auto data =
      parsed(one_paragraph("x", question("1", R"({"text": "y"}, {"text": ""})")), ignore);
  EXPECT_EQ(data.questions[0].answers.size(), 2);
}

TEST(SquadFile, RefusesQuestionsWithoutAnswersWhereSomeAreNeeded) {
  const SquadReading need{.require_answers = true};
  EXPECT_NE(refused(one_paragraph("x", question("q5", "")), need)
                .find("question q5: it has no answer, and is not marked `is_impossible`"),
            std::string::npos);
  EXPECT_EQ(parsed(one_paragraph("x", R"({"id": "q", "question": "?"})")).questions.size(), 1);
}

TEST(SquadFile, RefusesAnIdThatOccursTwice) {
  const std::string twice = question("q1", "") + "," + question("q1", "");
  EXPECT_EQ(refused(one_paragraph("x", twice)),
            "dev.json: data[0].paragraphs[0].qas[1]: question q1: another question has this id");
  auto data = parsed(one_paragraph("x", question("q1", "")));
  EXPECT_THROW(parse_squad(one_paragraph("x", question("q1", "")), "other.json", {}, data), Error);
}

TEST(SquadFile, NamesThePlaceOfAWrongTypeOrMissingKey) {
  const auto place = [](const std::string& json, const std::string& said) {
    const std::string what = refused(json);
    EXPECT_EQ(what, "dev.json: " + said);
  };
  place("[]", "must be an object, is array");
  place("{}", "there is no `data`");
  place(R"({"data": {}})", "data: must be an array, is object");
  place(R"({"data": [{"title": 3, "paragraphs": []}]})",
        "data[0].title: must be a string, is number");
  place(R"({"data": [{"paragraphs": [7]}]})",
        "data[0].paragraphs[0]: must be an object, is number");
  place(R"({"data": [{"paragraphs": [{"context": "x"}]}]})",
        "data[0].paragraphs[0]: there is no `qas`");
  place(one_paragraph("x", R"({"id": 5, "question": "?"})"),
        "data[0].paragraphs[0].qas[0].id: must be a string, is number");
  place(one_paragraph("x", R"({"id": "5", "question": "?", "is_impossible": 0})"),
        "data[0].paragraphs[0].qas[0].is_impossible: must be true or false, is number");
  place(one_paragraph("x", question("5", answer("x", "0.5"))),
        "data[0].paragraphs[0].qas[0].answers[0].answer_start: must be a whole number, is 0.5");
  place(one_paragraph("x", question("5", answer("x", "18446744073709551615"))),
        "data[0].paragraphs[0].qas[0].answers[0].answer_start: must be a whole number, is "
        "18446744073709551615");
  place(one_paragraph("x", question("5", R"({"text": "x"})")),
        "data[0].paragraphs[0].qas[0].answers[0]: there is no `answer_start`");
  place(R"({"data": []})", "there are no questions");
}

TEST(SquadFile, RefusesWhatIsNoJsonWithLineAndColumn) {
  EXPECT_NE(refused("{\n \"data\": [,]}").find("dev.json:2:11: "), std::string::npos);
  EXPECT_NE(refused("").find("dev.json"), std::string::npos);
  EXPECT_NE(refused(one_paragraph("\xFF", "")).find("UTF-8"), std::string::npos);
  EXPECT_NE(refused(one_paragraph("\\ud800", "")).find("surrogate"), std::string::npos);
  EXPECT_NE(refused(one_paragraph("x", R"({"id": "1", "id": "2"})")).find("\"id\" stands twice"),
            std::string::npos);
}

TEST(SquadFile, RefusesDeepNestingWithoutRecursion) {
  const std::string deep(100'000, '[');
  EXPECT_NE(refused("{\"data\": " + deep).find("nested deeper than 64 levels"), std::string::npos);
  EXPECT_NE(refused(one_paragraph("x", "{\"other\": " + deep + std::string(100'000, ']') + "}"))
                .find("nested deeper"),
            std::string::npos);
}

TEST(SquadFile, IsReadFromSeveralFiles) {
  const testing::TempDir folder;
  const std::vector<std::string> paths{
      folder.write("a.json", one_paragraph("x", question("1", answer("x", "0")))),
      folder.write("b.json", one_paragraph("yz", question("2", answer("z", "1"))))};
  const auto data = read_squad(paths);
  ASSERT_EQ(data.questions.size(), 2);
  EXPECT_EQ(data.questions[1].paragraph, 1);
  EXPECT_EQ(data.paragraphs[1].text, "yz");
  const std::vector<std::string> gone{folder.write("c.json", "x") + ".gone"};
  EXPECT_EQ(testing::failure(ExitCode::kUsage, [&] { read_squad(gone); }).code(), ExitCode::kUsage);
}

}  // namespace
}  // namespace stretto::data
