#include "data/documents/documents.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "data/documents/stored_documents.h"
#include "tests/base/failure.h"
#include "tests/data/documents/documents_fixture.h"
#include "tests/data/interrupted_build.h"

namespace stretto::data {
namespace {

using stretto::testing::failure;
using Ids = std::vector<int64_t>;

class DocumentsTest : public stretto::testing::DocumentsFixture {
 protected:
  /// The folder of the only store; empty without one.
  std::filesystem::path store_folder() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "cache")) {
      if (std::filesystem::exists(entry.path() / "head.bin") &&
          !entry.path().filename().string().starts_with(".tmp")) {
        return entry.path();
      }
    }
    return {};
  }
};

TEST_F(DocumentsTest, HasTheTokensOfAllDocumentsWithSeparators) {
  const auto documents =
      open({folder_.write("a.txt", "w0 w1b\nw2\n\nw3\n"), folder_.write("b.txt", "w4 what\n")});
  EXPECT_EQ(all_ids(*documents), (Ids{5, 6, 26, 7, kSep, 8, kSep, 9, 1, kSep}));
  ASSERT_EQ(documents->size(), 3);
  EXPECT_EQ(documents->begin(1), 5U);
  EXPECT_EQ(documents->end(1), 6U);
  EXPECT_EQ(documents->num_ids(), 10U);
  const auto& counts = documents->counts();
  EXPECT_EQ(counts.documents, 3);
  EXPECT_EQ(counts.lines, 4);
  EXPECT_EQ(counts.tokens, 7);
  EXPECT_EQ(counts.words, 6);
  EXPECT_EQ(counts.unknown, 1);
  EXPECT_EQ(counts.longest, 4);
  EXPECT_NEAR(counts.unknown_rate(), 1.0 / 7, 1e-12);
}

TEST_F(DocumentsTest, EachLineMayBeADocument) {
  const auto documents = open({folder_.write("a.txt", "w0 w1\nw2\n")}, DocumentEnd::kLine);
  EXPECT_EQ(all_ids(*documents), (Ids{5, 6, kSep, 7, kSep}));
}

TEST_F(DocumentsTest, DocumentsWithoutTokensAreLeftOut) {
  const auto documents = open({folder_.write("a.txt", "\u3000\n\nw1\n\n\u00AD\n")});
  EXPECT_EQ(all_ids(*documents), (Ids{6, kSep}));
}

TEST_F(DocumentsTest, DoesNotDependOnThreads) {
  const auto text = documents_text(9000, 5);  // some chunks
  const auto one = open({folder_.write("a.txt", text)}, DocumentEnd::kBlankLine, 1);
  EXPECT_FALSE(one->from_cache());
  const Ids ids = all_ids(*one);
  std::filesystem::remove_all(folder_ / "cache");
  const auto four = open({folder_.write("a.txt", text)}, DocumentEnd::kBlankLine, 4);
  EXPECT_EQ(all_ids(*four), ids);
  EXPECT_EQ(four->size(), 9000);
  for (int64_t i = 0; i < four->size(); ++i) ASSERT_EQ(four->begin(i), one->begin(i));
}

TEST_F(DocumentsTest, IsFoundAgainByContentAndKind) {
  const std::string text = "w0 w1\nw2\n\nw3\n";
  const auto first = open({folder_.write("a.txt", text)});
  const auto moved = open({folder_.write("moved.txt", text)});
  EXPECT_TRUE(moved->from_cache());
  EXPECT_EQ(moved->key(), first->key());
  EXPECT_EQ(moved->counts().tokens, first->counts().tokens);
  EXPECT_EQ(all_ids(*moved), all_ids(*first));
  EXPECT_FALSE(open({folder_.write("moved.txt", text)}, DocumentEnd::kLine)->from_cache());
  EXPECT_FALSE(open({folder_.write("other.txt", text + "w1\n")})->from_cache());
}

