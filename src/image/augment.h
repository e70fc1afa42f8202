#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/random.h"
#include "image/image.h"

/// Random parameters of augmentation. A stream of random numbers is a function of (seed, epoch,
/// sample) (streams::augmentation), so that a picture is the same one whenever and wherever it is
/// loaded.
namespace stretto::image {

/// A random part of a picture (Szegedy et al. 2015, "Going Deeper with Convolutions").
struct CropOptions {
  double least_area = 0.08, most_area = 1;             ///< as shares of the picture
  double least_ratio = 3.0 / 4, most_ratio = 4.0 / 3;  ///< of width to height, even in logarithms
  int tries = 10;  ///< attempts at a shape that fits; after them the largest one in the middle
};
/// The same rule as torchvision's RandomResizedCrop.
Region draw_crop(int64_t height, int64_t width, const CropOptions& options, RandomStream& random);

/// A part of exactly this size, uniform over all positions; the usual crop of a padded picture.
/// Throws std::invalid_argument where it does not fit.
Region draw_window(const Image& image, int64_t height, int64_t width, RandomStream& random);

/// Whether this picture is mirrored.
bool draw_flip(double probability, RandomStream& random);

/// Whether a picture is mirrored in this epoch: every second one, half of all pictures in the first
/// (Jordan 2024, arXiv:2404.00498, "alternating flip"). A function of the numbers alone.
bool flips_in_turn(uint64_t seed, int64_t epoch, int64_t sample);

/// Random erasing (Zhong et al. 2017, arXiv:1708.04896).
struct ErasingOptions {
  double least_area = 0.02, most_area = 1.0 / 3;    ///< as shares of the picture
  double least_ratio = 0.3, most_ratio = 10.0 / 3;  ///< of height to width, even in logarithms
  int tries = 10;
};
/// The rectangle, by torchvision's rule; nothing where none of the tries fits.
std::optional<Region> draw_erasing(int64_t height, int64_t width, const ErasingOptions& options,
                                   RandomStream& random);

/// Ranges of colour jitter, as of torchvision's ColorJitter: factors in [1 - x, 1 + x], not below
/// 0, and a turn of the hue in [-hue, hue]; the four changes come in a random order.
struct JitterOptions {
  double brightness = 0, contrast = 0, saturation = 0, hue = 0;
};
void jitter(Image& image, const JitterOptions& options, RandomStream& random);

/// PCA lighting (Krizhevsky et al. 2012, section 4.1): what is added to red, green and blue, in the
/// scale of [0, 1]: the principal components of ImageNet's colours, each times its eigenvalue and a
/// normal number with this deviation, 0.1 in the article.
std::array<double, 3> draw_light(double deviation, RandomStream& random);

}  // namespace stretto::image
