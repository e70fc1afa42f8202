#include "data/pairs/corpus.h"

#include <sys/resource.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <sstream>
#include <stdexcept>

#include "tests/data/interrupted_build.h"
#include "tests/data/pairs/corpus_fixture.h"
#include "tests/data/settled.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

class CorpusCache : public CorpusFixture {
 protected:
  static std::vector<std::vector<int64_t>> contents(const Corpus& corpus) {
    std::vector<std::vector<int64_t>> all;
    for (int64_t i = 0; i < corpus.num_pairs(); ++i) {
      all.push_back(corpus.src(i));
      all.push_back(corpus.tgt(i));
    }
    return all;
  }

  /// What is in the lines of two texts, told without any of the machinery.
  std::vector<std::vector<int64_t>> expected(const std::string& src, const std::string& tgt) const {
    std::vector<std::vector<int64_t>> all;
    std::istringstream src_lines(src), tgt_lines(tgt);
    for (std::string s, t; std::getline(src_lines, s) && std::getline(tgt_lines, t);) {
      for (const std::string& line : {s, t}) {
        std::vector<int64_t> ids;
        tokenizers_.src->encode(line, ids);
        ids.push_back(kEos);
        all.push_back(ids);
      }
    }
    return all;
  }

  /// Files of the cache that are neither finished nor harmless.
  std::vector<std::string> leftovers() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "cache")) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(".tmp")) names.push_back(name);
    }
    return names;
  }

  void interrupt(int64_t line, std::function<void()> action) {
    tokenizers_.src =
        std::make_shared<testing::InterruptedTokenizer>(tokenizers_.tgt, line, std::move(action));
  }
};

TEST_F(CorpusCache, HoldsEveryPairInOrder) {
  const auto corpus = open(options(20000));
  EXPECT_EQ(corpus->num_pairs(), 20000);
  EXPECT_FALSE(corpus->from_cache());
  EXPECT_EQ(contents(*corpus), expected(sentences(20000, 1), sentences(20000, 2)));
  int64_t src_tokens = 0;
  for (int64_t i = 0; i < corpus->num_pairs(); ++i) {
    src_tokens += static_cast<int64_t>(corpus->src(i).size());
  }
  EXPECT_EQ(corpus->num_src_tokens(), src_tokens);
  EXPECT_GT(corpus->cache_bytes(), 20000u * 12);
  EXPECT_TRUE(leftovers().empty());
}

TEST_F(CorpusCache, DoesNotDependOnThreads) {
  DataOptions o = options(9000);
  const auto one = open(o, Split::kTrain, 1);
  o.cache_dir = (folder_ / "other").string();
  const auto five = open(o, Split::kTrain, 5);
  EXPECT_FALSE(five->from_cache());
  EXPECT_EQ(contents(*one), contents(*five));
}

TEST_F(CorpusCache, IsUsedAgainAndForEqualContentsElsewhere) {
  DataOptions o = options(500);
  const auto first = open(o);
  EXPECT_TRUE(open(o)->from_cache());
  o.train_src = {write("moved.src", sentences(500, 1))};
  const auto moved = open(o);
  EXPECT_TRUE(moved->from_cache());
  EXPECT_EQ(moved->cache_path(), first->cache_path());
  EXPECT_EQ(contents(*moved), contents(*first));
  EXPECT_EQ(moved->filters().kept, 500);
}

TEST_F(CorpusCache, IsMadeAgainWhenAnythingThatShapesItChanges) {
  DataOptions o = options(500);
  open(o);
  DataOptions shorter = o;
  shorter.max_src_tokens = 8;
  EXPECT_FALSE(open(shorter)->from_cache());
  DataOptions ratio = o;
  ratio.max_ratio = 2;
  EXPECT_FALSE(open(ratio)->from_cache());
  o.train_tgt = {write("train.tgt", sentences(500, 3))};  // same path, other text
  const auto changed = open(o);
  EXPECT_FALSE(changed->from_cache());
  EXPECT_EQ(contents(*changed), expected(sentences(500, 1), sentences(500, 3)));
  const auto fewer = text::make_vocabulary("w1\nw2\n", "other");
  tokenizers_ = {.src = fewer, .tgt = fewer, .joint = true};
  EXPECT_FALSE(open(o)->from_cache());
}

