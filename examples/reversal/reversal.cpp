// Writes the corpus of the reversal task: reversal FOLDER [SEED]

#include <cstdint>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "examples/generator.h"
#include "examples/reversal/sequences.h"

namespace {

using stretto::reversal::Halves;
using stretto::reversal::Pair;

constexpr std::string_view kUsage =
    "usage: reversal FOLDER [SEED]\n"
    "Writes FOLDER/{train,valid,test}.{src,tgt} and FOLDER/vocab.txt, the same for the same seed\n"
    "(default 1). A target is its source in reverse order: 5 to 50 of ten symbols, 10,000 pairs "
    "for\n"
    "training, 1,000 for validation, 2,000 for the test. FOLDER/{train,valid,test}.{src1,src2} "
    "are\n"
    "the two halves of each source, for a model that reads two.\n";

void write_side(const std::filesystem::path& path, const std::vector<Pair>& pairs,
                std::string Pair::*side) {
  std::string text;
  for (const Pair& pair : pairs) text += pair.*side + '\n';
  stretto::write_file_atomic(path, text);
}

void write_half(const std::filesystem::path& path, const std::vector<Pair>& pairs,
                std::string Halves::*half) {
  std::string text;
  for (const Pair& pair : pairs) text += stretto::reversal::halves_of(pair).*half + '\n';
  stretto::write_file_atomic(path, text);
}

void write_part(const std::filesystem::path& folder, const std::string& name,
                const std::vector<Pair>& pairs) {
  write_side(folder / (name + ".src"), pairs, &Pair::source);
  write_side(folder / (name + ".tgt"), pairs, &Pair::target);
  write_half(folder / (name + ".src1"), pairs, &Halves::first);
  write_half(folder / (name + ".src2"), pairs, &Halves::second);
  std::cout << (folder / name).string() << ".{src,src1,src2,tgt}: " << pairs.size() << " pairs\n";
}

void write_corpus(const std::filesystem::path& folder, uint64_t seed) {
  const auto corpus = stretto::reversal::generate(seed);
  stretto::write_file_atomic(folder / "vocab.txt", stretto::reversal::vocabulary());
  write_part(folder, "valid", corpus.valid);
  write_part(folder, "test", corpus.test);
  write_part(folder, "train", corpus.train);
}

}  // namespace

int main(int argc, char** argv) {
  return stretto::examples::run_generator(
      {.name = "reversal", .usage = kUsage, .write = write_corpus}, argc, argv);
}
