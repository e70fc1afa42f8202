#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"
#include "image/transform.h"

namespace stretto::image {

/// What a conflict of options blames: the keys it read, the first one above all.
struct AugmentConflict {
  std::vector<std::string> keys;
  std::string what, hint;
};

/// How pictures become what a model sees: in training with random changes, each a function of
/// (seed, epoch, sample), and in validation and inference without. Names are those of torchvision
/// and timm.
struct AugmentOptions {
  // Training: the part of a picture.
  std::string crop = "random_resized";
  double min_scale = 0.08, max_scale = 1;
  double min_ratio = 3.0 / 4, max_ratio = 4.0 / 3;
  int64_t padding = 4;
  std::string padding_mode = "reflect";
  std::string interpolation = "bilinear";
  std::string decoding = "rows";
  bool exif_orientation = true;
  // Training: changes of it.
  std::string flip = "random";
  double flip_probability = 0.5;
  double brightness = 0, contrast = 0, saturation = 0, hue = 0;
  double lighting = 0;
  std::string auto_augment = "none";
  int64_t num_ops = 2, magnitude = 9;
  double erasing_probability = 0, min_erasing_scale = 0.02, max_erasing_scale = 1.0 / 3;
  double min_erasing_ratio = 0.3, max_erasing_ratio = 10.0 / 3;
  std::string erasing_value = "zero";
  // Training: mixtures of two pictures of a batch.
  double mixup_alpha = 0, cutmix_alpha = 0;
  double mix_probability = 1, switch_probability = 0.5;
  // Validation and inference.
  std::string test_crop = "center";
  std::vector<double> test_resize;
  bool test_flip = false;
  int64_t test_shift = 0;
  // All of them.
  std::vector<double> mean = {0.485, 0.456, 0.406};
  std::vector<double> std = {0.229, 0.224, 0.225};

  static auto part_fields() {
    using namespace config;
    using O = AugmentOptions;
    return Fields{
        field(&O::crop, "crop",
              "the part of a picture that training shows. random_resized: a random part, of random "
              "area and shape, resized. pad: the picture, padded, and a random window of it (small "
              "pictures). random: a random window of the picture, whose shorter side is resized to "
              "test_resize. center: as in validation. squash: the whole picture, without its "
              "proportions",
              one_of({"random_resized", "pad", "random", "center", "squash"}))
            .also_called({"train_crop_mode", "train_crop"})
            .value_also_called("random_resized", {"rrc", "random_resized_crop", "inception"})
            .value_also_called("pad", {"pad_and_crop", "cifar"})
            .value_also_called("random", {"rkrc", "random_crop"})
            .value_also_called("center", {"centre", "center_crop"}),
        field(&O::min_scale, "min_scale",
              "smallest area of a random part, as a share of the picture",
              {.min = 0, .max = 1, .min_open = true, .choices = {}})
            .also_called({"scale", "random_area"}, "min_scale and max_scale are keys of their own")
            .read_with("crop", {"random_resized"}),
        field(&O::max_scale, "max_scale", "largest area of a random part",
              {.min = 0, .max = 1, .min_open = true, .choices = {}})
            .read_with("crop", {"random_resized"}),
        field(&O::min_ratio, "min_ratio", "smallest ratio of width to height of a random part",
              between(0.01, 100))
            .also_called({"ratio", "random_aspect_ratio"},
                         "min_ratio and max_ratio are keys of their own")
            .read_with("crop", {"random_resized"}),
        field(&O::max_ratio, "max_ratio", "largest ratio of width to height of a random part",
              between(0.01, 100))
            .read_with("crop", {"random_resized"}),
        field(&O::padding, "padding", "margin on each side before a window is taken",
              between(0, 4096), {.unit = "pixels"})
            .also_called({"pad", "crop_padding"})
            .read_with("crop", {"pad"}),
        field(&O::padding_mode, "padding_mode",
              "what the margin shows. reflect: the mirrored picture, without the row at the edge. "
              "zero: black",
              one_of({"reflect", "zero"}))
            .value_also_called("zero", {"constant", "black", "zeros"})
            .read_with("crop", {"pad"}),
        field(&O::interpolation, "interpolation",
              "how pictures are resized, always with antialiasing, as Pillow does",
              one_of({"bilinear", "bicubic", "box"}))
            .also_called({"train_interpolation", "resample"})
            .value_also_called("box", {"area"})
            .value_also_called("bicubic", {"cubic"}),
        field(
            &O::decoding, "decoding",
            "how JPEG files are decoded in training. full: whole. rows: the rows of the part that "
            "is shown, with the same pixels. scaled: those at 1/2, 1/4 or 1/8 of the size where "
            "the part is that much larger than what the model sees; faster, and other pixels. "
            "Validation always decodes whole",
            one_of({"rows", "full", "scaled"}))
            .also_called({"jpeg_decoding", "draft"}),
        field(&O::exif_orientation, "exif_orientation",
              "turn pictures as their EXIF tag says; torchvision does not")
            .also_called({"apply_exif_orientation", "exif_transpose"}),
    };
  }