// Two vocabularies of one size: nothing but their words tells the old ids from the new ones.
TEST_F(CorpusCache, KnowsTheWordsOfEachSidesVocabulary) {
  const DataOptions o = options(500);
  const auto before = contents(*open(o));
  std::string words;
  for (uint64_t i = 40; i-- > 0;) words += word(i) + "\n";
  const auto known = tokenizers_.src;
  const auto other = text::make_vocabulary(words, "other order");
  ASSERT_EQ(other->size(), known->size());
  for (const auto& [src, tgt] : {std::pair(other, known), std::pair(known, other)}) {
    tokenizers_ = {.src = src, .tgt = tgt, .joint = false};
    const auto changed = open(o);
    EXPECT_FALSE(changed->from_cache());
    EXPECT_EQ(changed->src(0) != before[0], src == other);
    EXPECT_EQ(changed->tgt(0) != before[1], tgt == other);
  }
}

// The key is of the content that was hashed; a file that took its place meanwhile is another one.
TEST_F(CorpusCache, ATextThatChangesWhileItIsReadIsRefused) {
  const DataOptions o = options(500);
  const auto good = tokenizers_;
  for (const std::string& path : {o.train_src[0], o.train_tgt[0]}) {
    const std::string later = write("later", sentences(500, 9));
    interrupt(250, [&] { fs::rename(later, path); });
    const std::string said = failure(ExitCode::kBadData, [&] { open(o); });
    EXPECT_TRUE(contains(said, path + ": changed while it was being read")) << said;
    EXPECT_TRUE(leftovers().empty());
    tokenizers_ = good;
  }
  const auto corpus = open(o);
  EXPECT_FALSE(corpus->from_cache());
  EXPECT_EQ(contents(*corpus), expected(sentences(500, 9), sentences(500, 9)));
}

TEST_F(CorpusCache, RemembersTheHashOfAFileThatHasSettled) {
  const DataOptions o = options(500);
  test::let_settle({o.train_src[0], o.train_tgt[0]});
  open(o);
  const auto files = fs::directory_iterator(folder_ / "cache" / "hashes");
  EXPECT_EQ(std::distance(fs::begin(files), fs::end(files)), 2);
  EXPECT_TRUE(open(o)->from_cache());
  write("train.src", sentences(500, 9));  // changed a moment ago: read, not remembered
  EXPECT_FALSE(open(o)->from_cache());
}

TEST_F(CorpusCache, KeepsTheTextOfEvaluationPairs) {
  DataOptions o = options(5);
  o.valid_src = {write("v.src", "w0 w1\r\n\nw2 \xFF\nw3\nw0 w1 w2 w3 w4\n")};
  o.valid_tgt = {write("v.tgt", "w5\nw6\nw7\n w8 \nw9\n")};
  o.max_src_tokens = 4;
  const auto corpus = open(o, Split::kValid);
  ASSERT_EQ(corpus->num_pairs(), 4);
  EXPECT_EQ(corpus->src_text(0), "w0 w1");
  EXPECT_EQ(corpus->src_text(1), "w2 \xEF\xBF\xBD");
  EXPECT_EQ(corpus->tgt_text(2), " w8 ");
  EXPECT_EQ(corpus->tgt_text(3), "w9");
  EXPECT_EQ(corpus->src(3).size(), 4u);
  EXPECT_EQ(corpus->src_text(3), "w0 w1 w2 w3 w4");
  EXPECT_EQ(corpus->filters().empty, 1);
  EXPECT_EQ(corpus->filters().truncated, 1);
  EXPECT_EQ(corpus->filters().replaced, 1);
  EXPECT_TRUE(open(o, Split::kValid)->from_cache());
  EXPECT_EQ(open(o, Split::kValid)->tgt_text(3), "w9");
  EXPECT_THROW(open(o)->src_text(0), std::logic_error);
  EXPECT_THROW(corpus->src(4), std::out_of_range);
}

