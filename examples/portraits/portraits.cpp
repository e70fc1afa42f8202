// Writes questions on portraits: portraits FOLDER [SEED] -> FOLDER/{train,valid,test}.json

#include <cstdint>
#include <filesystem>
#include <iostream>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "examples/generator.h"
#include "examples/portraits/people.h"

namespace {

using stretto::portraits::Portrait;

constexpr std::string_view kUsage =
    "usage: portraits FOLDER [SEED]\n"
    "Writes FOLDER/{train,valid,test}.json in the format of SQuAD 2.0, the same for the same seed\n"
    "(default 1): a few sentences on one or two people, and four questions on each.\n";

void write_part(const std::filesystem::path& path, const std::vector<Portrait>& portraits) {
  stretto::write_file_atomic(path, stretto::portraits::squad_json(portraits));
  std::cout << path.string() << ": " << portraits.size() * stretto::portraits::kQuestions
            << " questions on " << portraits.size() << " portraits\n";
}

void write_corpus(const std::filesystem::path& folder, uint64_t seed) {
  const auto corpus = stretto::portraits::generate(seed);
  write_part(folder / "valid.json", corpus.valid);
  write_part(folder / "test.json", corpus.test);
  write_part(folder / "train.json", corpus.train);
}

}  // namespace

int main(int argc, char** argv) {
  return stretto::examples::run_generator(
      {.name = "portraits", .usage = kUsage, .write = write_corpus}, argc, argv);
}
