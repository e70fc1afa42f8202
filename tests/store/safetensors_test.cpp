#include "store/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>

#include "base/error.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::store {
namespace {

using Metadata = std::map<std::string, std::string>;

// A file of this header, with the length in front, and `data`.
std::string file_of(const std::string& header, const std::string& data = "") {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return bytes + header + data;
}

std::string refused_header(const std::string& bytes) {
  try {
    parse_safetensors(bytes, "f.safetensors", nullptr);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadData);
    EXPECT_TRUE(std::string(error.what()).starts_with("f.safetensors:")) << error.what();
    return error.what();
  }
  return "";
}

// Refused, and for the stated reason.
void expect_refused(const std::string& bytes, const std::string& reason) {
  EXPECT_NE(refused_header(bytes).find(reason), std::string::npos)
      << "wanted: " << reason << "\ngot: " << refused_header(bytes);
}

std::string one_tensor(const std::string& dtype, const std::string& shape,
                       const std::string& offsets) {
  return R"({"t":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}}";
}

TEST(Safetensors, EveryDtypeComesBack) {
  const stretto::testing::TempDir dir;
  const std::string data(16, 'x');
  std::vector<TensorView> tensors;
  for (const DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64,
                            DType::kI32, DType::kI16, DType::kI8, DType::kU8, DType::kBool}) {
    const auto n = 16 / size_of(dtype);
    tensors.push_back({std::string(name_of(dtype)), dtype, {n}, data});
  }
  tensors.push_back({"scalar", DType::kF32, {}, std::string_view(data).substr(0, 4)});
  tensors.push_back({"empty", DType::kF32, {3, 0}, ""});
  tensors.push_back({"naïve \"name\"\\\n", DType::kU8, {1}, std::string_view(data).substr(0, 1)});
  write_safetensors(dir / "f", tensors, {{"key", "välue"}});
  const SafetensorsFile file(dir / "f");
  EXPECT_EQ(file.metadata(), (Metadata{{"key", "välue"}}));
  ASSERT_EQ(file.tensors().size(), tensors.size());
  for (const auto& tensor : tensors) {
    const TensorView* found = file.find(tensor.name);
    ASSERT_NE(found, nullptr) << tensor.name;
    EXPECT_EQ(found->dtype, tensor.dtype);
    EXPECT_EQ(found->shape, tensor.shape);
    EXPECT_EQ(found->bytes, tensor.bytes);
  }
  EXPECT_EQ(file.find("none"), nullptr);
  EXPECT_EQ(file.find("scalar")->num_elements(), 1);
  EXPECT_EQ(file.find("empty")->num_elements(), 0);
}

TEST(Safetensors, EveryTensorIsAlignedToItsElements) {
  const stretto::testing::TempDir dir;
  const std::string data(24, 'x');
  write_safetensors(dir / "f",
                    {{"a", DType::kU8, {3}, std::string_view(data).substr(0, 3)},
                     {"b", DType::kF64, {3}, data},
                     {"c", DType::kF16, {5}, std::string_view(data).substr(0, 10)},
                     {"d", DType::kF64, {1}, std::string_view(data).substr(0, 8)}},
                    {});
  const SafetensorsFile file(dir / "f");
  EXPECT_EQ(file.header().size() % 64, 0u);
  std::vector<std::string> order;
  for (const auto& tensor : file.tensors()) {
    const auto offset = tensor.bytes.data() - file.header().data();
    EXPECT_EQ(offset % size_of(tensor.dtype), 0) << tensor.name;
    order.push_back(tensor.name);
  }
  EXPECT_EQ(order, (std::vector<std::string>{"b", "d", "c", "a"}));
}

TEST(Safetensors, ChunksAreTheFile) {
  const stretto::testing::TempDir dir;
  const std::vector<TensorView> tensors{{"a", DType::kU8, {3}, "abc"}, {"b", DType::kU8, {1}, "d"}};
  write_safetensors(dir / "f", tensors, {{"k", "v"}});
  std::string header, joined;
  for (const auto chunk : safetensors_chunks(tensors, {{"k", "v"}}, header)) joined += chunk;
  EXPECT_EQ(joined, read_file(dir / "f"));
}

