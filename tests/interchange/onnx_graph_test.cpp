#include "interchange/onnx_graph.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/file.h"
#include "interchange/stored_weights.h"
#include "tests/base/temp_dir.h"

namespace stretto::interchange {
namespace {

using stretto::testing::TempDir;

bool has_bytes(const std::string& all, const std::string& part) {
  return all.find(part) != std::string::npos;
}

TEST(OnnxGraph, HasNodesInputsAndOutputs) {
  OnnxGraph graph("g");
  graph.add_input("x", OnnxType::kFloat, {"batch", "2"});
  const auto table = graph.weight("w", {2}, [] { return bytes_of_floats({1, 2}); });
  const auto sum = graph.add("Add", {"x", table});
  const auto half = graph.add("Softmax", {sum}, {{"axis", int64_t{-1}}});
  graph.add_output("y", half, OnnxType::kFloat, {"batch", "2"});
  graph.add("Transpose", {half}, {{"perm", std::vector<int64_t>{1, 0}}, {"scale", 1.0F}});
  graph.add_metadata("labels", "[]");
  const TempDir folder;
  graph.write(folder.path());
  const std::string bytes = read_file(folder / "model.onnx");
  EXPECT_EQ(bytes.substr(0, 2), "\x08\x08") << "IR version 8";
  // NodeProto: inputs, output, name, operator.
  EXPECT_TRUE(has_bytes(bytes,
                        "\x0a\x01x\x0a\x01w\x12\x05"
                        "Add_0\x1a\x05"
                        "Add_0\x22\x03"
                        "Add"));
  // AttributeProto: name, the number -1 in ten bytes, type INT.
  EXPECT_TRUE(has_bytes(bytes,
                        "\x0a\x04"
                        "axis\x18" +
                            std::string(9, '\xff') + "\x01\xa0\x01\x02"));
  // A list of numbers, type INTS; a number of fp32, type FLOAT.
  EXPECT_TRUE(has_bytes(
      bytes, std::string("\x0a\x04") + std::string("perm\x42\x02\x01\x00\xa0\x01\x07", 11)));
  EXPECT_TRUE(has_bytes(bytes, std::string("scale\x15\x00\x00\x80\x3f\xa0\x01\x01", 13)));
  // The weight: sizes, FLOAT, name, bytes.
  EXPECT_TRUE(has_bytes(bytes, "\x0a\x01\x02\x10\x01\x42\x01w\x4a\x08" + bytes_of_floats({1, 2})));
  // Sizes of the input: a name, and a number.
  EXPECT_TRUE(has_bytes(bytes,
                        "\x12\x05"
                        "batch"));
  EXPECT_TRUE(has_bytes(bytes, "\x08\x02"));
  // opset_import: the default domain, 17.
  EXPECT_TRUE(has_bytes(bytes, std::string("\x42\x04\x0a\x00\x10\x11", 6)));
}

TEST(OnnxGraph, LargeWeightsStandBesideAtWholePages) {
  OnnxGraph graph("g");
  const std::vector<float> values(2000, 3);
  for (const char* name : {"a", "b"}) {
    graph.weight(name, {2000}, [values] { return bytes_of_floats(values); });
  }
  graph.weight("c", {2}, [] { return bytes_of_floats({1, 2}); });
  const TempDir folder;
  graph.write(folder.path());
  const std::string data = read_file(folder / "model.onnx_data");
  ASSERT_EQ(data.size(), 8192u + 8000u);
  EXPECT_EQ(data.substr(0, 8000), bytes_of_floats(values));
  EXPECT_EQ(data.substr(8192), bytes_of_floats(values));
  const std::string model = read_file(folder / "model.onnx");
  EXPECT_TRUE(has_bytes(model, "model.onnx_data"));
  EXPECT_TRUE(has_bytes(model, "8192"));
  EXPECT_LT(model.size(), 600u);
}

TEST(OnnxGraph, EqualConstantsAreOne) {
  OnnxGraph graph("g");
  EXPECT_EQ(graph.scalar(0.5F), graph.scalar(0.5F));
  EXPECT_NE(graph.scalar(0.5F), graph.scalar(-0.5F));
  EXPECT_EQ(graph.ints({0, -1}), graph.ints({0, -1}));
  EXPECT_NE(graph.ints({1}), graph.scalar_int(1));
}

TEST(OnnxGraph, AWeightOfOtherBytesIsAnError) {
  OnnxGraph graph("g");
  graph.weight("a", {3}, [] { return bytes_of_floats({1, 2}); });
  const TempDir folder;
  EXPECT_THROW(graph.write(folder.path()), std::invalid_argument);
}

}  // namespace
}  // namespace stretto::interchange
