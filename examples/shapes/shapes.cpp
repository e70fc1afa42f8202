// Writes small pictures of shapes: shapes FOLDER [SEED] -> FOLDER/{train,valid}.tar and
// FOLDER/test/SHAPE/NUMBER.png

#include <cstdint>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "examples/generator.h"
#include "examples/shapes/drawing.h"
#include "image/encode_png.h"

namespace {

using stretto::shapes::Picture;

constexpr std::string_view kUsage =
    "usage: shapes FOLDER [SEED]\n"
    "Writes FOLDER/{train,valid}.tar and FOLDER/test, the same for the same seed (default 1):\n"
    "pictures of 32 x 32, in a folder for each shape that they show.\n";

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

void write_pictures(const std::filesystem::path& folder, uint64_t seed) {
  const auto pictures = stretto::shapes::generate(seed);
  write_folder(folder / "test", pictures.test);
  write_tar(folder / "valid.tar", pictures.valid);
  write_tar(folder / "train.tar", pictures.train);
}

}  // namespace

int main(int argc, char** argv) {
  return stretto::examples::run_generator(
      {.name = "shapes", .usage = kUsage, .write = write_pictures}, argc, argv);
}
