#include "report/tensorboard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "report/crc32c.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::report {
namespace {

namespace fs = std::filesystem;

TEST(Crc32c, AgreesWithTheKnownAnswersOfRfc3720) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(Crc32c, IsMaskedAsTFRecordFilesDo) {
  // The length 24 as eight bytes; TensorBoard's own masked_crc32c gives the same.
  EXPECT_EQ(masked_crc32c(std::string("\x18\0\0\0\0\0\0\0", 8)), 0x224B7FA3u);
}

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

/// The payloads of a TFRecord file; fails the test when a length or a checksum is wrong.
std::vector<std::string> records_of(const std::string& file) {
  std::vector<std::string> records;
  std::string_view rest = file;
  while (!rest.empty()) {
    if (rest.size() < 16) {
      ADD_FAILURE() << "torn record";
      break;
    }
    const uint64_t length = little_endian(rest.substr(0, 8));
    EXPECT_EQ(little_endian(rest.substr(8, 4)), masked_crc32c(rest.substr(0, 8)));
    const std::string_view data = rest.substr(12, length);
    EXPECT_EQ(little_endian(rest.substr(12 + length, 4)), masked_crc32c(data));
    records.emplace_back(data);
    rest.remove_prefix(16 + length);
  }
  return records;
}

/// One field of a Protocol Buffers message.
struct WireField {
  int number = 0;
  uint64_t value = 0;      ///< varint, fixed32, fixed64
  std::string_view bytes;  ///< length-delimited
};

uint64_t take_varint(std::string_view* rest) {
  uint64_t value = 0;
  for (int shift = 0; !rest->empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(rest->front());
    rest->remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) break;
  }
  return value;
}

std::vector<WireField> parse(std::string_view rest) {
  std::vector<WireField> fields;
  while (!rest.empty()) {
    const uint64_t key = take_varint(&rest);
    WireField field{.number = static_cast<int>(key >> 3)};
    size_t size = 0;
    switch (key & 7) {
      case 0:
        field.value = take_varint(&rest);
        break;
      case 1:
        size = 8;
        break;
      case 2:
        size = take_varint(&rest);
        break;
      case 5:
        size = 4;
        break;
      default:
        ADD_FAILURE() << "wire type " << (key & 7);
        return fields;
    }
    field.bytes = rest.substr(0, size);
    if ((key & 7) == 1 || (key & 7) == 5) field.value = little_endian(field.bytes);
    rest.remove_prefix(size);
    fields.push_back(field);
  }
  return fields;
}

std::optional<WireField> find(std::string_view message, std::vector<int> path) {
  std::optional<WireField> found;
  for (const int number : path) {
    const auto fields = parse(message);
    const auto at = std::find_if(fields.begin(), fields.end(),
                                 [&](const auto& field) { return field.number == number; });
    if (at == fields.end()) return std::nullopt;
    found = *at;
    message = at->bytes;
  }
  return found;
}

class TensorBoardWriterTest : public ::testing::Test {
 protected:
  std::vector<fs::path> files() {
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(directory_)) paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    return paths;
  }

  testing::TempDir root_;
  const fs::path directory_ = root_ / "events";
};

TEST_F(TensorBoardWriterTest, WritesTheVersionThenTheSessionThenScalars) {
  {
    TensorBoardWriter writer(directory_, 41);
    writer.scalar("train/loss", 300, 2.5);
  }
  ASSERT_EQ(files().size(), 1u);
  const auto records = records_of(read_file(files()[0]));
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(find(records[0], {3})->bytes, "brain.Event:2");
  EXPECT_EQ(find(records[1], {2})->value, 42u);    // step
  EXPECT_EQ(find(records[1], {7, 1})->value, 1u);  // session_log.status = START
  EXPECT_EQ(find(records[2], {2})->value, 300u);
  EXPECT_EQ(find(records[2], {5, 1, 1})->bytes, "train/loss");
  EXPECT_EQ(std::bit_cast<float>(static_cast<uint32_t>(find(records[2], {5, 1, 2})->value)), 2.5f);
  EXPECT_GT(std::bit_cast<double>(find(records[2], {1})->value), 1.6e9);  // wall time
}

TEST_F(TensorBoardWriterTest, WritesTextForTheTextPlugin) {
  {
    TensorBoardWriter writer(directory_, 0);
    writer.text("config", 0, "# A title\xff");
  }
  const auto records = records_of(read_file(files()[0]));
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(find(records[2], {5, 1, 9, 1, 1})->bytes, "text");
  EXPECT_EQ(find(records[2], {5, 1, 8, 1})->value, 7u);        // DT_STRING
  EXPECT_EQ(find(records[2], {5, 1, 8, 2, 2, 1})->value, 1u);  // shape [1]
  EXPECT_EQ(find(records[2], {5, 1, 8, 8})->bytes, "# A title\uFFFD");
}

TEST_F(TensorBoardWriterTest, FlushMakesRecordsVisible) {
  TensorBoardWriter writer(directory_, 0);
  for (int step = 1; step <= 5; ++step) writer.scalar("x", step, step);
  writer.flush();
  EXPECT_EQ(records_of(read_file(files()[0])).size(), 7u);
}

TEST_F(TensorBoardWriterTest, AResumeWithinTheSameSecondSortsAfterTheFirstSession) {
  { const TensorBoardWriter first(directory_, 0); }
  const fs::path first = files()[0];
  { const TensorBoardWriter second(directory_, 10); }
  ASSERT_EQ(files().size(), 2u);
  EXPECT_EQ(files()[0], first);
  EXPECT_EQ(find(records_of(read_file(files()[1]))[1], {2})->value, 11u);
}

TEST_F(TensorBoardWriterTest, AFolderThatCannotBeMadeIsAnInputOutputError) {
  testing::failure(ExitCode::kIo, [&] { const TensorBoardWriter writer("/dev/null/events", 0); });
}

}  // namespace
}  // namespace stretto::report
