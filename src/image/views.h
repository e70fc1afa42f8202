#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "image/augment_options.h"
#include "image/image.h"
#include "image/image_file.h"
#include "image/transform.h"

/// From a picture to what a model sees: squares of `side` pixels.
namespace stretto::image {

/// The coordinates of an augmentation. Every draw is a function of them.
struct AugmentKey {
  uint64_t seed = 0;
  int64_t epoch = 0;
  /// The id of the sample. A further copy of it in an epoch (repeated augmentation) has a number of
  /// its own, so that other numbers are drawn.
  int64_t sample = 0;
};

/// What training shows of one picture. Use it like this:
///
///     TrainingView view(options, {seed, epoch, sample}, side);
///     const Image decoded = decode_image(bytes, name, view.decode_options());
///     view.write(view.shown(decoded), PixelLayout::kPlanes, pixels);
class TrainingView {
 public:
  /// @param options  outlive the view
  TrainingView(const AugmentOptions& options, const AugmentKey& key, int64_t side);
  TrainingView(const TrainingView&) = delete;
  TrainingView& operator=(const TrainingView&) = delete;

  /// How the picture is decoded: where `options.decoding` allows, without the rows that are not
  /// shown, or smaller. The view learns the true size from it, and outlives what it returns.
  DecodeOptions decode_options(int64_t max_pixels = kMaxPixels);

  /// Bytes, as they are before normalisation.
  /// @param decoded  with decode_options(), or whole (raw pixels of a data set)
  /// @return [3, side, side]
  Image shown(const Image& decoded) const;

  /// Normalised pixels, with lighting and random erasing.
  /// @param out  [3, side, side] or [side, side, 3]
  void write(const Image& shown, PixelLayout layout, std::span<float> out) const;

 private:
  RandomStream step(uint64_t number) const;
  DecodePart part_of(int64_t height, int64_t width) const;
  Image cut_out(const Image& decoded) const;
  Image random_part(const Image& decoded, const Region& whole) const;
  void erase(PixelLayout layout, std::span<float> out) const;

  const AugmentOptions& options_;
  const AugmentKey key_;
  const int64_t side_;
  std::optional<Region> whole_;  ///< the size by the header
};

/// What validation and inference show of a picture: as many views of each, whose outputs
/// (probabilities) are added with test_weights().
int64_t num_test_views(const AugmentOptions& options);
/// @return [num_test_views()], of sum 1
std::vector<double> test_weights(const AugmentOptions& options);
/// Whole, and turned as `options.exif_orientation` says.
DecodeOptions test_decode_options(const AugmentOptions& options, int64_t max_pixels = kMaxPixels);
/// @return [num_test_views()] pictures of [3, side, side]
std::vector<Image> test_views(const Image& decoded, const AugmentOptions& options, int64_t side);

/// The length of the shorter side before parts are cut out, where `test_resize` is empty: 8/7 of
/// the model's, 256 for 224.
int64_t default_test_resize(int64_t side);

}  // namespace stretto::image
