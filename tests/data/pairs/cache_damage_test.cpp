// A token cache with damage anywhere in it gives the same ids as one without.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <thread>

#include "base/file.h"
#include "data/pairs/corpus.h"
#include "data/pairs/pair_columns.h"
#include "data/pairs/stored_corpus.h"
#include "tests/data/pairs/corpus_fixture.h"
#include "tests/data/settled.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

class CacheDamage : public CorpusFixture {
 protected:
  void SetUp() override {
    CorpusFixture::SetUp();
    ::alarm(280);              // who waits for a pipe has failed
    options_ = options(1500);  // 45 kB of ids: several blocks, of which the last is short
    options_.valid_src = {write("v.src", sentences(60, 7))};
    options_.valid_tgt = {write("v.tgt", sentences(60, 8))};
    options_.train_weights = {1.5};
  }
  /// Waits until the hashes of the texts are remembered.
  void let_settle() const {
    test::let_settle({options_.train_src[0], options_.train_tgt[0], options_.valid_src[0],
                      options_.valid_tgt[0]});
  }
  void TearDown() override {
    ::alarm(0);
    CorpusFixture::TearDown();
  }

  /// Everything that training and validation read.
  std::vector<std::vector<int64_t>> ids() const {
    std::vector<std::vector<int64_t>> all;
    for (const Split split : {Split::kTrain, Split::kValid}) {
      const auto corpus = open(options_, split);
      const auto batches = split == Split::kTrain ? make_train_batches(corpus, options_, 1)
                                                  : make_eval_batches(corpus, 64);
      for (int64_t i = 0; i < batches->num_batches(); ++i) {
        const Batch batch = batches->load(0, i);
        all.push_back(batch.sample_ids);
        all.push_back(source(batch).values);
        all.push_back(target(batch).values);
      }
      for (int64_t i = 0; split == Split::kValid && i < corpus->num_pairs(); ++i) {
        for (const std::string& text : {corpus->src_text(i), corpus->tgt_text(i)}) {
          all.emplace_back(text.begin(), text.end());
        }
      }
    }
    return all;
  }

  /// The same, with what was said meanwhile.
  std::vector<std::vector<int64_t>> ids(std::string& said) const {
    ::testing::internal::CaptureStderr();
    auto all = ids();
    said = ::testing::internal::GetCapturedStderr();
    return all;
  }

  std::vector<fs::path> cache_files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "cache")) {
      if (entry.is_regular_file() && entry.file_size() > 0) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
  }

  static size_t count(const std::string& text, const std::string& part) {
    size_t found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++found;
    return found;
  }

  static void overwrite(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }

  DataOptions options_;
};

TEST_F(CacheDamage, AFlippedBitAnywhereIsMendedAndSaidOnce) {
  let_settle();
  const auto whole = ids();
  // A store of pairs: ids, ends, source lengths, head, and for validation the text and its ends.
  // An order: samples, lengths, ends of runs, head, and with weights the pairs. A hash an input.
  ASSERT_EQ(cache_files().size(), 4u + 6u + 5u + 4u + 4u) << "the test is stale";
  RandomStream random(5);
  for (const fs::path& path : cache_files()) {
    const bool is_hash = path.parent_path().filename() == "hashes";
    const std::string bytes = read_file(path);
    std::set<size_t> places{0, 1, bytes.size() / 2, bytes.size() - 1};
    for (size_t at = 8; at < bytes.size() && at < 64; at += 8) places.insert(at);
    for (int i = 0; i < 5; ++i) places.insert(random.below(bytes.size()));
    for (const size_t at : places) {
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << random.below(8)));
      overwrite(path, flipped);
      std::string said;
      ASSERT_EQ(ids(said), whole) << path << " byte " << at;
      // A content that is not remembered is read again, which is all that there is to it.
      EXPECT_EQ(count(said, "is damaged; it is made again from the text"), is_hash ? 0u : 1u)
          << path << " byte " << at << ": " << said;
      ASSERT_EQ(ids(said), whole) << path << " byte " << at;
      EXPECT_EQ(count(said, "damaged"), 0u) << "it is still damaged: " << path << " byte " << at;
      EXPECT_EQ(read_file(path), bytes) << "the same cache is made again: " << path;
    }
  }
}

