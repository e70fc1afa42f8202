// Writes the corpus of the reversal task: reversal FOLDER [SEED]

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
#include "examples/reversal/sequences.h"

namespace {

using stretto::Error;
using stretto::ExitCode;
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

struct Request {
  std::filesystem::path folder;
  uint64_t seed = 1;
};

uint64_t seed_of(std::string_view text) {
  uint64_t seed = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (failure == std::errc() && end == text.data() + text.size()) return seed;
  throw Error(ExitCode::kUsage,
              "SEED must be a whole number from 0 to 18446744073709551615, got \"" +
                  stretto::printable(text) + "\"",
              "for instance: reversal build/reversal 1");
}

Request request_of(const std::vector<std::string_view>& words) {
  if (words.empty()) {
    throw Error(ExitCode::kUsage, "FOLDER is missing", "for instance: reversal build/reversal");
  }
  for (const std::string_view word : words) {
    if (!word.starts_with("-")) continue;
    throw Error(ExitCode::kUsage, "there is no option \"" + stretto::printable(word) + "\"",
                "reversal --help has all there is");
  }
  if (words.size() > 2) {
    throw Error(
        ExitCode::kUsage,
        "expected FOLDER and at most a SEED, got " + std::to_string(words.size()) + " arguments",
        "put a folder with spaces in its name between quotes");
  }
  if (words[0].empty()) throw Error(ExitCode::kUsage, "FOLDER is empty", "give a folder's name");
  return {words[0], words.size() == 2 ? seed_of(words[1]) : 1};
}

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

void write_corpus(const Request& request) {
  stretto::make_directories(request.folder);
  const auto corpus = stretto::reversal::generate(request.seed);
  stretto::write_file_atomic(request.folder / "vocab.txt", stretto::reversal::vocabulary());
  write_part(request.folder, "valid", corpus.valid);
  write_part(request.folder, "test", corpus.test);
  write_part(request.folder, "train", corpus.train);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  try {
    for (const std::string_view word : words) {
      if (word != "--help" && word != "-h") continue;
      std::cout << kUsage;
      return 0;
    }
    write_corpus(request_of(words));
  } catch (const Error& error) {
    std::cerr << "error: reversal: " << error.message() << "\n";
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::cerr << "error: reversal: " << error.what() << "\n";
    return static_cast<int>(ExitCode::kInternal);
  }
  return 0;
}