TEST(Safetensors, StreamedTensorsMakeTheSameFile) {
  const stretto::testing::TempDir dir;
  const std::vector<TensorView> tensors{{"a", DType::kU8, {3}, "abc"},
                                        {"b", DType::kF32, {1}, "wide"}};
  write_safetensors(dir / "whole", tensors, {{"k", "v"}});
  std::vector<StreamedTensor> streamed{{.tensor = tensors[0]}, {.tensor = tensors[1]}};
  streamed[1].tensor.bytes = {};
  streamed[1].make = [] { return std::string("wide"); };
  stream_safetensors(dir / "streamed", streamed, {{"k", "v"}});
  EXPECT_EQ(read_file(dir / "streamed"), read_file(dir / "whole"));
  streamed[1].make = [] { return std::string("narrow"); };
  EXPECT_THROW(stream_safetensors(dir / "other", streamed, {}), std::invalid_argument);
}

TEST(Safetensors, AFileWithoutTensorsIsFine) {
  const stretto::testing::TempDir dir;
  write_safetensors(dir / "f", {}, {});
  EXPECT_TRUE(SafetensorsFile(dir / "f").tensors().empty());
  EXPECT_EQ(refused_header(file_of("{}")), "");
  EXPECT_EQ(refused_header(file_of("{}      ")), "");
  EXPECT_EQ(refused_header(file_of(R"({"__metadata__":null})")), "");
}

TEST(Safetensors, MistakesOfTheCallerAreRefusedBeforeAnythingIsWritten) {
  const stretto::testing::TempDir dir;
  const std::vector<std::vector<TensorView>> wrong{
      {{"a", DType::kF32, {2}, "1234"}},
      {{"a", DType::kF32, {-1}, "1234"}},
      {{"a", DType::kF32, {INT64_MAX, INT64_MAX}, "1234"}},
      {{"a", DType::kF32, {1}, "1234"}, {"a", DType::kF32, {1}, "1234"}},
      {{"__metadata__", DType::kF32, {1}, "1234"}},
      {{"\xff", DType::kF32, {1}, "1234"}}};
  for (const auto& tensors : wrong) {
    EXPECT_THROW(write_safetensors(dir / "f", tensors, {}), std::invalid_argument);
    EXPECT_FALSE(std::filesystem::exists(dir / "f"));
  }
}

TEST(Safetensors, AnAbsentFileIsAUsageError) {
  stretto::testing::failure(ExitCode::kUsage,
                            [&] { SafetensorsFile file("/nonexistent.safetensors"); });
}

// One test for each error kind of the reference implementation.
TEST(SafetensorsRefuses, HeaderTooSmall) {
  for (size_t size = 0; size < 8; ++size) expect_refused(std::string(size, '\0'), "shorter than");
}

TEST(SafetensorsRefuses, HeaderTooLarge) {
  expect_refused(std::string("\x01\xe1\xf5\x05\0\0\0\0", 8), "100 MB");  // 100,000,001
  expect_refused(std::string(8, '\xff') + "{}", "100 MB");
}

TEST(SafetensorsRefuses, InvalidHeaderLength) {
  expect_refused(file_of("{}").substr(0, 9), "ends inside the header");
  expect_refused(std::string("\x80\0\0\0\0\0\0\0{}", 10), "ends inside the header");
}

TEST(SafetensorsRefuses, InvalidHeader) {
  expect_refused(file_of(std::string("{\"\xff\":1}")), "UTF-8");
}

TEST(SafetensorsRefuses, InvalidHeaderStart) {
  expect_refused(file_of(""), "not a JSON object");
  expect_refused(file_of(" {}"), "not a JSON object");
  expect_refused(file_of("[]"), "not a JSON object");
}

