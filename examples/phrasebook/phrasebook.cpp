// Writes the phrasebook's corpus: phrasebook FOLDER [SEED] -> FOLDER/{train,valid,test}.{en,fr}

#include <cstdint>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "examples/generator.h"
#include "examples/phrasebook/grammar.h"

namespace {

using stretto::phrasebook::Sentence;

constexpr std::string_view kUsage =
    "usage: phrasebook FOLDER [SEED]\n"
    "Writes FOLDER/{train,valid,test}.{en,fr}, the same for the same seed (default 1).\n";

void write_side(const std::filesystem::path& path, const std::vector<Sentence>& sentences,
                std::string Sentence::*side) {
  std::string text;
  for (const Sentence& sentence : sentences) text += sentence.*side + '\n';
  stretto::write_file_atomic(path, text);
}

void write_part(const std::filesystem::path& folder, const std::string& name,
                const std::vector<Sentence>& sentences) {
  write_side(folder / (name + ".en"), sentences, &Sentence::english);
  write_side(folder / (name + ".fr"), sentences, &Sentence::french);
  std::cout << folder.string() << "/" << name << ".{en,fr}: " << sentences.size() << " pairs\n";
}

void write_corpus(const std::filesystem::path& folder, uint64_t seed) {
  const auto corpus = stretto::phrasebook::generate(seed);
  write_part(folder, "valid", corpus.valid);
  write_part(folder, "test", corpus.test);
  write_part(folder, "train", corpus.train);
}

}  // namespace

int main(int argc, char** argv) {
  return stretto::examples::run_generator(
      {.name = "phrasebook", .usage = kUsage, .write = write_corpus}, argc, argv);
}
