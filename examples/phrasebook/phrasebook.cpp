// Writes the phrasebook's corpus: phrasebook FOLDER [SEED] -> FOLDER/{train,valid,test}.{en,fr}

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "examples/phrasebook/grammar.h"

namespace {

using stretto::phrasebook::Sentence;

// Written beside and renamed: a generator that is stopped leaves no half corpus.
void write_side(const std::filesystem::path& path, const std::vector<Sentence>& sentences,
                std::string Sentence::*side) {
  const std::filesystem::path beside = path.string() + ".part";
  {
    std::ofstream out(beside, std::ios::binary);
    for (const Sentence& sentence : sentences) out << sentence.*side << '\n';
    out.flush();
    if (!out) throw std::runtime_error("cannot write " + beside.string());
  }
  std::filesystem::rename(beside, path);
}

void write_part(const std::filesystem::path& folder, const std::string& name,
                const std::vector<Sentence>& sentences) {
  write_side(folder / (name + ".en"), sentences, &Sentence::english);
  write_side(folder / (name + ".fr"), sentences, &Sentence::french);
  std::cout << folder.string() << "/" << name << ".{en,fr}: " << sentences.size() << " pairs\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3 || std::string(argv[1]).starts_with("-")) {
    std::cerr
        << "usage: phrasebook FOLDER [SEED]\n"
           "Writes FOLDER/{train,valid,test}.{en,fr}, the same for the same seed (default 1).\n";
    return argc == 2 && std::string(argv[1]) == "--help" ? 0 : 2;
  }
  try {
    const uint64_t seed = argc == 3 ? std::stoull(argv[2]) : 1;
    const std::filesystem::path folder = argv[1];
    std::filesystem::create_directories(folder);
    const auto corpus = stretto::phrasebook::generate(seed);
    write_part(folder, "valid", corpus.valid);
    write_part(folder, "test", corpus.test);
    write_part(folder, "train", corpus.train);
  } catch (const std::exception& error) {
    std::cerr << "error: phrasebook: " << error.what() << "\n";
    return 74;
  }
  return 0;
}
