#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "data/pairs/corpus.h"
#include "tests/base/failure.h"
#include "tests/text/special_ids.h"
#include "text/tokenizer.h"

namespace stretto::data {

/// The end-of-sentence id of the fixture's tokenizers.
inline constexpr int64_t kEos = testing::kSpecials.eos;

/// A folder of its own for each test, and corpora of made-up sentences over forty words.
class CorpusFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              ("stretto_" + std::string(test->test_suite_name()) + "_" + test->name() + "_" +
               std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    std::string words;
    for (uint64_t i = 0; i < 40; ++i) words += word(i) + "\n";
    tokenizers_.src = tokenizers_.tgt = text::make_vocabulary(words, "words");
    tokenizers_.joint = true;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return (folder_ / name).string();
  }

  static std::string word(uint64_t number) {
    std::string text = std::to_string(number);
    text.insert(text.begin(), 'w');
    return text;
  }

  /// Lines of 1 to `longest` words, the same for the same key.
  static std::string sentences(int64_t lines, uint64_t key, uint64_t longest = 12) {
    RandomStream random(key);
    std::string text;
    for (int64_t i = 0; i < lines; ++i) {
      for (uint64_t n = 1 + random.below(longest); n > 0; --n) {
        text += word(random.below(40)) + (n > 1 ? " " : "\n");
      }
    }
    return text;
  }

  DataOptions options(int64_t lines) const {
    DataOptions options;
    options.train_src = {write("train.src", sentences(lines, 1))};
    options.train_tgt = {write("train.tgt", sentences(lines, 2))};
    options.max_tokens = 64;
    options.max_src_tokens = options.max_tgt_tokens = 64;
    options.cache_dir = (folder_ / "cache").string();
    return options;
  }

  std::shared_ptr<const Corpus> open(const DataOptions& options, Split split = Split::kTrain,
                                     int64_t threads = 2, uint64_t seed = 1) const {
    return open_corpus(options, split, tokenizers_, seed, threads);
  }

  /// Message of the Error that `call` throws, after a look at its code and advice.
  static std::string failure(ExitCode code, const std::function<void()>& call) {
    return testing::failure(code, call).message();
  }

  std::filesystem::path folder_;
  text::TokenizerPair tokenizers_;
};

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace stretto::data