TEST_F(CorpusCache, KnowsWhatTruncationCutOff) {
  DataOptions o = options(1);
  o.train_src = {write("long.src", "w0 w1 w2 w3 w4\nw0\n")};
  o.train_tgt = {write("long.tgt", "w0 w1\nw0 w1 w2 w3\n")};
  o.max_src_tokens = o.max_tgt_tokens = 4;
  o.too_long = "skip";
  const auto whole = [&] {
    auto wide = o;
    wide.max_src_tokens = wide.max_tgt_tokens = 64;
    return open(wide);
  }();
  o.too_long = "truncate";
  for (const bool cached : {false, true}) {
    const auto cut = open(o);
    EXPECT_EQ(cut->from_cache(), cached);
    EXPECT_EQ(cut->num_pairs(), 2);
    EXPECT_EQ(cut->filters().truncated, 2);
    EXPECT_EQ(cut->src_counts().cut, 2);
    EXPECT_EQ(cut->tgt_counts().cut, 1);
    EXPECT_EQ(cut->src(0).back(), kEos);
    EXPECT_EQ(cut_text(cut->src_counts(), cut->tgt_counts()),
              "33.3 % of the source's tokens, 16.7 % of the target's");
    // Kept and cut tokens are all that there were.
    EXPECT_EQ(cut->src_counts().pieces + cut->src_counts().cut, whole->src_counts().pieces);
    EXPECT_EQ(cut->tgt_counts().pieces + cut->tgt_counts().cut, whole->tgt_counts().pieces);
    EXPECT_DOUBLE_EQ(cut->src_counts().pieces_per_word(), 1);
    EXPECT_NE(cut->cache_path(), whole->cache_path());
  }
}

TEST_F(CorpusCache, JoinsSeveralFilesAndTsv) {
  DataOptions o = options(3);
  o.train_src.push_back(write("b.src", "w1\n"));
  o.train_tgt.push_back(write("b.tgt", "w2\n"));
  o.train_tsv = {write("c.tsv", "x\tw3\tw4 w5\n")};
  o.src_column = 3;
  o.tgt_column = 2;
  const auto corpus = open(o);
  ASSERT_EQ(corpus->num_pairs(), 5);
  EXPECT_EQ(corpus->src(3), (std::vector<int64_t>{5, kEos}));
  EXPECT_EQ(corpus->src(4), (std::vector<int64_t>{8, 9, kEos}));
  EXPECT_EQ(corpus->tgt(4), (std::vector<int64_t>{7, kEos}));
}

TEST_F(CorpusCache, ReadsColumnsBetweenAnotherSeparator) {
  DataOptions o;
  o.cache_dir = options(1).cache_dir;
  o.train_tsv = {write("a.csv", "w1;w2 w3\nw4\tw5;w6\n")};
  EXPECT_TRUE(contains(failure(ExitCode::kBadData, [&] { open(o); }),
                       "a.csv:1: this line has no column 2"));
  o.separator = ";";
  const auto corpus = open(o);
  ASSERT_EQ(corpus->num_pairs(), 2);
  EXPECT_EQ(corpus->tgt(0), (std::vector<int64_t>{6, 7, kEos}));
  EXPECT_EQ(corpus->src(1), (std::vector<int64_t>{8, 9, kEos}));
  o.train_tsv = {write("both.csv", "w1;w2\tw3\n")};
  EXPECT_EQ(open(o)->tgt(0), (std::vector<int64_t>{6, 7, kEos}));
  o.separator = "\t";
  EXPECT_EQ(open(o)->src(0), (std::vector<int64_t>{testing::kUnk, kEos}))
      << "cut at the tab, and w1;w2 is no word";
}

