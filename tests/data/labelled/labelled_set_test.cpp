#include "data/labelled/labelled_set.h"

#include <gtest/gtest.h>

#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/data/labelled/whole_samples.h"
#include "tests/data/squad/span_tokenizer.h"

namespace stretto::data {
namespace {

using Ids = std::vector<int64_t>;
using testing::whole;

class LabelledSetTest : public ::testing::Test {
 protected:
  LabelledSetTest() { options_.cache_dir = (folder_ / "cache").string(); }

  std::shared_ptr<const LabelledSamples> read(const Labels* labels) const {
    return open_labelled_samples(options_.train, options_, *tokenizer_, labels);
  }

  testing::TempDir folder_;
  LabelledOptions options_;
  const std::shared_ptr<const text::Tokenizer> tokenizer_ = testing::small_tokenizer();
};

TEST_F(LabelledSetTest, HoldsTextsAndNumbersOfLabels) {
  options_.train = {
      folder_.write("a.tsv", "text\tlabel\nwho lives\tyes\nanna\tno\nin %\tyes\noslo\t-\n")};
  options_.skipped_label = "-";
  const auto labels = find_labels(options_);
  ASSERT_TRUE(labels);
  EXPECT_EQ(labels->names(), (std::vector<std::string>{"no", "yes"}));
  const auto set = read(&*labels);
  ASSERT_EQ(set->size(), 3);
  const Batch samples = whole(*set);
  EXPECT_EQ(samples.sample_ids, (Ids{0, 1, 2}));
  EXPECT_EQ(tokens(samples).values, (Ids{2, 5, 6, 3, 2, 9, 3, 2, 7, 1, 3}));
  EXPECT_EQ(samples.column<int64_t>(kLabelColumn).values, (Ids{1, 0, 1}));
  EXPECT_EQ(set->counts().unknown, 1);
  EXPECT_EQ(set->counts().skipped, 1);
  EXPECT_EQ(set->counts().cut_samples, 0);
  EXPECT_EQ(set->texts().text(1), "anna");
}

TEST_F(LabelledSetTest, CutsPairsAndCountsThem) {
  options_.train = {folder_.write("a.tsv", "a\tb\tlabel\nwho lives in\tanna in oslo\t1\n")};
  options_.text = "a";
  options_.text2 = "b";
  options_.max_text_tokens = 7;
  const auto labels = find_labels(options_);
  const auto set = read(&*labels);
  EXPECT_EQ(tokens(whole(*set)).values, (Ids{2, 5, 6, 3, 9, 7, 3}));
  EXPECT_EQ(segments(whole(*set)).values, (Ids{0, 0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(set->counts().cut_samples, 1);
  EXPECT_EQ(set->counts().cut_tokens, 2);
  options_.truncation = "start";
  EXPECT_EQ(tokens(whole(*read(&*labels))).values, (Ids{2, 6, 7, 3, 7, 8, 3}));
}

TEST_F(LabelledSetTest, TakesSeveralLabelsAndNone) {
  options_.train = {folder_.write("a.jsonl", R"({"text": "who", "label": ["b", "a"]})"
                                             "\n"
                                             R"({"text": "in", "label": []})"
                                             "\n")};
  options_.label_separator = ",";
  const auto labels = find_labels(options_);
  const Batch found = read(&*labels)->labels();
  EXPECT_EQ(found.column<int64_t>(kLabelColumn).values, (Ids{1, 0}));
  EXPECT_EQ(found.column<int64_t>(kLabelColumn).length(1), 0);
}

TEST_F(LabelledSetTest, TakesNumbers) {
  options_.train = {folder_.write("a.csv", "text,label\nwho,3.5\nin,-1\n")};
  options_.label_kind = "number";
  EXPECT_FALSE(find_labels(options_));
  EXPECT_EQ(read(nullptr)->labels().column<float>(kLabelColumn).values,
            (std::vector<float>{3.5f, -1}));
}

TEST_F(LabelledSetTest, AnUnknownLabelIsAnErrorWithItsLine) {
  options_.train = {folder_.write("a.tsv", "text\tlabel\nwho\tyes\nin\tyess\n")};
  const auto labels = Labels::given({"yes", "no"});
  const Error error = testing::failure(ExitCode::kBadData, [&] { read(&labels); });
  EXPECT_NE(std::string(error.what()).find("a.tsv:3: unknown label `yess`"), std::string::npos)
      << error.what();
  EXPECT_NE(error.advice().find("did you mean `yes`"), std::string::npos) << error.advice();
}

TEST_F(LabelledSetTest, NamesUnknownLabelsAmongOtherBadRows) {
  options_.train = {folder_.write("a.tsv", "text\tlabel\nwho\tyess\nin\nwho\tnope\nin\tno\n")};
  const auto labels = Labels::given({"yes", "no"});
  const Error error = testing::failure(ExitCode::kBadData, [&] { read(&labels); });
  EXPECT_NE(std::string(error.what())
                .find("a.tsv:2: unknown label `yess`; 2 more: 3: 1 field, where the "
                      "header has 2; 4: unknown label `nope`"),
            std::string::npos)
      << error.what();
}

TEST_F(LabelledSetTest, LeavesOutBadRowsOfAllFiles) {
  options_.bad_samples = "skip";
  options_.train = {folder_.write("a.tsv", "text\tlabel\nwho\tyes\nin\nanna\tmaybe\n"),
                    folder_.write("b.tsv", "text\tlabel\n\tyes\noslo\tno\n")};
  const auto labels = Labels::given({"yes", "no"});
  const auto set = read(&labels);
  ASSERT_EQ(set->size(), 2);
  EXPECT_EQ(set->texts().text(1), "oslo");
  EXPECT_EQ(set->labels().column<int64_t>(kLabelColumn).values, (Ids{0, 1}));
  const LeftOut& bad = set->counts().bad;
  EXPECT_EQ(bad.count, 3);
  ASSERT_EQ(bad.first.size(), 3U);
  EXPECT_EQ(bad.first[1].fault, ":4: unknown label `maybe`");
  EXPECT_EQ(bad.first[2].fault, ":2: an empty text");
  // The same rows are labels, and lines for a tokenizer.
  EXPECT_EQ(find_labels(options_)->names(), (std::vector<std::string>{"maybe", "no", "yes"}));
  const auto lines = open_labelled_lines(options_);
  int64_t count = 0;
  for (std::string line; lines->next(line);) ++count;
  EXPECT_EQ(count, 3);
  options_.max_bad_samples = 2;
  testing::failure(ExitCode::kBadData, [&] { read(&labels); });
  options_.max_bad_samples = 1;
  testing::failure(ExitCode::kBadData, [&] { find_labels(options_); });
  options_.max_bad_samples = 10;
  const auto others = Labels::given({"a", "b"});
  const Error none = testing::failure(ExitCode::kBadData, [&] { read(&others); });
  EXPECT_NE(std::string(none.what()).find("no sample is left"), std::string::npos) << none.what();
}

TEST_F(LabelledSetTest, ARuleThatSkipsChangesNothingWithoutBadRows) {
  options_.train = {folder_.write("a.tsv", "text\tlabel\nwho\tyes\nin\tno\n")};
  const auto labels = Labels::given({"yes", "no"});
  const auto hash = read(&labels)->counts().hash;
  options_.bad_samples = "skip";
  EXPECT_EQ(read(&labels)->counts().hash, hash);
  EXPECT_EQ(read(&labels)->counts().bad.count, 0);
}

TEST_F(LabelledSetTest, FilesWhoseRowsAreAllLeftOutAreRefused) {
  options_.train = {folder_.write("a.tsv", "text\tlabel\nwho\t-\nin\t-\n")};
  options_.skipped_label = "-";
  const auto labels = Labels::given({"yes", "no"});
  for (const bool listed : {false, true}) {
    const Error error = testing::failure(ExitCode::kBadData, [&] {
      listed ? void(read(&labels)) : void(open_training_texts(options_));
    });
    EXPECT_NE(
        std::string(error.what())
            .find("a.tsv: no sample is left without 2 rows labelled `-` (data.skipped_label)"),
        std::string::npos)
        << error.what();
  }
}

TEST_F(LabelledSetTest, NotesAHeaderThatLooksLikeASample) {
  options_.text = "1";
  options_.label = "2";
  const auto labels = Labels::given({"yes", "no"});
  const auto headers = [&](const std::string& first, const Labels* known) {
    const std::string row = known == nullptr ? "\nin\t1\n" : "\nin\tno\n";
    options_.train = {folder_.write("a.tsv", first + row),
                      folder_.write("b.tsv", "text\tlabel" + row)};
    return read(known)->counts().samples_as_header;
  };
  const std::vector<std::string> found{(folder_ / "a.tsv").string() + ":1"};
  EXPECT_EQ(headers("who\tyes", &labels), found);
  EXPECT_TRUE(headers("sentence\tname", &labels).empty());
  options_.label_kind = "number";
  EXPECT_EQ(headers("who\t3.5", nullptr), found);
  EXPECT_TRUE(headers("sentence\tscore", nullptr).empty());
}

TEST_F(LabelledSetTest, OtherTextsAndLabelsHaveAnotherHash) {
  const auto hash_of = [&](const std::string& rows) {
    options_.train = {folder_.write("a.tsv", "text\tlabel\n" + rows)};
    const auto labels = Labels::given({"yes", "no"});
    return read(&labels)->counts().hash;
  };
  const uint64_t hash = hash_of("who\tyes\nin\tno\n");
  EXPECT_EQ(hash, hash_of("who\tyes\nin\tno\n"));
  EXPECT_NE(hash, hash_of("who\tyes\nin\tyes\n"));
  EXPECT_NE(hash, hash_of("in\tyes\nwho\tno\n"));
  EXPECT_NE(hash, hash_of("who\tyes\noslo\tno\n"));
}

TEST_F(LabelledSetTest, EachTextOfAPairIsALineForTheTokenizer) {
  options_.train = {folder_.write("a.tsv", "a\tb\tlabel\none\ttwo\tx\n"),
                    folder_.write("b.tsv", "a\tb\tlabel\nthree\tfour\tx\n")};
  options_.text = "a";
  options_.text2 = "b";
  const auto lines = open_labelled_lines(options_);
  std::vector<std::string> found;
  for (std::string line; lines->next(line);) found.push_back(line);
  EXPECT_EQ(found, (std::vector<std::string>{"one", "two", "three", "four"}));
}

TEST(LabelsJson, ComesBackAndRefusesWhatIsNoListOfNames) {
  const auto labels = Labels::given({"b", "ä\"", "a"});
  const auto back = labels_from_json(labels_to_json(&labels), "labels.json");
  ASSERT_TRUE(back);
  EXPECT_EQ(back->names(), labels.names());
  EXPECT_FALSE(labels_from_json(labels_to_json(nullptr), "labels.json"));
  for (const char* bad : {"{}", "[1]", "[\"a\", \"a\"]", "[\"\"]", "", "[\"a\"", "null"}) {
    const Error error =
        testing::failure(ExitCode::kBadData, [&] { labels_from_json(bad, "labels.json"); });
    EXPECT_NE(std::string(error.what()).find("labels.json"), std::string::npos) << error.what();
  }
}

TEST(LabelsJson, RefusesLabelsOfSeveralLinesThatARunMayHaveFromBefore) {
  for (const auto& [json, shown] :
       {std::pair{"[\"a\", \"b\\nc\"]", "b\\x0ac"}, std::pair{"[\"b\\tc\", \"a\"]", "b\tc"}}) {
    const Error error = testing::failure(
        ExitCode::kBadData, [json = json] { labels_from_json(json, "run/labels.json"); });
    EXPECT_EQ(std::string(error.what()),
              std::string("run/labels.json: label `") + shown + "` has a tab or a line end");
    EXPECT_NE(error.advice().find("train again"), std::string::npos) << error.advice();
  }
}

}  // namespace
}  // namespace stretto::data
