// Writes short reviews with labels: reviews FOLDER [SEED] -> FOLDER/{train,valid,test}.tsv

#include <cstdint>
#include <filesystem>
#include <iostream>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "examples/generator.h"
#include "examples/reviews/opinions.h"

namespace {

using stretto::reviews::Review;

constexpr std::string_view kUsage =
    "usage: reviews FOLDER [SEED]\n"
    "Writes FOLDER/{train,valid,test}.tsv, the same for the same seed (default 1): short reviews\n"
    "with a label (good, bad, mixed), stars (1 to 5), a thing that they speak of, and what they\n"
    "say of it.\n";

void write_part(const std::filesystem::path& path, const std::vector<Review>& reviews) {
  stretto::write_file_atomic(path, stretto::reviews::tsv(reviews));
  std::cout << path.string() << ": " << reviews.size() << " reviews\n";
}

void write_corpus(const std::filesystem::path& folder, uint64_t seed) {
  const auto corpus = stretto::reviews::generate(seed);
  write_part(folder / "valid.tsv", corpus.valid);
  write_part(folder / "test.tsv", corpus.test);
  write_part(folder / "train.tsv", corpus.train);
}

}  // namespace

int main(int argc, char** argv) {
  return stretto::examples::run_generator(
      {.name = "reviews", .usage = kUsage, .write = write_corpus}, argc, argv);
}
