#include "data/images/pixel_images.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "data/archives/unpacked_file.h"
#include "data/lines.h"

namespace stretto::data {
namespace {

class PixelImages final : public ImageSource {
 public:
  PixelImages(const std::string& path, PixelArray array, std::vector<std::string> names,
              LeftOut left_out)
      : path_(path),
        array_(std::move(array)),
        names_(std::move(names)),
        left_out_(std::move(left_out)) {
    if (array_.labels.empty()) return;
    const int most = *std::max_element(array_.labels.begin(), array_.labels.end());
    if (names_.empty() || std::cmp_less(most, names_.size())) return;
    throw Error(ExitCode::kBadData,
                path_ + ": has label " + std::to_string(most) +
                    ", and the file of names beside it " + counted(std::ssize(names_), "name"),
                "each line of the file of names is a class, in the order of their numbers");
  }

  int64_t size() const override { return array_.count; }
  std::string label(int64_t sample) const override {
    const int label = array_.labels[static_cast<size_t>(sample)];
    return names_.empty() ? std::to_string(label) : names_[static_cast<size_t>(label)];
  }
  ImageFacts facts(int64_t sample) const override {
    const std::string_view pixels = pixels_of(sample);
    return {.bytes = pixels.size(),
            .hash = xxh3_64(pixels),
            .height = array_.height,
            .width = array_.width};
  }
  std::string place(int64_t sample) const override {
    const int64_t row = array_.rows.empty() ? sample : array_.rows[static_cast<size_t>(sample)];
    return path_ + ": picture " + std::to_string(row);
  }
  bool is_raw() const override { return true; }
  std::string read(int64_t /*sample*/) const override {
    throw std::logic_error("pictures of idx and CIFAR files have no encoded form");
  }
  image::Image load(int64_t sample, const image::DecodeOptions& /*options*/) const override {
    image::Image image = image::make_image(array_.height, array_.width);
    const std::string_view pixels = pixels_of(sample);
    auto at = image.pixels.begin();
    for (int64_t copy = 0; copy < image::kChannels / array_.channels; ++copy) {
      at = std::copy(pixels.begin(), pixels.end(), at);
    }
    return image;
  }
  const LeftOut& left_out() const override { return left_out_; }

 private:
  std::string_view pixels_of(int64_t sample) const {
    const auto size = static_cast<size_t>(array_.bytes_of_one());
    return std::string_view(array_.pixels).substr(static_cast<size_t>(sample) * size, size);
  }

  std::string path_;
  PixelArray array_;
  std::vector<std::string> names_;
  LeftOut left_out_;
};

/// Lines of a file of names, without empty ones at the end, as CIFAR's have them. Pictures know
/// their class by its name: two classes of one name would become one.
std::vector<std::string> read_names(const std::string& path) {
  LineReader lines(path);
  std::vector<std::string> names;
  std::string_view line;
  while (lines.next(line)) names.push_back(trim(line));
  while (!names.empty() && names.back().empty()) names.pop_back();
  std::set<std::string_view> known;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!names[i].empty() && known.insert(names[i]).second) continue;
    throw Error(ExitCode::kBadData,
                path + ":" + std::to_string(i + 1) +
                    (names[i].empty() ? ": an empty line"
                                      : ": `" + printable(names[i], 60) + "` occurs twice"),
                "each line of the file of names is a class, in the order of their numbers");
  }
  return names;
}

}  // namespace

std::shared_ptr<const ImageSource> make_pixel_images(const std::string& path, PixelArray array,
                                                     std::vector<std::string> names,
                                                     LeftOut left_out) {
  return std::make_shared<PixelImages>(path, std::move(array), std::move(names),
                                       std::move(left_out));
}

std::shared_ptr<const ImageSource> open_idx(const std::string& images, const std::string& labels) {
  PixelArray array = read_idx_images(*open_unpacked(images).bytes, images);
  array.labels = read_idx_labels(*open_unpacked(labels).bytes, labels);
  if (std::cmp_not_equal(array.labels.size(), array.count)) {
    throw Error(ExitCode::kBadData,
                labels + ": has " + counted(std::ssize(array.labels), "label") + ", and " + images +
                    " " + counted(array.count, "picture"),
                "give the labels of these pictures");
  }
  return make_pixel_images(images, std::move(array), {}, {});
}

std::shared_ptr<const ImageSource> open_cifar(const std::string& path, CifarKind kind,
                                              const std::string& names_file,
                                              const BadSampleRule& rule) {
  BadSamples bad(rule);
  PixelArray array = read_cifar(*open_unpacked(path).bytes, path, kind, bad);
  auto names = names_file.empty() ? std::vector<std::string>{} : read_names(names_file);
  return make_pixel_images(path, std::move(array), std::move(names), bad.left_out());
}

}  // namespace stretto::data