TEST_F(CorpusCache, StoresLargeVocabulariesToo) {
  std::string words;
  for (int i = 0; i < 70000; ++i) words += word(i) + "\n";
  tokenizers_.src = tokenizers_.tgt = text::make_vocabulary(words, "words");
  DataOptions o = options(1);
  o.train_src = {write("a", "w69999 w0\n")};
  o.train_tgt = {write("b", "w65536\n")};
  const auto corpus = open(o);
  EXPECT_EQ(corpus->src(0), (std::vector<int64_t>{70003, 4, kEos}));
  EXPECT_EQ(corpus->tgt(0), (std::vector<int64_t>{65540, kEos}));
}

TEST_F(CorpusCache, WeightsRepeatAndThin) {
  DataOptions o = options(2000);
  o.train_src.push_back(write("b.src", sentences(2000, 5)));
  o.train_tgt.push_back(write("b.tgt", sentences(2000, 6)));
  const auto plain = open(o);
  o.train_weights = {2, 0.25};
  const auto weighted = open(o);
  EXPECT_TRUE(weighted->from_cache());  // the same tokens in another order
  EXPECT_NEAR(static_cast<double>(weighted->num_pairs()), 4000 + 500, 80);
  for (int64_t i = 0; i < 4000; ++i) EXPECT_EQ(weighted->src(i), plain->src(i / 2));
  EXPECT_EQ(open(o, Split::kTrain, 2, 1)->num_pairs(), weighted->num_pairs());
  const auto other = open(o, Split::kTrain, 2, 99);
  EXPECT_NE(contents(*other), contents(*weighted));
  o.train_weights = {1, 1};
  EXPECT_EQ(contents(*open(o)), contents(*plain));
  o.train_weights = {1};
  EXPECT_TRUE(contains(failure(ExitCode::kUsage, [&] { open(o); }), "data.train_weights"));
}

// 1.5 is once and every second pair once more; nothing is rounded, up or down.
TEST_F(CorpusCache, AWeightCountsAsOftenAsItSays) {
  DataOptions o = options(4000);
  for (const double weight : {1.5, 0.75, 2.6, 0.1}) {
    o.train_weights = {weight};
    EXPECT_NEAR(static_cast<double>(open(o)->num_pairs()), 4000 * weight, 160) << weight;
  }
}

TEST_F(CorpusCache, NamesBothCountsWhenTheSidesAreUnequal) {
  DataOptions o = options(1);
  o.train_src = {write("long.src", sentences(5000, 1))};
  o.train_tgt = {write("short.tgt", sentences(1234, 2))};
  for (int turn = 0; turn < 2; ++turn, std::swap(o.train_src, o.train_tgt)) {
    const std::string said = failure(ExitCode::kBadData, [&] { open(o); });
    EXPECT_TRUE(contains(said, "long.src has 5,000")) << said;
    EXPECT_TRUE(contains(said, "short.tgt has 1,234")) << said;
  }
  EXPECT_TRUE(leftovers().empty());
}

TEST_F(CorpusCache, RefusesEmptyCorpora) {
  DataOptions o = options(1);
  o.train_src = {write("e.src", "")};
  o.train_tgt = {write("e.tgt", "")};
  EXPECT_TRUE(contains(failure(ExitCode::kBadData, [&] { open(o); }), "no lines"));
  o.train_src = {write("e.src", "\n\n")};
  o.train_tgt = {write("e.tgt", "w1\nw2\n")};
  const std::string said = failure(ExitCode::kBadData, [&] { open(o); });
  EXPECT_TRUE(contains(said, "(empty 2: " + o.train_src[0] + ":1, " + o.train_src[0] + ":2)"))
      << said;
  o.train_src.clear();
  o.train_tgt.clear();
  EXPECT_TRUE(contains(failure(ExitCode::kUsage, [&] { open(o); }), "data.train_src"));
  o.train_src = {"a"};
  EXPECT_TRUE(contains(failure(ExitCode::kUsage, [&] { open(o); }), "0"));
  EXPECT_TRUE(leftovers().empty());
}

