#include "data/labelled/labelled_texts.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

#include "data/cache_folder.h"
#include "data/start_memory.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

class LabelledTextsTest : public ::testing::Test {
 protected:
  std::shared_ptr<const LabelledTexts> open() const { return open_labelled_texts(input_, cache_); }
  void set(const Names& paths) { input_.paths = paths; }
  std::string two(const std::string& name) const {
    return folder_.write(name, "text\tlabel\nwho lives\tyes\nanna\tno\n");
  }

  testing::TempDir folder_;
  LabelledInput input_;
  const LabelledCache cache_{.dir = (folder_ / "cache").string(), .threads = 2};
};

TEST_F(LabelledTextsTest, HasTextsLabelsAndPlaces) {
  set({two("a.tsv"), folder_.write("b.tsv", "text\tlabel\n\nin oslo\tyes\n")});
  for (const bool found : {false, true}) {
    const auto texts = open();
    EXPECT_EQ(texts->from_cache(), found);
    ASSERT_EQ(texts->size(), 3);
    EXPECT_EQ(texts->text(0), "who lives");
    EXPECT_EQ(texts->text(2), "in oslo");
    EXPECT_EQ(texts->facts().labels, (Names{"yes", "no"}));
    EXPECT_EQ(texts->labels(1)[0], 1U);
    EXPECT_EQ(texts->labels(2)[0], 0U);
    EXPECT_EQ(texts->place(1), input_.paths[0] + ":3");
    EXPECT_EQ(texts->place(2), input_.paths[1] + ":3");
    EXPECT_NE(texts->key(), 0U);
  }
}

TEST_F(LabelledTextsTest, HasPairsSeveralLabelsAndNone) {
  set({folder_.write("a.jsonl", R"({"text": "one", "second": "two", "label": ["b", "a"]})"
                                "\n"
                                R"({"text": "three", "second": "four", "label": []})"
                                "\n")});
  input_.columns.text2 = "second";
  input_.columns.label_separator = ",";
  for (int start = 0; start < 2; ++start) {
    const auto texts = open();
    EXPECT_EQ(texts->text(1), "three");
    EXPECT_EQ(texts->text2(0), "two");
    EXPECT_EQ(texts->text2(1), "four");
    EXPECT_EQ(texts->labels(0).size(), 2U);
    EXPECT_TRUE(texts->labels(1).empty());
    const auto lines = lines_of([&] { return texts; });
    Names found;
    for (std::string line; lines->next(line);) found.push_back(line);
    EXPECT_EQ(found, (Names{"one", "two", "three", "four"}));
  }
}

TEST_F(LabelledTextsTest, AStartHasThemOnceAndTheirLinesHaveTheirKey) {
  set({two("a.tsv")});
  std::shared_ptr<const LabelledTexts> first;
  {
    const StartMemory memory;
    first = open();
    EXPECT_EQ(open(), first);
    EXPECT_EQ(lines_of([&] { return first; })->key(), first->key());
    const Labels known = Labels::given({"no", "yes"});
    input_.labels = &known;
    EXPECT_EQ(open(), first) << "the same rows are good";
    const Labels other = Labels::given({"no"});
    input_.labels = &other;
    testing::failure(ExitCode::kBadData, [&] { open(); });
    input_.labels = nullptr;
    set({two("moved.tsv")});
    EXPECT_EQ(open()->place(0), input_.paths[0] + ":2");
    set({folder_.write("a.tsv", "text\tlabel\nother\tyes\n")});
    EXPECT_EQ(open()->text(0), "other");
  }
  set({two("a.tsv")});
  EXPECT_NE(open(), first);
}

TEST_F(LabelledTextsTest, HasNumbers) {
  set({folder_.write("a.csv", "text,label\nwho,3.5\nin,-1\n")});
  input_.columns.kind = LabelKind::kNumber;
  for (int start = 0; start < 2; ++start) {
    const auto texts = open();
    EXPECT_EQ(texts->value(0), 3.5);
    EXPECT_EQ(texts->value(1), -1);
    EXPECT_TRUE(texts->labels(1).empty());
  }
}

TEST_F(LabelledTextsTest, IsFoundByContentAndByHowItIsRead) {
  set({two("a.tsv")});
  open();
  set({two("moved.tsv")});
  const auto moved = open();
  EXPECT_TRUE(moved->from_cache());
  EXPECT_EQ(moved->place(0), input_.paths[0] + ":2");
  const auto opens_anew = [&](auto change) {
    const LabelledInput before = input_;
    change();
    EXPECT_FALSE(open()->from_cache());
    input_ = before;
  };
  opens_anew([&] { input_.columns.label_until = "s"; });
  opens_anew([&] { input_.columns.skipped_label = "no"; });
  opens_anew([&] {
    input_.columns.header = false, input_.columns.text = "1", input_.columns.label = "2";
  });
  opens_anew([&] { input_.columns.encoding = Encoding::kLatin1; });
  opens_anew([&] { input_.columns.bad_samples.skips = true; });
  opens_anew([&] { set({two("a.tsv"), two("b.tsv")}); });
  opens_anew([&] { set({folder_.write("a.tsv", "text\tlabel\nwho lives\tyes\nanna\tna\n")}); });
  EXPECT_TRUE(open()->from_cache());
}

TEST_F(LabelledTextsTest, LabelsThatAreAllKnownAskForNoOtherReading) {
  set({two("a.tsv")});
  open();
  const auto labels = Labels::given({"no", "maybe", "yes"});
  input_.labels = &labels;
  EXPECT_TRUE(open()->from_cache());
}

