#include "store/torch_file.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/base/failure.h"
#include "tests/base/held_memory.h"
#include "tests/base/temp_dir.h"
#include "tests/store/pickle_writer.h"

namespace stretto::store {
namespace {

using stretto::testing::failure;
using stretto::testing::PickleWriter;
using stretto::testing::zipped;

std::string floats(const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

const std::string kSix = floats({0, 1, 2, 3, 4, 5});

std::string matrix_and_transpose() {
  PickleWriter writer;
  writer.raw("}(").text("w").tensor("0", 6, 0, {2, 3}, {3, 1});
  writer.text("t").tensor("0", 6, 0, {3, 2}, {1, 3});
  writer.text("part").tensor("0", 6, 4, {2}, {1});
  return writer.raw("u.").bytes;
}

void expect_matrix_and_transpose(const TorchFile& file) {
  ASSERT_EQ(file.tensors().size(), 3U);
  EXPECT_EQ(file.tensors()[0].name, "w");
  EXPECT_EQ(file.tensors()[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(file.tensors()[0].bytes, kSix);
  EXPECT_EQ(file.tensors()[1].bytes, floats({0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(file.tensors()[2].bytes, floats({4, 5}));
}

std::string refused_file(const std::string& bytes) {
  return failure(ExitCode::kBadData, [&] { TorchFile(bytes, "f.bin"); }).what();
}

void expect_file_refused(const std::string& bytes, const std::string& reason) {
  const std::string what = refused_file(bytes);
  EXPECT_NE(what.find(reason), std::string::npos) << "wanted: " << reason << "\ngot: " << what;
}

TEST(TorchFile, ReadsAZipArchive) {
  expect_matrix_and_transpose(TorchFile(zipped({{"model/data.pkl", matrix_and_transpose()},
                                                {"model/byteorder", "little"},
                                                {"model/data/0", kSix},
                                                {"model/version", "3\n"}}),
                                        "f.bin"));
}

TEST(TorchFile, ReadsAnUnpackedFolder) {
  const stretto::testing::TempDir dir;
  dir.write("data.pkl", matrix_and_transpose());
  dir.write("data/0", kSix);
  expect_matrix_and_transpose(TorchFile(dir.path()));
}

TEST(TorchFile, AFolderIsNotLeft) {
  const stretto::testing::TempDir dir;
  dir.write("secret", kSix);
  PickleWriter writer;
  writer.raw("}").text("w").tensor("../../secret", 6, 0, {6}, {1}).raw("s.");
  dir.write("in/data.pkl", writer.bytes);
  const auto error = failure(ExitCode::kBadData, [&] { TorchFile file(dir / "in"); });
  EXPECT_NE(std::string(error.what()).find("no name of a storage"), std::string::npos);
}

// What PyTorch 2.11 wrote of {a: matrix, t: its transpose, h: bf16, i: integers, s: a part of a,
// e: nothing, p: a parameter}: seeds of the fuzzer too.
TEST(TorchFile, ReadsWhatPyTorchWrites) {
  const std::filesystem::path seeds = STRETTO_SOURCE_DIR "/tests/fuzz/corpus/pickle_fuzz";
  for (const char* name : {"zip", "old"}) {
    const TorchFile file(seeds / name);
    ASSERT_EQ(file.tensors().size(), 7U) << name;
    EXPECT_EQ(file.tensors()[0].bytes, floats({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
    EXPECT_EQ(file.tensors()[1].name, "t");
    EXPECT_EQ(file.tensors()[1].shape, (std::vector<int64_t>{4, 3}));
    EXPECT_EQ(file.tensors()[1].bytes, floats({0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
    EXPECT_EQ(file.tensors()[2].bytes, std::string("\x80\x3f\x80\x3f", 4));
    EXPECT_EQ(file.tensors()[3].dtype, DType::kI64);
    EXPECT_EQ(file.tensors()[4].bytes, floats({5, 6, 9, 10}));
    EXPECT_EQ(file.tensors()[5].shape, (std::vector<int64_t>{0, 3}));
    EXPECT_EQ(file.tensors()[6].bytes, floats({1, 1}));
  }
}

// As torch.save wrote before 1.6.
std::string old_file(const std::string& storages, const std::vector<std::string>& keys_of = {"0"},
                     const std::string& dict = matrix_and_transpose()) {
  const std::string magic("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.", 21);
  const std::string sizes = PickleWriter().raw("}").text("little_endian").raw("\x88s.").bytes;
  PickleWriter keys;
  keys.raw("](");
  for (const auto& key : keys_of) keys.text(key);
  return magic + sizes + dict + keys.raw("e.").bytes + storages;
}

TEST(TorchFile, ReadsTheFormatBeforeZip) {
  const std::string count("\x06\0\0\0\0\0\0\0", 8);
  expect_matrix_and_transpose(TorchFile(old_file(count + kSix), "f.bin"));
  expect_file_refused(old_file(count + kSix.substr(1)), "ends too early");
  expect_file_refused(old_file(std::string(8, '\xff') + kSix), "ends too early");
  expect_file_refused(old_file("abc"), "ends too early");
}

// The checkpoint of a training program: tensors of its optimizer have storages too.
TEST(TorchFile, ReadsTheWeightsOfACheckpointInTheFormatBeforeZip) {
  PickleWriter dict;
  dict.raw("}(").text("best_prec1").raw("G").raw(std::string(8, '\0'));
  dict.text("optimizer").raw("}").integer(0).tensor("5", 3, 0, {3}, {1}, "HalfStorage").raw("s");
  dict.text("state_dict").raw("}").text("module.w").tensor("8", 6, 0, {2, 3}, {3, 1}).raw("su.");
  const std::string storages =
      std::string("\x03\0\0\0\0\0\0\0abcdef", 14) + std::string("\x06\0\0\0\0\0\0\0", 8) + kSix;
  const TorchFile file(old_file(storages, {"5", "8"}, dict.bytes), "f.th");
  ASSERT_EQ(file.tensors().size(), 1U);
  EXPECT_EQ(file.tensors()[0].name, "module.w");
  EXPECT_EQ(file.tensors()[0].bytes, kSix);
  expect_file_refused(old_file(storages, {"5", "9"}, dict.bytes), "its pickle does not have");
}

TEST(TorchFile, APlainPickleNamesWhatItAsksFor) {
  expect_file_refused(PickleWriter().global("posix", "system").bytes, "posix.system");
  expect_file_refused(PickleWriter().integer(3).raw(".").bytes, "holds a number");
}

TEST(TorchFile, DamagedArchivesAreRefused) {
  const std::string dict = matrix_and_transpose();
  expect_file_refused("", "neither");
  expect_file_refused("PK\x03\x04 nothing", "zip archive");
  expect_file_refused(zipped({{"m/data/0", kSix}}), "no data.pkl");
  expect_file_refused(zipped({{"m/data.pkl", dict}}), "`w` has no storage");
  expect_file_refused(zipped({{"m/data.pkl", dict}, {"m/data/0", "abc"}}), "shorter");
  expect_file_refused(zipped({{"m/data.pkl", dict}, {"m/byteorder", "big"}, {"m/data/0", kSix}}),
                      "little-endian");
  expect_file_refused(zipped({{"m/data.pkl", dict}, {"n/data.pkl", dict}}), "stands twice");
  expect_file_refused(zipped({{"m/code/a.py", "x"}, {"m/data.pkl", dict}}), "TorchScript");
}

TEST(TorchFile, AZipBombIsRefused) {
  PickleWriter writer;
  writer.raw("}").text("w").tensor("0", 1 << 20, 0, {1 << 20}, {1}).raw("s.");
  expect_file_refused(
      zipped({{"m/data.pkl", writer.bytes}, {"m/data/0", std::string(4 << 20, '\0')}}, true),
      "compressed");
}

TEST(TorchFile, CopiesAreBounded) {
  PickleWriter writer;
  writer.raw("}(");
  for (const char* name : {"a", "b", "c"}) writer.text(name).tensor("0", 6, 0, {3, 2}, {1, 3});
  expect_file_refused(zipped({{"m/data.pkl", writer.raw("u.").bytes}, {"m/data/0", kSix}}),
                      "share one storage");
}

// Views take no memory of their own, but each of them may become another type or a part of a
// matrix.
TEST(TorchFile, ManyNamesOfOneStorageAreRefused) {
  const auto file = [](int64_t count) {
    PickleWriter writer;
    writer.raw("}(");
    for (int64_t i = 0; i < count; ++i) {
      writer.text("w" + std::to_string(i)).tensor("0", 6, 0, {6}, {1});
    }
    return zipped({{"m/data.pkl", writer.raw("u.").bytes}, {"m/data/0", kSix}});
  };
  EXPECT_EQ(TorchFile(file(8), "f.bin").tensors().size(), 8U);
  expect_file_refused(file(9), "more than 8 times the bytes of all storages");
}

TEST(TorchFile, AStorageStandsOnceInTheFormatBeforeZip) {
  const std::string count("\x06\0\0\0\0\0\0\0", 8);
  expect_file_refused(old_file(count + kSix + count + kSix, {"0", "0"}), "stands twice");
}

TEST(TorchFile, MembersTakeNoMoreMemoryThanTheirBytes) {
  std::vector<std::pair<std::string, std::string>> members{{"m/data.pkl", "\x80\x02}."}};
  for (int i = 0; i < 500; ++i) members.emplace_back("m/data/" + std::to_string(i), "");
  const std::string bytes = zipped(members);
  const size_t before = stretto::testing::held_memory();
  const TorchFile file(bytes, "f.bin");
  EXPECT_LT(stretto::testing::held_memory() - before, size_t{16} << 20);
}

}  // namespace
}  // namespace stretto::store
