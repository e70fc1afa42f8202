#include "data/pairs/corpus_check.h"

#include <algorithm>
#include <array>

#include "tests/data/pairs/corpus_fixture.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

bool always() {
  return true;
}

class CorpusLooks : public CorpusFixture {
 protected:
  /// What both looks say in the order of a check; "" when nothing is wrong.
  std::string said_of(const DataOptions& options, ExitCode& code, Split split) const {
    try {
      check_lines(options, split, always);
      check_filters(options, split, tokenizers_, always);
    } catch (const Error& error) {
      code = error.code();
      return error.message();
    }
    return "";
  }

  /// The look at a corpus and its making say the same.
  void expect_the_same(const DataOptions& options, Split split = Split::kTrain) const {
    ExitCode looked{}, made{};
    const std::string said = said_of(options, looked, split);
    std::string refused;
    try {
      open(options, split);
    } catch (const Error& error) {
      made = error.code();
      refused = error.message();
    }
    EXPECT_EQ(said, refused);
    EXPECT_EQ(looked, made);
  }
};

TEST_F(CorpusLooks, AndTheCorpusNameUpToTenBadPairsAtOnce) {
  auto o = options(50);
  o.train_src = {write("a.src", "w1\nw2\n" + std::string("\0\n", 2) + "w3\nw4\n")};
  o.train_tgt = {
      write("a.tgt", "w1\n" + std::string("a\0\n", 3) + "w2\nw3\n" + std::string("\0\n", 2))};
  expect_the_same(o);
  const std::string said = failure(ExitCode::kBadData, [&] { open(o); });
  EXPECT_TRUE(contains(said, o.train_tgt[0] + ":2:2: a NUL byte")) << said;
  EXPECT_TRUE(contains(said, "2 more: a.src:3:1: a NUL byte")) << said;
  EXPECT_THROW(open(o), TargetError);
  EXPECT_THROW(check_lines(o, Split::kTrain, always), TargetError);
  auto many = options(50);
  many.train_src = {write("b.src", sentences(30, 3))};
  many.train_tgt = {write("b.tgt", sentences(30, 4))};
  many.max_tgt_tokens = 1;
  many.too_long = "error";
  expect_the_same(many);
  EXPECT_TRUE(contains(failure(ExitCode::kBadData, [&] { open(many); }), "at least 9 more"));
  // Unequal counts come behind bad pairs.
  auto unequal = o;
  unequal.train_src = {write("c.src", std::string("\0\n", 2) + "w3\nw4\n")};
  unequal.train_tgt = {write("c.tgt", "w1\nw3\n")};
  expect_the_same(unequal);
  EXPECT_TRUE(contains(failure(ExitCode::kBadData, [&] { open(unequal); }), "a NUL byte"));
}

