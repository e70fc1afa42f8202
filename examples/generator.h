#pragma once

#include <charconv>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

/// What the programs that write sample data have in common: NAME FOLDER [SEED].
namespace stretto::examples {

struct Generator {
  std::string name;
  std::string_view usage;
  /// Writes into a folder that is there.
  std::function<void(const std::filesystem::path& folder, uint64_t seed)> write;
};

struct GeneratorWords {
  std::filesystem::path folder;
  uint64_t seed = 1;
};

inline uint64_t seed_of(const std::string& name, std::string_view text) {
  uint64_t seed = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (failure == std::errc() && end == text.data() + text.size()) return seed;
  throw Error(
      ExitCode::kUsage,
      "SEED must be a whole number from 0 to 18446744073709551615, got \"" + printable(text) + "\"",
      "for instance: " + name + " build/" + name + " 1");
}

/// Throws Error(kUsage) for words that are no FOLDER and SEED.
inline GeneratorWords words_of(const std::string& name,
                               const std::vector<std::string_view>& words) {
  if (words.empty()) {
    throw Error(ExitCode::kUsage, "FOLDER is missing", "for instance: " + name + " build/" + name);
  }
  for (const std::string_view word : words) {
    if (!word.starts_with("-")) continue;
    throw Error(ExitCode::kUsage, "there is no option \"" + printable(word) + "\"",
                name + " --help has all there is");
  }
  if (words.size() > 2) {
    throw Error(
        ExitCode::kUsage,
        "expected FOLDER and at most a SEED, got " + std::to_string(words.size()) + " arguments",
        "put a folder with spaces in its name between quotes");
  }
  if (words[0].empty()) throw Error(ExitCode::kUsage, "FOLDER is empty", "give a folder's name");
  return {words[0], words.size() == 2 ? seed_of(name, words[1]) : 1};
}

/// @return the exit code
inline int run_generator(const Generator& generator, int argc, char** argv) {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  try {
    for (const std::string_view word : words) {
      if (word != "--help" && word != "-h") continue;
      std::cout << generator.usage;
      return 0;
    }
    const GeneratorWords asked = words_of(generator.name, words);
    make_directories(asked.folder);
    generator.write(asked.folder, asked.seed);
  } catch (const Error& error) {
    std::cerr << "error: " << generator.name << ": " << error.message() << "\n";
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::cerr << "error: " << generator.name << ": " << error.what() << "\n";
    return static_cast<int>(ExitCode::kInternal);
  }
  return 0;
}

}  // namespace stretto::examples