TEST_F(CorpusCache, SaysWhichLinesTheFiltersFoundAlsoFromTheCache) {
  DataOptions o = options(1);
  std::string src = sentences(9000, 1), tgt = sentences(9000, 2);
  src += "\n\nw1\nw1 \xFF\n\n\n";  // lines 9001 to 9006
  tgt += "w1\nw1\n\nw1\nw1\nw1\n";
  o.train_src.push_back(write("b.src", src));
  o.train_tgt.push_back(write("b.tgt", tgt));
  const std::string b = (folder_ / "b").string();
  for (const int64_t threads : {1, 3}) {
    o.cache_dir = (folder_ / ("cache" + std::to_string(threads))).string();
    for (const bool cached : {false, true}) {
      ::testing::internal::CaptureStderr();
      const auto corpus = open(o, Split::kTrain, threads);
      const std::string said = ::testing::internal::GetCapturedStderr();
      EXPECT_EQ(corpus->from_cache(), cached);
      EXPECT_EQ(corpus->filters().empty, 5);
      EXPECT_TRUE(contains(said, "empty 5: " + b + ".src:9001, " + b + ".src:9002, " + b +
                                     ".tgt:9003, …; invalid UTF-8 1: " + b + ".src:9004\n"))
          << said;
    }
  }
  // The cache knows contents; the names are today's.
  fs::rename(b + ".src", folder_ / "moved.src");
  o.train_src.back() = (folder_ / "moved.src").string();
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(open(o)->from_cache());
  EXPECT_TRUE(contains(::testing::internal::GetCapturedStderr(), "moved.src:9004"));
}

TEST_F(CorpusCache, KnowsWordsPiecesAndUnknownTokensOfKeptPairsWarmToo) {
  DataOptions o = options(1);
  // 9,000 pairs fill several chunks; the last two pairs are left out and do not count.
  std::string src, tgt;
  for (int i = 0; i < 9000; ++i) {
    src += "w1 what w2\t nobody  knows\n";
    tgt += i == 0 ? "w1 unheard w3\n" : "w1 w2 w3\n";
  }
  o.train_src = {write("u.src", src + "what\nw1 \xFF what\n")};
  o.train_tgt = {write("u.tgt", tgt + "\nw1\n")};
  for (const bool cached : {false, true}) {
    const auto corpus = open(o, Split::kTrain, 3);
    EXPECT_EQ(corpus->from_cache(), cached);
    EXPECT_EQ(corpus->num_pairs(), 9000);
    EXPECT_EQ(corpus->src_counts().words, 5 * 9000);
    EXPECT_EQ(corpus->src_counts().pieces, 5 * 9000);
    EXPECT_EQ(corpus->src_counts().unknown, 3 * 9000);
    EXPECT_EQ(corpus->tgt_counts().unknown, 1);
    EXPECT_DOUBLE_EQ(corpus->src_counts().unknown_rate(), 0.6);
    EXPECT_DOUBLE_EQ(corpus->tgt_counts().pieces_per_word(), 1);
  }
}

TEST_F(CorpusCache, CountsEachPairOnceWhateverItsWeight) {
  DataOptions o = options(100);
  const auto once = open(o)->src_counts();
  o.train_weights = {3};
  const auto weighted = open(o);
  EXPECT_EQ(weighted->num_pairs(), 300);
  EXPECT_EQ(weighted->src_counts().pieces, once.pieces);
}

TEST_F(CorpusCache, SaysNothingOfFiltersThatFoundNothing) {
  ::testing::internal::CaptureStderr();
  open(options(50));
  EXPECT_FALSE(contains(::testing::internal::GetCapturedStderr(), "filters"));
}

TEST_F(CorpusCache, ReportsTheFirstBadLineWhateverTheThreads) {
  DataOptions o = options(1);
  std::string src = sentences(20000, 1);
  src += "w1 \xFF\n" + sentences(10, 4) + "w1 \xFF\n" + std::string("w1 \0\n", 5);
  o.train_src = {write("bad.src", src)};
  o.train_tgt = {write("bad.tgt", sentences(20013, 2))};
  o.invalid_utf8 = "error";
  for (const int64_t threads : {1, 4}) {
    const std::string said = failure(ExitCode::kBadData, [&] { open(o, Split::kTrain, threads); });
    EXPECT_TRUE(contains(said, "bad.src:20001: ")) << said;
  }
  o.invalid_utf8 = "skip";
  EXPECT_TRUE(contains(failure(ExitCode::kBadData, [&] { open(o); }), "bad.src:20013:4: a NUL"));
  EXPECT_TRUE(leftovers().empty());
}