TEST_F(DocumentsTest, BadLinesAreLeftOutCountedAndKeptInTheCache) {
  const std::string text = "w0\n" + std::string("w1\0\n", 4) + "w2\n";
  const auto open_with = [&](const std::string& name, const BadSampleRule& rule) {
    return open_documents({.paths = {folder_.write("other.txt", "w9\n"), folder_.write(name, text)},
                           .cache_dir = (folder_ / "cache").string(),
                           .threads = 2,
                           .key = "data.train",
                           .bad_samples = rule},
                          *tokenizer_);
  };
  failure(ExitCode::kBadData, [&] { open_with("a.txt", {}); });
  const auto made = open_with("a.txt", {.skips = true});
  EXPECT_EQ(all_ids(*made), (Ids{14, kSep, 5, 7, kSep}));
  EXPECT_EQ(made->left_out().count, 1);
  const auto found = open_with("moved.txt", {.skips = true});
  EXPECT_TRUE(found->from_cache());
  ASSERT_EQ(found->left_out().first.size(), 1U);
  EXPECT_EQ(found->left_out().first[0].file, (folder_ / "moved.txt").string());
  EXPECT_EQ(found->left_out().first[0].fault, ":2:3: a NUL byte, so this is not UTF-8 text");
  failure(ExitCode::kBadData, [&] { open_with("a.txt", {.skips = true, .most = 0}); });
  failure(ExitCode::kBadData, [&] { open_with("a.txt", {}); });
}

TEST_F(DocumentsTest, DamagedFilesAreMadeAgain) {
  const std::string path = folder_.write("a.txt", documents_text(50, 6));
  const Ids ids = all_ids(*open({path}));
  const auto store = store_folder();
  for (const char* name : {"0.bin", "1.bin", "head.bin"}) {
    const auto file = store / name;
    const std::string bytes = read_file(file);
    std::string flipped = bytes;
    flipped[bytes.size() / 2] ^= 1;
    for (const std::string& other : {flipped, bytes.substr(0, bytes.size() / 2), std::string()}) {
      std::ofstream(file, std::ios::binary) << other;
      const auto again = open({path});
      EXPECT_FALSE(again->from_cache()) << name;
      EXPECT_EQ(all_ids(*again), ids) << name;
      EXPECT_EQ(read_file(file), bytes) << name;
    }
    std::filesystem::remove(file);
    EXPECT_EQ(all_ids(*open({path})), ids) << name;
    EXPECT_TRUE(open({path})->from_cache()) << name;
  }
}

// Whole blocks, and yet no documents: as of another version that forgot to change its key.
TEST_F(DocumentsTest, PartsThatDoNotBelongTogetherAreMadeAgain) {
  const std::string path = folder_.write("a.txt", documents_text(50, 6));
  const auto first = open({path});
  const Ids ids = all_ids(*first);
  const std::string head = read_file(store_folder() / "head.bin");
  const auto build_other = [&](const std::vector<uint64_t>& ends, uint64_t documents) {
    std::filesystem::remove_all(store_folder());
    const StorePlace place{.root = folder_ / "cache",
                           .kind = "documents",
                           .key = first->key(),
                           .num_parts = kNumDocumentsParts};
    open_samples(place, [&](SampleStoreWriter& writer) {
      writer.append(kDocumentIds, "12345678");
      writer.append_values<uint64_t>(kDocumentEnds, ends);
      DocumentFacts facts;
      facts.counts.documents = static_cast<int64_t>(documents);
      return words_of(facts, {});
    });
  };
  using Ends = std::vector<uint64_t>;
  for (const auto& [ends, documents] :
       {std::pair(Ends{2, 5}, 2), std::pair(Ends{0, 4}, 2), std::pair(Ends{3, 2, 4}, 3),
        std::pair(Ends{2, 2, 4}, 3), std::pair(Ends{2, 4}, 3), std::pair(Ends{}, 0)}) {
    build_other(ends, static_cast<uint64_t>(documents));
    const auto again = open({path});
    EXPECT_FALSE(again->from_cache());
    EXPECT_EQ(all_ids(*again), ids);
  }
  EXPECT_EQ(read_file(store_folder() / "head.bin"), head);
}

TEST_F(DocumentsTest, AnIdOutsideOfTheVocabularyIsNeverGiven) {
  const DocumentFacts facts{.counts = {.documents = 1}};
  auto store = samples_in_memory(kNumDocumentsParts, [&](SampleStoreWriter& writer) {
    writer.append_values<uint16_t>(kDocumentIds, std::vector<uint16_t>{1, 30, 3});
    writer.append_value<uint64_t>(kDocumentEnds, 3);
    return words_of(facts, {});
  });
  const auto found = document_facts(store, {});
  ASSERT_TRUE(found);
  const StoredDocuments documents(
      {.store = std::move(store), .facts = *found, .name = "here", .vocab_size = 30});
  Ids ids{7};
  failure(ExitCode::kIo, [&] { documents.append(0, 3, ids); });
  failure(ExitCode::kIo, [&] { documents.append(2, 4, ids); });
  EXPECT_EQ(ids, Ids{7});
  documents.append(2, 3, ids);
  EXPECT_EQ(ids, (Ids{7, 3}));
}