TEST(SafetensorsRefuses, InvalidHeaderDeserialization) {
  for (const char* header : {"{", "{}x", "{\"a\"}", R"({"a":1})", R"({"a":{"dtype":"F32"}})",
                             R"({"__metadata__":{"a":1}})", R"({"__metadata__":[]})"}) {
    EXPECT_NE(refused_header(file_of(header)), "") << header;
  }
  expect_refused(file_of(one_tensor("\"F33\"", "[1]", "[0,4]"), "1234"), "unknown dtype `F33`");
  expect_refused(file_of(one_tensor("3", "[1]", "[0,4]"), "1234"), "dtype");
  for (const char* shape : {"1", "[-1]", "[1.0]", "[\"1\"]", "[null]", "[9223372036854775808]",
                            "[99999999999999999999]", "{}"}) {
    expect_refused(file_of(one_tensor("\"F32\"", shape, "[0,4]"), "1234"), "shape");
  }
  for (const char* offsets : {"4", "[4]", "[0,4,4]", "[0,-4]", "[0,4.0]", "[\"0\",4]"}) {
    expect_refused(file_of(one_tensor("\"F32\"", "[1]", offsets), "1234"), "offset");
  }
}

TEST(SafetensorsRefuses, InvalidOffset) {
  const auto two = [](const std::string& a, const std::string& b) {
    return R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)" + a +
           R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)" + b + "}}";
  };
  EXPECT_EQ(refused_header(file_of(two("[0,2]", "[2,4]"), "1234")), "");
  EXPECT_EQ(refused_header(file_of(two("[2,4]", "[0,2]"), "1234")), "");
  expect_refused(file_of(two("[0,2]", "[1,3]"), "123"), "overlap before `b`");
  expect_refused(file_of(two("[0,2]", "[0,2]"), "12"), "overlap");
  expect_refused(file_of(two("[0,2]", "[3,5]"), "12345"), "a hole before `b`");
  expect_refused(file_of(two("[1,3]", "[3,5]"), "12345"), "a hole before `a`");
}

TEST(SafetensorsRefuses, TensorInvalidInfo) {
  expect_refused(file_of(one_tensor("\"F32\"", "[2]", "[0,4]"), "1234"), "do not fit its shape");
  expect_refused(file_of(one_tensor("\"F32\"", "[1]", "[4,0]"), "1234"), "do not fit its shape");
  expect_refused(file_of(one_tensor("\"F32\"", "[0]", "[0,4]"), "1234"), "do not fit its shape");
}

TEST(SafetensorsRefuses, ValidationOverflow) {
  const std::string big = std::to_string(INT64_MAX);
  expect_refused(file_of(one_tensor("\"F32\"", "[" + big + "," + big + "]", "[0,4]"), "1234"),
                 "too large");
  // 2^62 elements of 4 bytes are 2^64, which is 0 when it wraps.
  expect_refused(file_of(one_tensor("\"F32\"", "[4611686018427387904]", "[0,0]")), "too large");
  expect_refused(file_of(one_tensor("\"U8\"", "[4294967296,4294967296]", "[0,0]")), "too large");
}

TEST(SafetensorsRefuses, MetadataIncompleteBuffer) {
  expect_refused(file_of(one_tensor("\"F32\"", "[1]", "[0,4]"), "123"), "the data has 3");
  expect_refused(file_of(one_tensor("\"F32\"", "[1]", "[0,4]"), "12345"), "1 byte after");
  expect_refused(file_of("{}", "x"), "1 byte after");
  expect_refused(file_of(one_tensor("\"U8\"", "[9223372036854775807]", "[0,9223372036854775807]")),
                 "the data has 0");
}

TEST(SafetensorsRefuses, WhatTheReferenceLetsPass) {
  const std::string tensor = R"("t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  expect_refused(file_of("{" + tensor + "," + tensor + "}"), "stands twice");
  expect_refused(file_of("{\"a\":" + std::string(100, '[') + std::string(100, ']') + "}"),
                 "deeper than 64");
}

}  // namespace
}  // namespace stretto::store