TEST_F(CorpusCache, IsMadeAgainWhenItsFilesAreDamaged) {
  const DataOptions o = options(500);
  const auto before = contents(*open(o));
  const fs::path folder = open(o)->cache_path();
  fs::resize_file(folder / "0.bin", 10);
  EXPECT_FALSE(open(o)->from_cache());
  std::fstream head(folder / "head.bin", std::ios::in | std::ios::out | std::ios::binary);
  head.seekp(20).put('?');
  head.close();
  EXPECT_FALSE(open(o)->from_cache());
  for (const auto& entry : fs::directory_iterator(folder_ / "cache")) {
    if (!entry.is_directory() || entry.path() == folder) continue;
    if (fs::exists(entry.path() / "head.bin")) fs::resize_file(entry.path() / "head.bin", 24);
  }
  EXPECT_TRUE(open(o)->from_cache()) << "an order is made again without its corpus";
  EXPECT_EQ(contents(*open(o)), before);
}

TEST_F(CorpusCache, AKilledBuildLeavesNothingThatIsUsed) {
  const DataOptions o = options(30000);
  const auto good = tokenizers_;
  interrupt(15000, [] { ::raise(SIGKILL); });
  for (int turn = 0; turn < 2; ++turn) {
    const int status = testing::in_child([&] { open(o); });
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_FALSE(leftovers().empty());  // it did die in the middle
  }
  tokenizers_ = good;
  const auto corpus = open(o);
  EXPECT_FALSE(corpus->from_cache());
  EXPECT_EQ(contents(*corpus), expected(sentences(30000, 1), sentences(30000, 2)));
  EXPECT_TRUE(leftovers().empty());
}

TEST_F(CorpusCache, AFailedBuildLeavesNothing) {
  const DataOptions o = options(2000);
  interrupt(1500, [] { throw std::bad_alloc(); });
  EXPECT_THROW(open(o), std::bad_alloc);
  EXPECT_TRUE(leftovers().empty());
}

TEST_F(CorpusCache, SeveralProcessesMakeItOnce) {
  const DataOptions o = options(20000);
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      int code = 3;
      try {
        const auto corpus = open(o);
        code = corpus->num_pairs() == 20000 ? (corpus->src(7).empty() ? 4 : 0) : 5;
        std::ofstream(folder_ / ("cached_" + std::to_string(i))) << corpus->from_cache();
      } catch (...) {
      }
      ::_exit(code);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(contents(*open(o)), expected(sentences(20000, 1), sentences(20000, 2)));
  EXPECT_TRUE(leftovers().empty());
}

TEST_F(CorpusCache, NoSpaceIsAnErrorAndLeavesNothing) {
  const DataOptions o = options(30000);
  const int status = testing::in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{.rlim_cur = 200'000, .rlim_max = 200'000};
    ::setrlimit(RLIMIT_FSIZE, &small);
    try {
      open(o);
    } catch (const Error& error) {
      const bool says_where = error.message().find("set data.cache_dir") != std::string::npos;
      ::_exit(error.code() == ExitCode::kIo && says_where ? 42 : 43);
    }
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
  EXPECT_TRUE(leftovers().empty());
  EXPECT_EQ(open(o)->num_pairs(), 30000);
}

TEST_F(CorpusCache, SaysWhenItsFolderCannotBeMade) {
  DataOptions o = options(5);
  o.cache_dir = o.train_src[0] + "/cache";  // below a file
  EXPECT_TRUE(contains(failure(ExitCode::kIo, [&] { open(o); }), "cache"));
}

}  // namespace
}  // namespace stretto::data