TEST_F(DocumentsTest, AKilledBuildLeavesNothingThatIsUsed) {
  const std::string path = folder_.write("a.txt", documents_text(9000, 5));
  const auto good = tokenizer_;
  tokenizer_ = std::make_shared<stretto::testing::InterruptedTokenizer>(good, 15000,
                                                                        [] { ::raise(SIGKILL); });
  const int status = stretto::testing::in_child([&] { open({path}); });
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(store_folder().empty()) << "it is beside its place";
  tokenizer_ = good;
  const auto documents = open({path});
  EXPECT_FALSE(documents->from_cache());
  EXPECT_EQ(documents->size(), 9000);
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "cache")) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(".tmp")) << entry.path();
  }
}

TEST_F(DocumentsTest, SeveralThatOpenAtOnceMakeThemOnce) {
  const std::string path = folder_.write("a.txt", documents_text(2000, 5));
  std::atomic<int> made = 0;
  {
    std::vector<std::jthread> openers;
    for (int i = 0; i < 4; ++i) {
      openers.emplace_back([&] {
        const auto documents = open({path});
        EXPECT_EQ(documents->size(), 2000);
        if (!documents->from_cache()) ++made;
      });
    }
  }
  EXPECT_EQ(made, 1);
}

TEST_F(DocumentsTest, BytesThatAreNotUtf8AreReplacedAndCounted) {
  const auto documents = open({folder_.write("a.txt", "w0\nw1 \xff w2\n")});
  EXPECT_EQ(documents->counts().repaired, 1);
  EXPECT_EQ(all_ids(*documents), (Ids{5, 6, 7, kSep})) << "BERT's cleaning removes U+FFFD";
}

TEST_F(DocumentsTest, TextWithoutADocumentIsRefused) {
  const std::string path = folder_.write("a.txt", "\n \n");
  const Error error = failure(ExitCode::kBadData, [&] { open({path}); });
  EXPECT_NE(std::string(error.what()).find("data.train: "), std::string::npos) << error.what();
  EXPECT_NE(std::string(error.what()).find("a.txt"), std::string::npos);
  failure(ExitCode::kUsage, [&] { open({(folder_ / "none.txt").string()}); });
}

TEST_F(DocumentsTest, BadLinesAreNamedAndLeaveNothing) {
  const std::string path = folder_.write("a.txt", "w0\n" + std::string("w\0", 2) + "\n");
  const Error error = failure(ExitCode::kBadData, [&] { open({path}); });
  EXPECT_NE(std::string(error.what()).find("a.txt:2"), std::string::npos) << error.what();
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "cache")) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(".tmp")) << entry.path();
  }
}

TEST_F(DocumentsTest, ATokenizerWithoutSeparatorIsRefused) {
  tokenizer_ = text::make_spec_tokenizer(text::parse_vocab_txt("[UNK]\nw0\n", "v"), "v", 1);
  const std::string path = folder_.write("a.txt", "w0\n");
  failure(ExitCode::kUsage, [&] { open({path}); });
}

TEST_F(DocumentsTest, NoSpaceIsAnErrorThatSaysWhereElseTheCacheMayBe) {
  const std::string path = folder_.write("a.txt", documents_text(9000, 7));
  const int status = stretto::testing::in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{.rlim_cur = 20'000, .rlim_max = 20'000};
    ::setrlimit(RLIMIT_FSIZE, &small);
    const Error error = failure(ExitCode::kIo, [&] { open({path}); });
    ::_exit(error.message().find("the token cache: cannot write") == 0 &&
                    error.advice().starts_with("set data.cache_dir")
                ? 42
                : 43);
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
  EXPECT_TRUE(store_folder().empty());
  EXPECT_EQ(open({path})->size(), 9000);
}

}  // namespace
}  // namespace stretto::data