  static auto change_fields() {
    using namespace config;
    using O = AugmentOptions;
    return Fields{
        field(&O::flip, "flip",
              "which pictures of training are mirrored. random: by chance. alternate: each picture "
              "every second epoch, half of them in the first (airbench)",
              one_of({"random", "alternate", "none"}))
            .also_called({"random_flip", "flip_mode", "horizontal_flip"}),
        field(&O::flip_probability, "flip_probability", "chance of a picture to be mirrored",
              between(0, 1))
            .also_called({"hflip", "flip_prob", "random_horizontal_flip"})
            .read_with("flip", {"random"}),
        field(&O::brightness, "brightness", "colour jitter: the factor is within 1 - x and 1 + x",
              between(0, 10))
            .also_called({"color_jitter", "colour_jitter"},
                         "brightness, contrast, saturation and hue are keys of their own"),
        field(&O::contrast, "contrast", "colour jitter, as brightness", between(0, 10)),
        field(&O::saturation, "saturation", "colour jitter, as brightness", between(0, 10)),
        field(&O::hue, "hue", "colour jitter: the turn is within -x and x of the circle of hues",
              between(0, 0.5)),
        field(&O::lighting, "lighting",
              "deviation of AlexNet's PCA lighting: 0.1 in the article; 0 = none", between(0, 10))
            .also_called({"pca_lighting", "alphastd", "fancy_pca"}),
        field(&O::auto_augment, "auto_augment",
              "changes of shape and colour by a policy. randaugment: num_ops of them, as strong as "
              "magnitude. trivialaugment: one, of random strength (TrivialAugmentWide)",
              one_of({"none", "randaugment", "trivialaugment"}))
            .also_called({"aa", "augmentation_policy"})
            .value_also_called("randaugment", {"ra", "rand", "rand_augment"})
            .value_also_called("trivialaugment",
                               {"ta", "ta_wide", "trivial_augment", "trivialaugmentwide"}),
        field(&O::num_ops, "num_ops", "changes of each picture", between(1, 16))
            .read_with("auto_augment", {"randaugment"}),
        field(&O::magnitude, "magnitude", "of changes: 0 none, 30 strongest, as torchvision has it",
              between(0, 30))
            .also_called({"ra_magnitude"}, "timm's scale ends at 10: m9 is 27 here")
            .read_with("auto_augment", {"randaugment"}),
        field(&O::erasing_probability, "erasing_probability",
              "random erasing: chance that a rectangle of a picture is wiped out", between(0, 1))
            .also_called({"reprob", "random_erase", "random_erasing"}),
        field(&O::min_erasing_scale, "min_erasing_scale",
              "smallest area of the rectangle, as a share of the picture",
              {.min = 0, .max = 1, .min_open = true, .choices = {}})
            .read_unless_zero("erasing_probability"),
        field(&O::max_erasing_scale, "max_erasing_scale", "largest area of the rectangle",
              {.min = 0, .max = 1, .min_open = true, .choices = {}})
            .read_unless_zero("erasing_probability"),
        field(&O::min_erasing_ratio, "min_erasing_ratio",
              "smallest ratio of the rectangle's height to its width", between(0.01, 100))
            .read_unless_zero("erasing_probability"),
        field(&O::max_erasing_ratio, "max_erasing_ratio", "largest ratio of height to width",
              between(0.01, 100))
            .read_unless_zero("erasing_probability"),
        field(&O::erasing_value, "erasing_value",
              "what the rectangle shows, after normalisation. zero: the mean colour. random: a "
              "normal number for each channel of each pixel",
              one_of({"zero", "random"}))
            .also_called({"remode"})
            .value_also_called("zero", {"const", "constant"})
            .value_also_called("random", {"pixel", "normal"})
            .read_unless_zero("erasing_probability"),
    };
  }

