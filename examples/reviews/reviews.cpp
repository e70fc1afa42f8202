// Writes short reviews with labels: reviews FOLDER [SEED] -> FOLDER/{train,valid,test}.tsv

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
#include "examples/reviews/opinions.h"

namespace {

using stretto::Error;
using stretto::ExitCode;
using stretto::reviews::Review;

constexpr std::string_view kUsage =
    "usage: reviews FOLDER [SEED]\n"
    "Writes FOLDER/{train,valid,test}.tsv, the same for the same seed (default 1): short reviews\n"
    "with a label (good, bad, mixed), stars (1 to 5), a thing that they speak of, and what they\n"
    "say of it.\n";

uint64_t seed_of(std::string_view text) {
  uint64_t seed = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (failure == std::errc() && end == text.data() + text.size()) return seed;
  throw Error(ExitCode::kUsage,
              "SEED must be a whole number from 0 to 18446744073709551615, got \"" +
                  stretto::printable(text) + "\"",
              "for instance: reviews build/reviews 1");
}

void write_part(const std::filesystem::path& path, const std::vector<Review>& reviews) {
  stretto::write_file_atomic(path, stretto::reviews::tsv(reviews));
  std::cout << path.string() << ": " << reviews.size() << " reviews\n";
}

void write_corpus(const std::vector<std::string_view>& words) {
  if (words.empty() || words.size() > 2 || words[0].empty() || words[0].starts_with("-")) {
    throw Error(ExitCode::kUsage, "expected FOLDER and at most a SEED",
                "for instance: reviews build/reviews");
  }
  const uint64_t seed = words.size() == 2 ? seed_of(words[1]) : 1;
  const std::filesystem::path folder = words[0];
  stretto::make_directories(folder);
  const auto corpus = stretto::reviews::generate(seed);
  write_part(folder / "valid.tsv", corpus.valid);
  write_part(folder / "test.tsv", corpus.test);
  write_part(folder / "train.tsv", corpus.train);
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
    std::cerr << "error: reviews: " << error.message() << "\n";
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::cerr << "error: reviews: " << error.what() << "\n";
    return static_cast<int>(ExitCode::kInternal);
  }
  return 0;
}