TEST_F(LabelledTextsTest, AnUnknownLabelIsABadRowWhateverTheCacheHas) {
  set({two("a.tsv")});
  open();
  const auto labels = Labels::given({"yes"});
  input_.labels = &labels;
  const Error error = testing::failure(ExitCode::kBadData, [&] { open(); });
  EXPECT_NE(std::string(error.what()).find("a.tsv:3: unknown label `no`"), std::string::npos);
  input_.columns.bad_samples.skips = true;
  for (const bool found : {false, true}) {
    const auto texts = open();
    EXPECT_EQ(texts->from_cache(), found);
    EXPECT_EQ(texts->size(), 1);
    EXPECT_EQ(texts->facts().other_labels, 1);
    EXPECT_EQ(texts->facts().left_out.text(),
              "1 bad sample: " + input_.paths[0] + ":3: unknown label `no`");
  }
}

TEST_F(LabelledTextsTest, TheBoundOfBadRowsHoldsForACacheToo) {
  set({folder_.write("a.tsv", "text\tlabel\nwho\tyes\nin\n\tno\n")});
  input_.columns.bad_samples = {.skips = true, .most = 2};
  EXPECT_EQ(open()->facts().left_out.count, 2);
  input_.columns.bad_samples.most = 1;
  testing::failure(ExitCode::kBadData, [&] { open(); });
}

TEST_F(LabelledTextsTest, BadRowsAreRefusedEachTimeAndNothingIsKept) {
  set({folder_.write("a.tsv", "text\tlabel\nwho\tyes\nin\n\tno\n")});
  for (int start = 0; start < 2; ++start) {
    LabelledFacts facts;
    const Error error = testing::failure(ExitCode::kBadData,
                                         [&] { open_labelled_texts(input_, cache_, {}, facts); });
    EXPECT_NE(std::string(error.what()).find("a.tsv:3: 1 field"), std::string::npos);
    EXPECT_EQ(facts.labels, Names{"yes"});  // what was seen before
  }
}

TEST_F(LabelledTextsTest, ABudgetEndsTheReadingAndKeepsNothing) {
  set({two("a.tsv")});
  LabelledFacts facts;
  EXPECT_EQ(open_labelled_texts(input_, cache_, {.rows = 1}, facts), nullptr);
  EXPECT_EQ(facts.unread, input_.paths[0] + " behind line 2");
  EXPECT_EQ(facts.labels, Names{"yes"});
  EXPECT_FALSE(open()->from_cache());
  // What is there already costs no row.
  EXPECT_NE(open_labelled_texts(input_, cache_, {.rows = 1}, facts), nullptr);
  EXPECT_TRUE(facts.unread.empty());
}

TEST_F(LabelledTextsTest, HeadersThatMayBeSamplesComeBack) {
  set({two("a.tsv"), folder_.write("b.tsv", "oslo\tyes\nin\tno\n")});
  input_.columns.text = "1";
  input_.columns.label = "2";
  for (int start = 0; start < 2; ++start) {
    const auto texts = open();
    const auto& headers = texts->facts().headers;
    ASSERT_EQ(headers.size(), 2U);
    EXPECT_EQ(headers[1].row.labels, Names{"yes"});
    EXPECT_EQ(place_of(input_, headers[1]), input_.paths[1] + ":1");
  }
}

TEST_F(LabelledTextsTest, WithoutACacheTheFilesAreReadIntoMemory) {
  set({two("a.tsv")});
  const LabelledCache none{.dir = folder_.write("file", "") + "/cache", .threads = 1};
  for (int start = 0; start < 2; ++start) {
    const auto texts = open_labelled_texts(input_, none);
    EXPECT_FALSE(texts->from_cache());
    EXPECT_EQ(texts->key(), 0U);
    EXPECT_EQ(texts->text(1), "anna");
    EXPECT_NE(texts->refusal().find("the token cache"), std::string::npos) << texts->refusal();
  }
}

TEST_F(LabelledTextsTest, PartsThatDoNotBelongTogetherAreNoTexts) {
  set({two("a.tsv")});
  const auto good = open();
  const auto keys = good->key();
  StorePlace place{.root = open_cache(cache_.dir), .key = keys, .num_parts = 7, .threads = 1};
  bool damaged = false;
  const auto store = find_samples(place, damaged);
  ASSERT_TRUE(store.has_value());
  fs::remove_all(place.folder());  // what was mapped stays
  fs::create_directories(place.folder());
  SampleStoreWriter writer(place.folder(), place.num_parts);
  for (size_t part = 0; part < place.num_parts; ++part) {
    writer.append(part, std::string(store->part(part)).substr(0, store->part(part).size() / 2));
  }
  writer.finish(keys, store->words());
  EXPECT_TRUE(find_samples(place, damaged).has_value()) << "sums and sizes are right";
  const auto texts = open();
  EXPECT_FALSE(texts->from_cache());
  ASSERT_EQ(texts->size(), 2);
  EXPECT_EQ(texts->text(1), "anna");
}

TEST_F(LabelledTextsTest, ADamagedCacheIsMadeAgain) {
  set({two("a.tsv")});
  open();
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "cache")) {
    if (entry.path().filename() == "0.bin") fs::resize_file(entry.path(), 3);
  }
  const auto texts = open();
  EXPECT_FALSE(texts->from_cache());
  EXPECT_EQ(texts->text(1), "anna");
}

}  // namespace
}  // namespace stretto::data