  static auto mix_fields() {
    using namespace config;
    using O = AugmentOptions;
    return Fields{
        field(&O::mixup_alpha, "mixup_alpha",
              "mixup: pictures and labels of two samples are added, in shares by Beta(alpha, "
              "alpha); 0 = none",
              between(0, 100))
            .also_called({"mixup"}),
        field(&O::cutmix_alpha, "cutmix_alpha",
              "CutMix: a rectangle of a picture is that of another sample, of an area by "
              "Beta(alpha, alpha); 0 = none",
              between(0, 100))
            .also_called({"cutmix"}),
        field(&O::mix_probability, "mix_probability", "chance that a batch is mixed", between(0, 1))
            .also_called({"mixup_prob"})
            .read_with_any({"mixup_alpha", "cutmix_alpha"}, {}),
        field(&O::switch_probability, "switch_probability",
              "chance of CutMix for a batch that is mixed, where both are on", between(0, 1))
            .also_called({"mixup_switch_prob", "switch_prob"})
            .read_unless_zero("cutmix_alpha"),
    };
  }

  static auto test_fields() {
    using namespace config;
    using O = AugmentOptions;
    const Meta scoring{.change = Change::kScoring};
    return Fields{
        field(&O::test_crop, "test_crop",
              "what validation and inference show. center: the middle. five: that and the four "
              "corners, whose outputs are averaged. squash: the whole picture, without its "
              "proportions",
              one_of({"center", "five", "squash"}), scoring)
            .also_called({"crop_mode", "test_crops", "five_crop"})
            .also_called({"ten_crop"}, "test_crop = \"five\" and test_flip = true")
            .value_also_called("center", {"centre", "center_crop"}),
        field(&O::test_resize, "test_resize",
              "the length of the shorter side before parts are cut out; several: the parts of each "
              "of them are averaged (multi-scale crops). Empty = 8/7 of the model's size, and no "
              "change for pictures that have the model's size",
              between(1, 65536), {.unit = "pixels", .change = Change::kScoring})
            .also_called({"val_resize_size", "resize_size", "resize"})
            .also_called({"crop_pct"}, "the model's size / crop_pct"),
        field(&O::test_flip, "test_flip",
              "the mirror image of each part counts as well, in validation and inference", any(),
              scoring)
            .also_called({"tta", "flip_tta", "hflip_tta"}),
        field(&O::test_shift, "test_shift",
              "two parts that are moved by so many pixels, up to the left and down to the right, "
              "count as much as the others together (airbench, with 1); 0 = none",
              between(0, 256), {.unit = "pixels", .change = Change::kScoring})
            .also_called({"tta_translate"}),
    };
  }

  static auto pixel_fields() {
    using namespace config;
    using O = AugmentOptions;
    return Fields{
        field(&O::mean, "mean", "of red, green and blue in the scale of 0 to 1; it is subtracted",
              between(-1000, 1000), {.hidden_in_shapes = true})
            .also_called({"image_mean", "pixel_mean"}),
        field(&O::std, "std", "deviation of red, green and blue; what is left is divided by it",
              {.min = 0, .max = 1000, .min_open = true, .choices = {}}, {.hidden_in_shapes = true})
            .also_called({"image_std", "pixel_std", "deviation"}),
    };
  }

  static auto fields() {
    return part_fields()
        .with(change_fields())
        .with(mix_fields())
        .with(test_fields())
        .with(pixel_fields());
  }

  bool mixes() const { return mixup_alpha > 0 || cutmix_alpha > 0; }
  /// Throws std::invalid_argument unless `mean` and `std` have three numbers each.
  ChannelStatistics statistics() const;
};

/// What contradicts itself among sound values: a range whose end is below its beginning, `mean`
/// without three numbers. Empty for sound options.
/// @param section  where the keys stand: "augment"
std::vector<AugmentConflict> augment_conflicts(const AugmentOptions& options,
                                               const std::string& section);

}  // namespace stretto::image