TEST_F(CorpusLooks, AndTheCorpusLeaveOutBadPairsWhereTold) {
  auto o = options(50);
  o.bad_samples = "skip";
  o.train_src = {write("a.src", "w1\n" + std::string("\0\n", 2) + "w2\n\xFF\nw3\n")};
  o.train_tgt = {write("a.tgt", "w1\nw1\n" + std::string("a\0\n", 3) + "w1\nw3\n")};
  o.invalid_utf8 = "error";
  expect_the_same(o);
  EXPECT_EQ(check_lines(o, Split::kTrain, always).pairs, 2);
  EXPECT_EQ(count_pieces(o, Split::kTrain, tokenizers_, always).src.pieces, 2);
  const auto corpus = open(o);
  EXPECT_EQ(corpus->num_pairs(), 2);
  EXPECT_EQ(corpus->src(1), (std::vector<int64_t>{7, kEos}));
  EXPECT_EQ(corpus->filters().kept, 2);
  EXPECT_EQ(corpus->filters().left_out.text(),
            "3 bad samples: " + o.train_src[0] + ":2:1: a NUL byte, so this is not UTF-8 text; " +
                o.train_tgt[0] + ":3:2: a NUL byte, so this is not UTF-8 text; " + o.train_src[0] +
                ":4: this line is not valid UTF-8");
  const auto again = open(o, Split::kTrain, 1);
  EXPECT_TRUE(again->from_cache());
  EXPECT_EQ(again->filters().left_out.text(), corpus->filters().left_out.text());
  o.max_bad_samples = 2;
  expect_the_same(o);
  EXPECT_TRUE(contains(failure(ExitCode::kBadData, [&] { open(o); }), "data.max_bad_samples = 2"));
  o.max_bad_samples = 3;
  o.bad_samples = "stop";
  expect_the_same(o);
  // Lines without a column, and nothing else.
  auto tsv = options(50);
  tsv.train_src.clear();
  tsv.train_tgt.clear();
  tsv.train_tsv = {write("a.tsv", "w1\nw2\n")};
  tsv.bad_samples = "skip";
  expect_the_same(tsv);
  EXPECT_TRUE(contains(failure(ExitCode::kBadData, [&] { open(tsv); }), "2 bad samples: "));
  tsv.train_tsv = {write("b.tsv", "w1\nw2\tw3\n")};
  EXPECT_EQ(open(tsv)->num_pairs(), 1);
}

TEST_F(CorpusLooks, SayWhatMakingTheCorpusWouldSay) {
  auto o = options(50);
  expect_the_same(o);
  const auto with = [&](const std::string& src, const std::string& tgt) {
    auto changed = o;
    changed.train_src = {write("c.src", src)};
    changed.train_tgt = {write("c.tgt", tgt)};
    return changed;
  };
  const std::string ten = sentences(10, 3);
  expect_the_same(with(ten, sentences(11, 4)));
  expect_the_same(with(ten + "w1\n", sentences(10, 4)));
  expect_the_same(with("", ""));
  expect_the_same(with("\n\n", "\n\n"));
  expect_the_same(with(ten, sentences(9, 4) + "a" + '\0' + "b\n"));
  expect_the_same(with(sentences(9, 3) + std::string(1'200'000, 'x') + "\n", ten));
  auto strict = with(sentences(9, 3) + "\xFF\n", ten);
  expect_the_same(strict);
  strict.invalid_utf8 = "error";
  expect_the_same(strict);
  auto narrow = o;
  narrow.max_tgt_tokens = 1;
  expect_the_same(narrow);
  narrow.max_tgt_tokens = 3;
  narrow.too_long = "error";
  expect_the_same(narrow);
  auto gone = o;
  gone.train_tgt = {(folder_ / "gone").string()};
  expect_the_same(gone);
  gone.train_tgt = {write("bad.gz", "this is no gzip")};
  expect_the_same(gone);
  gone.train_tgt = {write("bad.zip", "this is no archive") + ":member"};
  expect_the_same(gone);
  gone.train_tgt = {folder_.string()};
  expect_the_same(gone);
}

TEST_F(CorpusLooks, SayTheSameOfColumnsAndOfValidationText) {
  auto o = options(10);
  o.train_tsv = {write("a.tsv", "w1\tw2\nw3\n")};
  expect_the_same(o);
  o.train_tsv = {write("b.tsv", "w1\tw2\nw3\tw4\n")};
  expect_the_same(o);
  o.valid_src = {write("v.src", "w1\n\xFF\n")};
  o.valid_tgt = {write("v.tgt", "w1\nw2\n")};
  expect_the_same(o, Split::kValid);
  o.valid_tgt = {write("u.tgt", "w1\n")};
  expect_the_same(o, Split::kValid);
  o.valid_src = {write("e.src", "")};
  o.valid_tgt = {write("e.tgt", "")};
  expect_the_same(o, Split::kValid);
}

