// Writes questions on portraits: portraits FOLDER [SEED] -> FOLDER/{train,valid,test}.json

#include <charconv>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "examples/portraits/people.h"

namespace {

using stretto::Error;
using stretto::ExitCode;
using stretto::portraits::Portrait;

constexpr std::string_view kUsage =
    "usage: portraits FOLDER [SEED]\n"
    "Writes FOLDER/{train,valid,test}.json in the format of SQuAD 2.0, the same for the same seed\n"
    "(default 1): a few sentences on one or two people, and four questions on each.\n";

uint64_t seed_of(std::string_view text) {
  uint64_t seed = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (failure == std::errc() && end == text.data() + text.size()) return seed;
  throw Error(ExitCode::kUsage,
              "SEED must be a whole number from 0 to 18446744073709551615, got \"" +
                  stretto::printable(text) + "\"",
              "for instance: portraits build/portraits 1");
}

void write_part(const std::filesystem::path& path, const std::vector<Portrait>& portraits) {
  stretto::write_file_atomic(path, stretto::portraits::squad_json(portraits));
  std::cout << path.string() << ": " << portraits.size() * stretto::portraits::kQuestions
            << " questions on " << portraits.size() << " portraits\n";
}

void write_corpus(const std::vector<std::string_view>& words) {
  if (words.empty() || words.size() > 2 || words[0].empty() || words[0].starts_with("-")) {
    throw Error(ExitCode::kUsage, "expected FOLDER and at most a SEED",
                "for instance: portraits build/portraits");
  }
  const uint64_t seed = words.size() == 2 ? seed_of(words[1]) : 1;
  const std::filesystem::path folder = words[0];
  stretto::make_directories(folder);
  const auto corpus = stretto::portraits::generate(seed);
  write_part(folder / "valid.json", corpus.valid);
  write_part(folder / "test.json", corpus.test);
  write_part(folder / "train.json", corpus.train);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  try {
    if (words.size() == 1 && (words[0] == "--help" || words[0] == "-h")) {
      std::cout << kUsage;
      return 0;
    }
    write_corpus(words);
  } catch (const Error& error) {
    std::cerr << "error: portraits: " << error.message() << "\n";
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::cerr << "error: portraits: " << error.what() << "\n";
    return static_cast<int>(ExitCode::kInternal);
  }
  return 0;
}
