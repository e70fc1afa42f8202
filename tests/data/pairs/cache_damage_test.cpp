// A token cache with damage anywhere in it gives the same ids as one without.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <thread>

#include "base/file.h"
#include "data/checked_file.h"
#include "data/pairs/corpus.h"
#include "data/pairs/pair_columns.h"
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
  // Ids, starts, source lengths, head, order and its head; for validation text and its ends too; a
  // hash of each input.
  ASSERT_EQ(cache_files().size(), 6u + 8u + 4u) << "the test is stale";
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

TEST_F(CacheDamage, IsMendedUnderThreadsThatReadIt) {
  const auto corpus = open(options_);
  const auto batches = make_train_batches(corpus, options_, 1);
  const int64_t count_of_batches = batches->num_batches();
  std::vector<std::vector<int64_t>> expected;
  for (int64_t i = 0; i < count_of_batches; ++i)
    expected.push_back(source(batches->load(0, i)).values);

  const fs::path file = corpus->cache_path() / "ids.bin";
  std::string bytes = read_file(file);
  for (size_t at = 100; at < bytes.size(); at += 5000) bytes[at] ^= 1;
  overwrite(file, bytes);
  ::testing::internal::CaptureStderr();
  const auto damaged = open(options_);
  const auto again = make_train_batches(damaged, options_, 1);
  {
    std::vector<std::jthread> readers;
    for (int64_t reader = 0; reader < 4; ++reader) {
      readers.emplace_back([&, reader] {
        for (int64_t i = reader; i < count_of_batches; i += 2) {
          EXPECT_EQ(source(again->load(0, i)).values, expected[static_cast<size_t>(i)]) << i;
        }
      });
    }
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(count(said, "ids.bin is damaged"), 1u) << said;
  EXPECT_TRUE(damaged->from_cache());
}

TEST_F(CacheDamage, OfASecondOpenerIsMendedByMappingWhatTheFirstMade) {
  open(options_);
  const auto first = open(options_), second = open(options_);
  const fs::path file = first->cache_path() / "ids.bin";
  std::string bytes = read_file(file);
  for (char& byte : bytes) byte = static_cast<char>(byte ^ 4);
  {  // in the place of the file that both have mapped
    std::fstream out(file, std::ios::in | std::ios::out | std::ios::binary);
    out << bytes;
  }
  ::testing::internal::CaptureStderr();
  const auto from_first = first->src(0), from_second = second->src(0);
  EXPECT_EQ(from_first, from_second);
  EXPECT_EQ(count(::testing::internal::GetCapturedStderr(), "is damaged"), 1u);
}

TEST_F(CacheDamage, ThatComesBackIsAFaultOfTheMachine) {
  open(options_);
  const auto corpus = open(options_);
  const auto damage = [&] {
    const fs::path file = corpus->cache_path() / "ids.bin";
    std::string bytes = read_file(file);
    for (char& byte : bytes) byte = static_cast<char>(byte ^ 4);
    std::fstream(file, std::ios::in | std::ios::out | std::ios::binary) << bytes;
  };
  damage();
  EXPECT_FALSE(corpus->src(0).empty());
  damage();
  const std::string said = failure(ExitCode::kIo, [&] {
    for (int64_t i = 0; i < corpus->num_pairs(); ++i) corpus->src(i);
  });
  EXPECT_TRUE(contains(said, "damaged again")) << said;
}

TEST_F(CacheDamage, ThatCannotBeMendedIsAnErrorWhenTheTextHasChanged) {
  open(options_);
  const auto corpus = open(options_);
  const fs::path file = corpus->cache_path() / "ids.bin";
  std::string bytes = read_file(file);
  for (char& byte : bytes) byte = static_cast<char>(byte ^ 4);
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary) << bytes;
  write("train.src", sentences(1500, 99));
  EXPECT_TRUE(contains(failure(ExitCode::kBadData, [&] { corpus->src(0); }), "changed"));
}

TEST_F(CacheDamage, OfLengthsIsFoundBeforeAnotherOrderIsMadeOfThem) {
  const auto whole = ids();
  DataOptions other = options_;
  other.train_weights = {2.0};
  const auto folder = open(options_)->cache_path();
  for (const char* name : {"src_lens.bin", "starts.bin"}) {
    std::string bytes = read_file(folder / name);
    bytes[bytes.size() / 2] ^= 1;
    overwrite(folder / name, bytes);
    ::testing::internal::CaptureStderr();
    const auto corpus = open(other);  // an order that is not there yet, or not any more
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(count(said, std::string(name) + " is damaged"), 1u) << said;
    EXPECT_EQ(corpus->num_pairs(), 3000);
    EXPECT_EQ(ids(), whole);
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == ".head") fs::remove(entry.path());
    }
  }
}

TEST(CheckedFiles, GiveNothingThatIsNotVerified) {
  const fs::path path =
      fs::temp_directory_path() / ("stretto_checked_" + std::to_string(::getpid()));
  std::string bytes(3 * kChecksumBlockBytes + 17, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31 + i / 256);
  BlockSums sums;
  for (size_t at = 0; at < bytes.size(); at += 1000) {
    sums.update(bytes.data() + at, std::min<size_t>(1000, bytes.size() - at));
  }
  const auto expected = sums.finish();
  ASSERT_EQ(expected.size(), 4u);
  std::ofstream(path, std::ios::binary) << bytes;
  {
    const CheckedFile file(path, expected);
    EXPECT_EQ(std::string_view(file.bytes(0, bytes.size()), bytes.size()), bytes);
    EXPECT_EQ(file.bytes(1, bytes.size()), nullptr);
    EXPECT_EQ(file.bytes(bytes.size() + 1, 0), nullptr);
    EXPECT_EQ(file.elements<uint64_t>(UINT64_MAX / 8, 1), nullptr);
    EXPECT_EQ(file.elements<uint64_t>(0, UINT64_MAX / 8), nullptr);
    EXPECT_NE(file.elements<uint32_t>(kChecksumBlockBytes / 4 - 1, 2), nullptr);
    EXPECT_TRUE(file.is_whole(1));
    EXPECT_TRUE(file.is_whole(8));
  }
  bytes[kChecksumBlockBytes] ^= 1;
  std::ofstream(path, std::ios::binary) << bytes;
  {
    const CheckedFile file(path, expected);
    EXPECT_NE(file.bytes(0, kChecksumBlockBytes), nullptr);
    EXPECT_EQ(file.bytes(kChecksumBlockBytes - 1, 2), nullptr);
    EXPECT_EQ(file.bytes(kChecksumBlockBytes, 1), nullptr);
    EXPECT_NE(file.bytes(2 * kChecksumBlockBytes, 1), nullptr);
    EXPECT_FALSE(file.is_whole(2));
  }
  fs::resize_file(path, bytes.size() - 18);
  EXPECT_EQ(CheckedFile(path, expected).bytes(0, 1), nullptr) << "a block is missing";
  fs::resize_file(path, 0);
  EXPECT_NE(CheckedFile(path, {}).bytes(0, 0), nullptr);
  EXPECT_TRUE(CheckedFile(path, {}).is_whole(2));
  fs::remove(path);
}

}  // namespace
}  // namespace stretto::data