TEST_F(CorpusLooks, CountTheTokensThatTheCorpusWouldHave) {
  auto o = options(50);
  o.max_ratio = 0;
  o.train_src = {write("c.src", sentences(49, 3) + "nobody knows w1\n")};
  const auto corpus = open(o);
  const auto found = count_pieces(o, Split::kTrain, tokenizers_, always);
  EXPECT_EQ(found.look.unread, "");
  EXPECT_EQ(found.look.pairs, 50);
  EXPECT_GT(corpus->src_counts().unknown, 0);
  const auto numbers = [](const TextCounts& counts) {
    return std::array<int64_t, 3>{counts.words, counts.pieces, counts.unknown};
  };
  EXPECT_EQ(numbers(found.src), numbers(corpus->src_counts()));
  EXPECT_EQ(numbers(found.tgt), numbers(corpus->tgt_counts()));
  EXPECT_EQ(count_pieces(o, Split::kTrain, tokenizers_, [] { return false; }).look.unread,
            o.train_src.front() + " from line 1 on");
}

TEST_F(CorpusLooks, WriteNothing) {
  const auto o = options(20);
  const auto count = [&] {
    return std::distance(fs::recursive_directory_iterator(folder_),
                         fs::recursive_directory_iterator());
  };
  const auto before = count();
  EXPECT_EQ(check_lines(o, Split::kTrain, always).pairs, 20);
  check_filters(o, Split::kTrain, tokenizers_, always);
  EXPECT_EQ(count(), before);
}

TEST_F(CorpusLooks, EndWithTheTimeAndSayWhatIsLeft) {
  auto o = options(100);
  o.train_src.push_back(o.train_src.front());
  o.train_tgt.push_back(o.train_tgt.front());
  const auto never = check_lines(o, Split::kTrain, [] { return false; });
  EXPECT_EQ(never.pairs, 0);
  EXPECT_EQ(never.unread, o.train_src.front() + " from line 1 on and 1 input more");
  // It asks again after a quarter of a megabyte, here in the second input.
  const std::string line(999, 'w');
  std::string many;
  for (int i = 0; i < 200; ++i) many += line + "\n";
  o.train_src = {o.train_src.front(), write("many.src", many)};
  o.train_tgt = {o.train_tgt.front(), write("many.tgt", many)};
  int asked = 0;
  const auto some = check_lines(o, Split::kTrain, [&] { return asked++ == 0; });
  EXPECT_TRUE(some.unread.starts_with(o.train_src.back() + " from line 1")) << some.unread;
  EXPECT_GT(some.pairs, 100);
  EXPECT_LT(some.pairs, 300);
  EXPECT_EQ(check_lines(o, Split::kTrain, always).unread, "");
}

TEST_F(CorpusLooks, OpenEveryInputEvenWithoutTime) {
  auto o = options(10);
  o.train_src.push_back(write("bad.gz", "this is no gzip"));
  o.train_tgt.push_back(o.train_tgt.front());
  EXPECT_NE(
      failure(ExitCode::kBadData, [&] { check_lines(o, Split::kTrain, [] { return false; }); })
          .find("bad.gz"),
      std::string::npos);
}

TEST_F(CorpusLooks, CountTheRestOfTheLongerSideOnlyWhileThereIsTime) {
  auto o = options(10);
  o.train_src = {write("long.src", sentences(20'000, 3))};
  int asked = 0;
  const std::string message = failure(
      ExitCode::kBadData, [&] { check_lines(o, Split::kTrain, [&] { return asked++ == 0; }); });
  EXPECT_NE(message.find("long.src has 11 or more, "), std::string::npos) << message;
}

TEST_F(CorpusLooks, AtFiltersEndWithTheFirstPairThatIsKept) {
  auto o = options(100);
  EXPECT_EQ(check_filters(o, Split::kTrain, tokenizers_, always).pairs, 0);
  o.too_long = "error";
  EXPECT_EQ(check_filters(o, Split::kTrain, tokenizers_, always).pairs, 100);
}

}  // namespace
}  // namespace stretto::data
