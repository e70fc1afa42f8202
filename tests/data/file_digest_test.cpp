#include "data/file_digest.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "data/content_hash.h"
#include "tests/base/temp_dir.h"
#include "tests/data/memory_stream.h"
#include "tests/data/settled.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

FileDigest digest_of_text(const std::string& text, size_t most_blocks = kMostDigestBlocks,
                          size_t part = 7) {
  DigestBuilder builder(most_blocks);
  for (size_t at = 0; at < text.size(); at += part) {
    builder.update(text.data() + at, std::min(part, text.size() - at));
  }
  return builder.finish();
}

std::string lines_from(int first, int count, const std::string& ending = "\n") {
  std::string text;
  for (int i = first; i < first + count; ++i) text += "line " + std::to_string(i) + ending;
  return text;
}

std::string difference(const std::string& before, const std::string& now,
                       size_t most_blocks = kMostDigestBlocks) {
  testing::MemoryStream bytes(now);
  return first_difference(digest_of_text(before, most_blocks), bytes);
}

TEST(FileDigestOfText, CountsAndHashesContentWhateverItsPartsAre) {
  const std::string text = lines_from(1, 40) + std::string(10'000, 'x') + "\nthe end";
  const auto digest = digest_of_text(text);
  EXPECT_EQ(digest.bytes, text.size());
  EXPECT_EQ(digest.lines, 42u);
  EXPECT_EQ(digest.hash, xxh3_64(text));
  EXPECT_EQ(digest.pieces, 40u + 3 + 1);
  EXPECT_EQ(digest.blocks.size(), digest.pieces);
  for (const size_t part : {1, 4096, 100'000}) {
    EXPECT_EQ(digest_of_text(text, kMostDigestBlocks, part), digest) << part;
  }
  EXPECT_EQ(digest_of_text("").lines, 0u);
  EXPECT_EQ(digest_of_text("\n\n").lines, 2u);
}

TEST(FileDigestOfText, HasABoundedNumberOfBlocks) {
  for (int count = 1; count < 70; ++count) {
    const auto whole = digest_of_text(lines_from(1, count));
    const auto digest = digest_of_text(lines_from(1, count), 8);
    EXPECT_LE(digest.blocks.size(), 8u);
    EXPECT_EQ(digest.pieces, static_cast<uint64_t>(count));
    EXPECT_EQ(coarsened(whole, digest.blocks.size()).blocks.size(), digest.blocks.size());
    auto coarse = coarsened(whole, 8);
    if (coarse.pieces_per_block == digest.pieces_per_block) {
      EXPECT_EQ(coarse, digest) << "made at once, or made coarser: " << count << " lines";
    }
    EXPECT_EQ(coarsened(whole, 1).blocks.size(), 1u);
  }
}

TEST(FileDigestOfBytes, HasNoLinesAndNamesBytes) {
  const auto digest_of_bytes = [](const std::string& bytes, size_t part) {
    DigestBuilder builder(kMostDigestBlocks, DataKind::kBytes);
    for (size_t at = 0; at < bytes.size(); at += part) {
      builder.update(bytes.data() + at, std::min(part, bytes.size() - at));
    }
    return builder.finish();
  };
  const std::string before = lines_from(1, 2000);
  const auto digest = digest_of_bytes(before, 77);
  EXPECT_EQ(digest.lines, 0u);
  EXPECT_EQ(digest.hash, xxh3_64(before));
  EXPECT_EQ(digest.pieces, (before.size() + 4095) / 4096);
  EXPECT_EQ(digest_of_bytes(before, 100'000), digest);
  const auto said = [&](const std::string& now) {
    testing::MemoryStream bytes(now);
    return first_difference(digest, bytes, DataKind::kBytes);
  };
  EXPECT_EQ(said(before), "");
  auto now = before;
  now[5000] = 'X';
  EXPECT_EQ(said(now), "first differs in bytes 4,097 to 8,192");
  EXPECT_EQ(said(before.substr(0, 8192)), "ends after byte 8,192 (8,192 bytes now, " +
                                              with_thousands(std::ssize(before)) + " then)");
  const std::string whole = before.substr(0, 8192);
  const auto digest_of_whole = digest_of_bytes(whole, 4096);
  testing::MemoryStream more(whole + "x");
  EXPECT_EQ(first_difference(digest_of_whole, more, DataKind::kBytes),
            "has more at its end, from byte 8,193 on (8,193 bytes now, 8,192 then)");
}

TEST(FileDigestOfText, SurvivesJson) {
  auto digest = digest_of_text(lines_from(1, 100), 16);
  digest.stored_hash = 7;
  EXPECT_EQ(digest_from_json(nlohmann::json::parse(digest_to_json(digest).dump())), digest);
  for (const char* key :
       {"bytes", "lines", "hash", "stored_hash", "pieces", "pieces_per_block", "blocks"}) {
    auto json = digest_to_json(digest);
    json.erase(key);
    EXPECT_ANY_THROW(digest_from_json(json)) << key;
  }
  auto json = digest_to_json(digest);
  for (const auto& [key, value] : {std::pair<const char*, nlohmann::json>{"pieces_per_block", 0},
                                   {"pieces", 7},
                                   {"hash", "12"},
                                   {"blocks", "0123456789abcdeg"}}) {
    auto other = json;
    other[key] = value;
    EXPECT_ANY_THROW(digest_from_json(other)) << key;
  }
}

TEST(FirstDifference, IsTheLineOfAShortFile) {
  const std::string text = lines_from(1, 10);
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string now = text;
    return difference(text, now.replace(now.find(from), from.size(), to));
  };
  EXPECT_EQ(difference(text, text), "");
  EXPECT_EQ(changed("line 3\n", "line three\n"), "first differs in line 3");
  EXPECT_EQ(changed("line 3\n", ""), "first differs in line 3 (9 lines now, 10 then)");
  EXPECT_EQ(changed("line 3\n", "line 3\nand\n"),
            "first differs in line 4 (11 lines now, 10 then)");
  EXPECT_EQ(changed("line 1\n", "\nline 1\n"), "first differs in line 1 (11 lines now, 10 then)");
  EXPECT_EQ(difference(text, text + "more\n"),
            "has more at its end, from line 11 on (11 lines now, 10 then)");
  EXPECT_EQ(difference(text, lines_from(1, 9)), "ends after line 9 (9 lines now, 10 then)");
  EXPECT_EQ(difference(text, text.substr(0, text.size() - 1)), "first differs in line 10");
  EXPECT_EQ(difference(text, ""), "ends after line 0 (0 lines now, 10 then)");
  EXPECT_EQ(difference("", "a\n"), "has more at its end, from line 1 on (1 line now, 0 then)");
  EXPECT_EQ(difference("a\nb\n", "b\na\n"), "first differs in line 1");
}

TEST(FirstDifference, IsARangeOfALongFile) {
  const std::string text = lines_from(1, 1000);
  const auto digest = digest_of_text(text, 8);
  const auto per_block = digest.pieces_per_block;
  ASSERT_EQ(per_block, 128u);
  std::string now = text;
  now.replace(now.find("line 300\n"), 4, "LINE");
  EXPECT_EQ(difference(text, now, 8), "first differs in lines 257 to 384");
  EXPECT_EQ(difference(text, text + "more\n", 8),
            "has more at its end, from line 1,001 on (1,001 lines now, 1,000 then)");
  EXPECT_EQ(difference(text, lines_from(1, 300), 8),
            "first differs in line 257 or behind it (300 lines now, 1,000 then)");
  EXPECT_EQ(difference(text, lines_from(1, 256), 8),
            "ends after line 256 (256 lines now, 1,000 then)");
  EXPECT_EQ(difference(text, text, 8), "");
}

TEST(FirstDifference, IsARangeOfBytesInALongLine) {
  std::string text(20'000, 'x');
  const std::string before = text;
  text[9000] = 'y';
  EXPECT_EQ(difference(before, text),
            "first differs in line 1, bytes 8,193 to 12,288 of the content");
}

class DigestOfFile : public ::testing::Test {
 protected:
  std::string gzipped(const std::string& name, const std::string& text, int level) {
    const auto path = (folder_ / name).string();
    const auto file = gzopen(path.c_str(), ("wb" + std::to_string(level)).c_str());
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
    return path;
  }
  /// Changes what a file of the memory says, and gives it the checksum of that.
  void remember_instead(const fs::path& memory, const std::string& from, const std::string& to) {
    constexpr size_t kChecksumLine = 17;
    std::string text = read_file(memory);
    text.resize(text.size() - kChecksumLine);
    ASSERT_NE(text.find(from), std::string::npos) << text;
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
      text.replace(at, from.size(), to);
    }
    write_file_atomic(memory, text + hex64(xxh3_64(text)) + "\n");
  }

  testing::TempDir folder_;
};

TEST_F(DigestOfFile, KnowsMovedAndRepackedContent) {
  const std::string text = lines_from(1, 500);
  const auto plain = folder_.write("a.txt", text), moved = folder_.write("b/c.txt", text);
  const auto packed = gzipped("a.gz", text, 1), packed_anew = gzipped("b.gz", text, 9);
  ASSERT_NE(read_file(packed), read_file(packed_anew));
  const auto digest = digest_of(plain), of_packed = digest_of(packed);
  EXPECT_EQ(digest.stored_hash, digest.hash);
  EXPECT_EQ(of_packed.hash, digest.hash);
  EXPECT_NE(of_packed.stored_hash, digest.hash);
  for (const auto& path : {plain, moved, packed, packed_anew}) {
    EXPECT_TRUE(holds(digest, plain, path)) << path;
    EXPECT_TRUE(holds(of_packed, packed, path)) << path;
  }
  // The same bytes under another ending are another content.
  fs::copy(packed, folder_ / "packed.txt");
  EXPECT_FALSE(holds(of_packed, packed, (folder_ / "packed.txt").string()));
  folder_.write("a.txt", text + "more");
  EXPECT_FALSE(holds(digest, plain, plain));
  EXPECT_FALSE(holds(of_packed, packed, plain));
}

TEST_F(DigestOfFile, IsRememberedOnceTheFileHasSettled) {
  const auto path = folder_.write("long.txt", lines_from(1, 200'000));
  ASSERT_GT(fs::file_size(path), 1u << 20);
  const DigestSetting setting{.memory_dir = folder_ / "hashes"};
  const auto digest = digest_of(path, setting);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "hashes"), {}), 0) << "too new";
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1));
  digest_of(path, setting);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "hashes"), {}), 0)
      << "its status changed a moment ago";
  test::let_settle({path});
  EXPECT_EQ(digest_of(path, setting), digest);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "hashes"), {}), 2);
  // What says so is the memory: it is given another hash than the content has.
  FileDigest other = digest;
  other.hash = other.stored_hash = digest.hash + 1;
  const std::vector<fs::path> memories{fs::directory_iterator(folder_ / "hashes"),
                                       fs::directory_iterator()};
  for (const auto& memory : memories) {
    remember_instead(memory, hex64(digest.hash), hex64(other.hash));
  }
  EXPECT_EQ(digest_of(path, setting), other);
  EXPECT_TRUE(holds(other, path, path, setting));
  EXPECT_EQ(content_hashes({path}, folder_ / "hashes", 1).front(), other.hash);
  EXPECT_EQ(digest_of(path), digest);
  // A damaged memory is none.
  for (const auto& memory : memories) {
    auto text = read_file(memory);
    text[text.size() / 2] ^= 1;
    write_file_atomic(memory, text);
  }
  EXPECT_EQ(digest_of(path, setting), digest);
}

