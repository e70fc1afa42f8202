#include "families/text/engine/vector_output.h"

#include <ATen/Parallel.h>

#include <charconv>
#include <iostream>
#include <span>
#include <vector>

#include "base/stdout.h"
#include "store/npy_file.h"

namespace stretto::tasks {
namespace {

constexpr int64_t kLinesOfText = 16;  // that a thread writes at a time

class JsonOutput : public VectorOutput {
 public:
  void write(const at::Tensor& vectors) override {
    const int64_t count = vectors.size(0), width = vectors.size(1);
    const auto* values = vectors.data_ptr<float>();
    std::vector<std::string> lines(static_cast<size_t>(count));
    at::parallel_for(0, count, kLinesOfText, [&](int64_t begin, int64_t end) {
      for (; begin < end; ++begin) {
        lines[static_cast<size_t>(begin)] = json_vector(values + begin * width, width);
      }
    });
    for (const auto& line : lines) std::cout << line << '\n';
    flush_stdout();
  }
};

class NpyOutput : public VectorOutput {
 public:
  NpyOutput(const std::string& path, int64_t width) : file_(path, width) {}
  void write(const at::Tensor& vectors) override {
    file_.append({vectors.data_ptr<float>(), static_cast<size_t>(vectors.numel())});
  }
  void finish() override { file_.finish(); }

 private:
  store::NpyFile file_;
};

}  // namespace

std::string json_vector(const float* values, int64_t count) {
  constexpr size_t kMostDigits = 32;  // of a float in its shortest form
  std::string text = "[";
  for (int64_t i = 0; i < count; ++i) {
    if (i > 0) text += ',';
    char digits[kMostDigits];
    const auto end = std::to_chars(std::begin(digits), std::end(digits), values[i]).ptr;
    text.append(digits, end);
  }
  return text + "]";
}

std::unique_ptr<VectorOutput> make_json_output() {
  return std::make_unique<JsonOutput>();
}

std::unique_ptr<VectorOutput> make_npy_output(const std::string& path, int64_t width) {
  return std::make_unique<NpyOutput>(path, width);
}

}  // namespace stretto::tasks
