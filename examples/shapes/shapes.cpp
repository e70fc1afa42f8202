// Writes small pictures of shapes: shapes FOLDER [SEED] -> FOLDER/{train,valid}.tar and
// FOLDER/test/SHAPE/NUMBER.png

#include <charconv>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "examples/shapes/drawing.h"
#include "image/encode_png.h"

namespace {

using stretto::Error;
using stretto::ExitCode;
using stretto::shapes::Picture;

constexpr std::string_view kUsage =
    "usage: shapes FOLDER [SEED]\n"
    "Writes FOLDER/{train,valid}.tar and FOLDER/test, the same for the same seed (default 1):\n"
    "pictures of 32 x 32, in a folder for each shape that they show.\n";

uint64_t seed_of(std::string_view text) {
  uint64_t seed = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (failure == std::errc() && end == text.data() + text.size()) return seed;
  throw Error(ExitCode::kUsage,
              "SEED must be a whole number from 0 to 18446744073709551615, got \"" +
                  stretto::printable(text) + "\"",
              "for instance: shapes build/shapes 1");
}

using Files = std::vector<std::pair<std::string, std::string>>;

Files files_of(const std::vector<Picture>& pictures) {
  Files files;
  std::map<size_t, size_t> counts;
  for (const Picture& picture : pictures) {
    files.emplace_back(stretto::shapes::name_of(picture, counts[picture.shape]++),
                       stretto::image::encode_png(picture.image));
  }
  return files;
}

void tell(const std::filesystem::path& path, const std::vector<Picture>& pictures) {
  std::cout << path.string() << ": " << pictures.size() << " pictures\n";
}

void write_tar(const std::filesystem::path& path, const std::vector<Picture>& pictures) {
  stretto::write_file_atomic(path, stretto::shapes::tar_of(files_of(pictures)));
  tell(path, pictures);
}

void write_folder(const std::filesystem::path& folder, const std::vector<Picture>& pictures) {
  for (const auto& [name, bytes] : files_of(pictures)) {
    stretto::make_directories((folder / name).parent_path());
    stretto::write_file_atomic(folder / name, bytes);
  }
  tell(folder, pictures);
}

void write_pictures(const std::vector<std::string_view>& words) {
  if (words.empty() || words.size() > 2 || words[0].empty() || words[0].starts_with("-")) {
    throw Error(ExitCode::kUsage, "expected FOLDER and at most a SEED",
                "for instance: shapes build/shapes");
  }
  const uint64_t seed = words.size() == 2 ? seed_of(words[1]) : 1;
  const std::filesystem::path folder = words[0];
  stretto::make_directories(folder);
  const auto pictures = stretto::shapes::generate(seed);
  write_folder(folder / "test", pictures.test);
  write_tar(folder / "valid.tar", pictures.valid);
  write_tar(folder / "train.tar", pictures.train);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  try {
    if (words.size() == 1 && (words[0] == "--help" || words[0] == "-h")) {
      std::cout << kUsage;
      return 0;
    }
    write_pictures(words);
  } catch (const Error& error) {
    std::cerr << "error: shapes: " << error.message() << "\n";
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::cerr << "error: shapes: " << error.what() << "\n";
    return static_cast<int>(ExitCode::kInternal);
  }
  return 0;
}
