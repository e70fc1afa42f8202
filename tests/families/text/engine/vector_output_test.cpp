#include "families/text/engine/vector_output.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "store/npy_file.h"
#include "tests/base/temp_dir.h"

namespace stretto::tasks {
namespace {

TEST(VectorOutput, WritesTheShortestDigitsThatReadBack) {
  const std::vector<float> values{0.1f, -1, 0, 1e-30f, 3.4028235e38f};
  const std::string line = json_vector(values.data(), std::ssize(values));
  EXPECT_EQ(line, "[0.1,-1,0,1e-30,3.4028235e+38]");
  const auto json = nlohmann::json::parse(line);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(json[i].get<float>(), values[i]);
  EXPECT_EQ(json_vector(nullptr, 0), "[]");
}

TEST(VectorOutput, WritesALineAVectorInTheirOrder) {
  std::ostringstream text;
  auto* const before = std::cout.rdbuf(text.rdbuf());
  auto output = make_json_output();
  output->write(at::arange(400, at::kFloat).view({200, 2}));
  output->write(at::zeros({0, 2}));
  output->finish();
  std::cout.rdbuf(before);
  std::istringstream lines(text.str());
  std::string line;
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_EQ(line, "[" + std::to_string(2 * i) + "," + std::to_string(2 * i + 1) + "]");
  }
  EXPECT_FALSE(std::getline(lines, line));
}

TEST(VectorOutput, WritesAFileOfNumPy) {
  const testing::TempDir folder;
  const auto path = folder / "vectors.npy";
  auto output = make_npy_output(path.string(), 3);
  output->write(at::ones({2, 3}));
  output->write(at::ones({1, 3}));
  EXPECT_FALSE(std::filesystem::exists(path));
  output->finish();
  const std::string bytes = read_file(path);
  EXPECT_EQ(bytes.substr(0, 128), store::npy_header(3, 3));
  EXPECT_EQ(bytes.size(), 128 + 9 * sizeof(float));
}

}  // namespace
}  // namespace stretto::tasks
