#include "data/squad/squad_file.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::data {
namespace {

SquadData parsed(const std::string& json, const SquadReading& reading = {},
                 const std::string& name = "dev.json") {
  SquadData data;
  BadSamples bad(reading.bad_samples);
  parse_squad(json, name, reading, data, bad);
  data.bad = bad.left_out();
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
        {"id": "c", "question": "Third?", "is_impossible": true, "answers": [],
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

TEST(SquadFile, SaysWhatFitsAnAnswerOfAnImpossibleQuestion) {
  const Error error = refusal(
      one_paragraph("x", R"({"id": "q", "question": "?", "is_impossible": true, "answers": [)" +
                             answer("x", "0") + "]}"));
  EXPECT_NE(error.advice().find("set `is_impossible` to false"), std::string::npos)
      << error.advice();
  EXPECT_EQ(error.advice().find("counts"), std::string::npos) << error.advice();
}

TEST(SquadFile, RecognisesAnotherUnicodeNormalisation) {
  const auto advice = [](const std::string& context, const std::string& text) {
    return refusal(one_paragraph(context, question("q", answer(text, "0")))).advice();
  };
  const std::string composed = "in Malm\u00F6 \u1EAD", apart = "Malmo\u0308 a\u0302\u0323";
  EXPECT_NE(advice(composed, apart).find("Unicode normalisation"), std::string::npos);
  EXPECT_NE(advice("in " + apart, "Malm\u00F6").find("Unicode normalisation"), std::string::npos);
  EXPECT_NE(advice(composed, "Malmo").find("changed white space"), std::string::npos);
}

TEST(SquadFile, RefusesAnEmptyQuestionButForScores) {
  const std::string empty =
      one_paragraph("x", R"({"id": "q", "question": " ", "answers": [)" + answer("x", "0") + "]}");
  EXPECT_NE(refused(empty).find("question q: its text is empty"), std::string::npos);
  EXPECT_EQ(parsed(empty, {.bad_answers = BadAnswers::kIgnore}).questions.size(), 1);
}

TEST(SquadFile, TakesWholeNumbersAsIds) {
  const auto data = parsed(one_paragraph("x", R"({"id": 17, "question": "?", "answers": []},)"
                                              R"({"id": "18", "question": "?", "answers": []})"));
  ASSERT_EQ(data.questions.size(), 2);
  EXPECT_EQ(data.questions[0].id, "17");
  EXPECT_NE(
      refused(one_paragraph("x", R"({"id": 17, "question": "?"}, {"id": "17", "question": "?"})"))
          .find("another question has this id"),
      std::string::npos);
}

std::string flat(const std::string& id, const std::string& context, const std::string& texts,
                 const std::string& begins) {
  return R"({"id": ")" + id + R"(", "title": "T", "context": ")" + context +
         R"(", "question": "Why?", "answers": {"text": [)" + texts + R"(], "answer_start": [)" +
         begins + "]}}";
}

TEST(SquadFile, ReadsTheFlatFormAsAListAndAsLines) {
  const std::string a = flat("a", "one two", R"("one", "two")", "0, 4"),
                    b = flat("b", "one two", R"("two")", "4"), c = flat("c", "é three", "", "");
  for (const auto& [text, name] : std::vector<std::pair<std::string, std::string>>{
           {"[" + a + "," + b + ",\n" + c + "]", "dev.json"},
           {a + "\n\n" + b + "\r\n" + c, "dev.json"},
           {"\xEF\xBB\xBF" + a + "\n" + b + "\n" + c + "\n", "dev.jsonl.gz"},
           {R"({"version": "2", "data": [)" + a + "," + b + "," + c + "]}", "dev.json"}}) {
    const auto data = parsed(text, {.require_answers = true}, name);
    ASSERT_EQ(data.questions.size(), 3) << text;
    ASSERT_EQ(data.paragraphs.size(), 2) << "equal ones in a row are shared";
    EXPECT_EQ(data.paragraphs[0].title, "T");
    EXPECT_EQ(data.questions[0].answers.size(), 2);
    EXPECT_EQ(data.questions[0].answers[1].begin, 4);
    EXPECT_EQ(data.questions[1].paragraph, 0);
    EXPECT_FALSE(data.questions[1].is_impossible);
    EXPECT_EQ(data.questions[2].paragraph, 1);
    EXPECT_TRUE(data.questions[2].is_impossible) << "the form has no mark for it";
  }
  EXPECT_EQ(parsed(a + "\n", {}, "dev.json").questions.size(), 1) << "one object";
}

TEST(SquadFile, NamesThePlacesOfBadQuestionsOfTheFlatForm) {
  const std::string good = flat("a", "one", R"("one")", "0");
  EXPECT_EQ(refused("[" + good + "," + flat("b", "one", R"("one")", "") + "]"),
            "dev.json: [1].answers.answer_start: must be an array with a number for each text");
  EXPECT_EQ(refused(good + "\n" + flat("b", "one", R"("two")", "0") + "\n"),
            "dev.json:2: answers: question b: answer \"two\" is not at 0, where the paragraph has "
            "\"one\"");
  const Error twice = refusal(good + "\n{\"id\": \"b\", \"id\": \"c\"}\n");
  EXPECT_EQ(std::string(twice.what()), "dev.json:2: key \"id\" stands twice in one object");
  EXPECT_NE(twice.advice().find("each key stands once"), std::string::npos) << twice.advice();
  EXPECT_NE(refusal(good + "\n{\"context\": \"x\"}\n").advice().find("the flat form"),
            std::string::npos);
}

TEST(SquadFile, NamesUpToTenBadQuestionsAtOnce) {
  const std::string what = refused(one_paragraph(
      "one two", question("1", answer("two", "3")) + "," + question("2", answer("two", "4")) + "," +
                     question("3", answer("", "0")) + R"(,{"id": "4"})"));
  EXPECT_TRUE(what.starts_with("dev.json: data[0].paragraphs[0].qas[0].answers[0]: question 1: "))
      << what;
  EXPECT_NE(what.find("2 more: "), std::string::npos) << what;
}

TEST(SquadFile, StopsAtTheTenthBadQuestion) {
  std::string questions;
  for (int i = 0; i < 30; ++i) questions += (i > 0 ? "," : "") + question("", answer("two", "3"));
  const Error error = refusal(one_paragraph("one two", questions));
  EXPECT_NE(std::string(error.what()).find("; at least 9 more: "), std::string::npos);
  EXPECT_EQ(std::string(error.what()).find("qas[10]"), std::string::npos) << error.what();
  EXPECT_EQ(error.details().size(), kNamedBadSamples);
}

TEST(SquadFile, LeavesOutBadQuestionsWhereTold) {
  const SquadReading skip{.bad_samples = {.skips = true, .most = 4}};
  const std::string questions = question("1", answer("two", "3")) + "," +
                                question("2", answer("two", "4")) + R"(,{"id": "3"},)" +
                                question("2", "") + "," + question("1", answer("one", "0"));
  const auto data =
      parsed(R"({"data": [{"paragraphs": [{"context": 5}, {"context": "one two", "qas": [)" +
                 questions + "]}]}]}",
             skip);
  ASSERT_EQ(data.questions.size(), 2);
  EXPECT_EQ(data.questions[0].id, "2");
  EXPECT_EQ(data.questions[1].id, "1") << "the id of a question that was left out is free";
  EXPECT_EQ(data.bad.count, 4);
  ASSERT_EQ(data.bad.first.size(), 4);
  EXPECT_EQ(data.bad.first[0].fault,
            ": data[0].paragraphs[0].context: must be a string, is number");
  EXPECT_EQ(data.bad.first[2].fault, ": data[0].paragraphs[1].qas[2]: there is no `question`");
  const std::string many = questions + "," + question("2", "");
  EXPECT_NE(refused(one_paragraph("one two", many + "," + question("2", "")),
                    {.bad_samples = {.skips = true, .most = 4}})
                .find("more than data.max_bad_samples = 4"),
            std::string::npos);
  EXPECT_NE(
      refused(one_paragraph("one", R"({"id": "3"})"), skip).find("all questions were left out"),
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
  BadSamples bad;
  EXPECT_THROW(parse_squad(one_paragraph("x", question("q1", "")), "other.json", {}, data, bad),
               Error);
}

TEST(SquadFile, NamesThePlaceOfAWrongTypeOrMissingKey) {
  const auto place = [](const std::string& json, const std::string& said) {
    const std::string what = refused(json);
    EXPECT_EQ(what, "dev.json: " + said);
  };
  place("7", "must be an object, is number");
  place("[]", "there are no questions");
  place("{}", "there is no `data`");
  place(R"({"data": {}})", "data: must be an array, is object");
  place(R"({"data": [{"title": 3, "paragraphs": []}]})",
        "data[0].title: must be a string, is number");
  place(R"({"data": [{"paragraphs": [7]}]})",
        "data[0].paragraphs[0]: must be an object, is number");
  place(R"({"data": [{"paragraphs": [{"context": "x"}]}]})",
        "data[0].paragraphs[0]: there is no `qas`");
  place(one_paragraph("x", R"({"id": 5.5, "question": "?"})"),
        "data[0].paragraphs[0].qas[0].id: must be a string or a whole number, is number");
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
  EXPECT_EQ(refusal(one_paragraph("x", R"({"id": "1", "id": "2"})")).advice(),
            "each key stands once in an object: remove or rename one of the two");
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