TEST_F(DigestOfFile, IsMadeAnewOfAnEditWhoseTimeWasPutBack) {
  const auto path = folder_.write("long.txt", lines_from(1, 200'000));
  test::let_settle({path});
  const DigestSetting setting{.memory_dir = folder_ / "hashes"};
  const auto digest = digest_of(path, setting);
  ASSERT_EQ(std::distance(fs::directory_iterator(folder_ / "hashes"), {}), 2);
  const auto time = fs::last_write_time(path);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // longer than a tick of the clock
  std::fstream(path, std::ios::in | std::ios::out) << "LINE";
  fs::last_write_time(path, time);
  EXPECT_FALSE(holds(digest, path, path, setting));
  EXPECT_NE(content_hashes({path}, folder_ / "hashes", 1).front(), digest.hash);
  EXPECT_NE(digest_of(path, setting), digest);
  EXPECT_EQ(digest_of(path, setting), digest_of(path));
}

TEST_F(DigestOfFile, LeavesNothingOfSmallFiles) {
  const auto path = folder_.write("a.txt", "a\n");
  test::let_settle({path});
  digest_of(path, {.memory_dir = folder_ / "hashes"});
  EXPECT_FALSE(fs::exists(folder_ / "hashes"));
}

TEST_F(DigestOfFile, OfSeveralIsThatOfEach) {
  const auto a = folder_.write("a", "a\n"), b = folder_.write("b", "b\n");
  const auto digests = digests_of({a, b, a}, {.threads = 3});
  EXPECT_EQ(digests, (std::vector<FileDigest>{digest_of(a), digest_of(b), digest_of(a)}));
  EXPECT_THROW(digests_of({a, (folder_ / "none").string()}, {.threads = 2}), Error);
}

}  // namespace
}  // namespace stretto::data