TEST_F(CacheDamage, AFileThatIsNoneIsMadeAgain) {
  let_settle();
  const auto whole = ids();
  for (const fs::path& path : cache_files()) {
    for (const char* kind : {"nothing", "empty", "pipe", "folder", "zero"}) {
      fs::remove(path);
      if (kind == std::string("empty")) overwrite(path, "");
      if (kind == std::string("pipe")) {
        ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
      }
      if (kind == std::string("folder")) fs::create_directories(path);
      if (kind == std::string("zero")) fs::create_symlink("/dev/zero", path);
      std::string said;
      if (path.parent_path().filename() == "hashes" && kind == std::string("folder")) {
        // What is remembered cannot be replaced, and is read again each time.
        EXPECT_EQ(ids(said), whole) << path;
        fs::remove(path);
        ids();
        continue;
      }
      EXPECT_EQ(ids(said), whole) << path << " is " << kind;
      EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(path))) << path << " is " << kind;
    }
  }
}

TEST_F(CacheDamage, IsMendedOnceForAllThatOpenIt) {
  const auto expected = open(options_)->src(0);
  const fs::path file = open(options_)->cache_path() / "0.bin";
  std::string bytes = read_file(file);
  for (size_t at = 100; at < bytes.size(); at += 5000) bytes[at] ^= 1;
  overwrite(file, bytes);
  ::testing::internal::CaptureStderr();
  {
    std::vector<std::jthread> openers;
    for (int i = 0; i < 4; ++i) {
      openers.emplace_back([&] { EXPECT_EQ(open(options_)->src(0), expected); });
    }
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(count(said, "is damaged"), 1u) << said;
}

TEST_F(CacheDamage, IsMendedBesideThoseThatHaveTheFilesOpen) {
  const auto whole = ids();
  const auto first = open(options_);
  const auto expected = first->src(0);
  const fs::path file = first->cache_path() / "0.bin";
  std::string bytes = read_file(file);
  bytes[1] ^= 4;
  fs::remove(file);  // the file that is mapped stays as it is
  overwrite(file, bytes);
  EXPECT_FALSE(open(options_)->from_cache());
  EXPECT_EQ(first->src(0), expected);
  EXPECT_EQ(first->src(first->num_pairs() - 1), open(options_)->src(first->num_pairs() - 1));
  EXPECT_EQ(ids(), whole);
}

TEST_F(CacheDamage, OfLengthsIsFoundBeforeAnotherOrderIsMadeOfThem) {
  const auto whole = ids();
  double weight = 2;
  const auto folder = open(options_)->cache_path();
  for (const char* name : {"1.bin", "2.bin"}) {
    std::string bytes = read_file(folder / name);
    bytes[bytes.size() / 2] ^= 1;
    overwrite(folder / name, bytes);
    DataOptions other = options_;
    other.train_weights = {weight};
    ::testing::internal::CaptureStderr();
    const auto corpus = open(other);  // an order that is not there yet
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(count(said, "is damaged"), 1u) << said;
    EXPECT_EQ(corpus->num_pairs(), static_cast<int64_t>(1500 * weight));
    EXPECT_EQ(ids(), whole);
    ++weight;
  }
}

// Whole blocks, and yet no corpus: as of another version that forgot to change its key.
TEST_F(CacheDamage, PartsThatDoNotBelongTogetherAreMadeAgain) {
  const auto whole = ids();
  const auto folder = open(options_)->cache_path();
  const uint64_t key = std::stoull(folder.filename().string(), nullptr, 16);
  fs::remove_all(folder);
  open_samples(
      {.root = folder.parent_path(), .kind = "pairs", .key = key, .num_parts = kNumCorpusParts},
      [](SampleStoreWriter& writer) {
        writer.append_value<uint64_t>(kPairEnds, 7);
        return std::vector<uint64_t>(200, 2);
      });
  std::string said;
  EXPECT_EQ(ids(said), whole);
  EXPECT_EQ(count(said, "is damaged"), 1u) << said;
}

}  // namespace
}  // namespace stretto::data
