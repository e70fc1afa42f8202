#include "families/image_classification/engine/image_samples.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "base/text.h"
#include "families/image_classification/engine/image_scores.h"
#include "families/image_classification/image_sizes.h"
#include "image/encode_png.h"
#include "image/views.h"

namespace stretto::tasks {
namespace {

constexpr int64_t kLeastSide = 96;    // that a picture is enlarged to
constexpr int64_t kLeastFilter = 24;  // the same of a filter
constexpr int64_t kMostFilters = 256;
constexpr int64_t kMargin = 2;
constexpr uint8_t kPaper = 255;

image::Image enlarged(const image::Image& picture, int64_t factor) {
  if (factor <= 1) return picture;
  auto large = image::make_image(picture.height * factor, picture.width * factor);
  for (int64_t channel = 0; channel < image::kChannels; ++channel) {
    const auto from = std::as_const(picture).plane(channel);
    const auto to = large.plane(channel);
    for (int64_t y = 0; y < large.height; ++y) {
      for (int64_t x = 0; x < large.width; ++x) {
        to[static_cast<size_t>(y * large.width + x)] =
            from[static_cast<size_t>(y / factor * picture.width + x / factor)];
      }
    }
  }
  return large;
}

// How often a side fits into the least one, rounded up.
int64_t factor_to(int64_t least, int64_t side) {
  return std::max<int64_t>(1, (least + side - 1) / side);
}

void paste(const image::Image& picture, int64_t top, int64_t left, image::Image& sheet) {
  for (int64_t channel = 0; channel < image::kChannels; ++channel) {
    const auto from = picture.plane(channel);
    const auto to = sheet.plane(channel);
    for (int64_t y = 0; y < picture.height; ++y) {
      const auto row =
          from.subspan(static_cast<size_t>(y * picture.width), static_cast<size_t>(picture.width));
      std::ranges::copy(row, to.begin() + (top + y) * sheet.width + left);
    }
  }
}

// [C, H, W] of any numbers.
image::Image picture_of_filter(const at::Tensor& filter) {
  const at::Tensor numbers = filter.to(at::kCPU, at::kDouble);
  const double least = numbers.min().item<double>(), most = numbers.max().item<double>();
  const double range = most > least ? most - least : 1;
  const at::Tensor bytes =
      numbers.sub(least).mul(255 / range).round().clamp(0, 255).to(at::kByte).contiguous();
  auto picture = image::make_image(filter.size(1), filter.size(2));
  for (int64_t channel = 0; channel < image::kChannels; ++channel) {
    // A first layer of grey pictures has one channel; of others than colours the first is shown.
    const at::Tensor plane = bytes[bytes.size(0) == image::kChannels ? channel : 0].contiguous();
    std::copy_n(plane.const_data_ptr<uint8_t>(), plane.numel(), picture.plane(channel).begin());
  }
  return picture;
}

report::MatrixSample matrix_of_classes(const train::ScoreTable& table, const data::ImageSet& set,
                                       const data::Labels& classes) {
  const auto size = static_cast<size_t>(classes.size());
  report::MatrixSample matrix{.title = "Confusion matrix",
                              .row_title = "class",
                              .column_title = "predicted",
                              .rows = classes.names(),
                              .columns = classes.names(),
                              .counts = std::vector(size, std::vector<int64_t>(size))};
  for (int64_t i = 0; i < set.size(); ++i) {
    const auto numbers = table.row(i);
    if (numbers[kImageReadable] == 0) continue;
    ++matrix.counts[static_cast<size_t>(set.label(i))][static_cast<size_t>(numbers[kImageGuess])];
  }
  return most_confused(std::move(matrix));
}

// The readable pictures of highest loss; one that is not finite comes first, and equal ones in the
// order of pictures.
std::vector<int64_t> worst_of(const train::ScoreTable& table, int64_t size, int64_t most) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < size; ++i) {
    if (table.row(i)[kImageReadable] != 0) order.push_back(i);
  }
  const auto badness = [&](int64_t i) {
    const double loss = table.row(i)[kImageLoss];
    return std::isfinite(loss) ? loss : HUGE_VAL;
  };
  const auto end = order.begin() + std::min(most, std::ssize(order));
  std::partial_sort(order.begin(), end, order.end(), [&](int64_t a, int64_t b) {
    const double of_a = badness(a), of_b = badness(b);
    return of_a != of_b ? of_a > of_b : a < b;
  });
  order.erase(end, order.end());
  return order;
}

report::MediaSample wrong_picture(int64_t i, const train::ScoreTable& table,
                                  const data::ImageSet& set, const data::Labels& classes,
                                  const experiment::ImageClassificationOptions& own) {
  const auto numbers = table.row(i);
  report::MediaSample sample;
  const std::string place = set.table().place(i);
  if (const auto decoded = set.load(i, image::test_decode_options(own.augment))) {
    const auto views = image::test_views(*decoded, own.augment, experiment::test_size_of(own));
    sample = picture_sample(views.front(), place);
  } else {
    sample = {.mime = "image/png", .bytes = {}, .words = place, .note = "it cannot be read"};
  }
  const auto with_probability = [](const std::string& name, double probability) {
    return name + " (" + fixed(probability, 3) + ")";
  };
  sample.rows = {
      {"Class", with_probability(classes.name(set.label(i)), numbers[kImageProbability])},
      {"Predicted", with_probability(classes.name(static_cast<int64_t>(numbers[kImageGuess])),
                                     numbers[kImageGuessProbability])},
      {"Loss", fixed(numbers[kImageLoss], 3)}};
  return sample;
}

}  // namespace

report::MediaSample picture_sample(const image::Image& picture, std::string words) {
  const int64_t factor = factor_to(kLeastSide, std::max(picture.height, picture.width));
  return {.mime = "image/png",
          .bytes = image::encode_png(enlarged(picture, factor)),
          .words = std::move(words)};
}

image::Image sheet_of(const std::vector<image::Image>& pictures) {
  if (pictures.empty()) return {};
  const auto count = std::ssize(pictures);
  const auto columns = static_cast<int64_t>(std::ceil(std::sqrt(2 * static_cast<double>(count))));
  const int64_t rows = (count + columns - 1) / columns;
  const int64_t height = pictures.front().height + kMargin;
  const int64_t width = pictures.front().width + kMargin;
  auto sheet = image::make_image(rows * height + kMargin, columns * width + kMargin);
  std::ranges::fill(sheet.pixels, kPaper);
  for (int64_t i = 0; i < count; ++i) {
    paste(pictures[static_cast<size_t>(i)], kMargin + i / columns * height,
          kMargin + i % columns * width, sheet);
  }
  return sheet;
}

report::MediaSample seen_sample(const at::Tensor& pixels,
                                const experiment::ImageClassificationOptions& own) {
  std::vector<image::Image> pictures;
  const int64_t side = pixels.size(2);
  const at::Tensor planes = pixels.to(at::kCPU, at::kFloat).contiguous();
  const int64_t size = planes.stride(0);
  for (int64_t i = 0; i < planes.size(0); ++i) {
    const std::span<const float> numbers(planes.const_data_ptr<float>() + i * size,
                                         static_cast<size_t>(size));
    pictures.push_back(enlarged(image::denormalised(numbers, side, side, own.augment.statistics()),
                                factor_to(kLeastSide, side)));
  }
  return {.mime = "image/png",
          .bytes = image::encode_png(sheet_of(pictures)),
          .words = "What the model sees in training",
          .note = counted(planes.size(0), "picture") + " of the first epoch, " +
                  std::to_string(side) + " x " + std::to_string(side)};
}

report::MediaSample filter_sample(const at::Tensor& filters) {
  std::vector<image::Image> pictures;
  const int64_t count = std::min(filters.size(0), kMostFilters);
  const int64_t factor = factor_to(kLeastFilter, filters.size(3));
  for (int64_t i = 0; i < count; ++i) {
    pictures.push_back(enlarged(picture_of_filter(filters[i]), factor));
  }
  return {.mime = "image/png",
          .bytes = image::encode_png(sheet_of(pictures)),
          .words = "Filters of the first layer",
          .note = counted(filters.size(0), "filter") + " of " + std::to_string(filters.size(2)) +
                  " x " + std::to_string(filters.size(3)) +
                  (count < filters.size(0) ? ", the first " + std::to_string(count) : "")};
}

report::MatrixSample most_confused(report::MatrixSample matrix, size_t most) {
  const size_t size = matrix.rows.size();
  if (size <= most) return matrix;
  std::vector<int64_t> mistakes(size);
  for (size_t row = 0; row < size; ++row) {
    for (size_t column = 0; column < size; ++column) {
      if (row == column) continue;
      mistakes[row] += matrix.counts[row][column];
      mistakes[column] += matrix.counts[row][column];
    }
  }
  std::vector<size_t> kept(size);
  std::iota(kept.begin(), kept.end(), size_t{0});
  std::ranges::stable_sort(kept, [&](size_t a, size_t b) { return mistakes[a] > mistakes[b]; });
  kept.resize(most);
  std::ranges::sort(kept);
  report::MatrixSample part{.title = matrix.title + " of the " + std::to_string(most) +
                                     " classes with the most mistakes, of " + std::to_string(size),
                            .row_title = matrix.row_title,
                            .column_title = matrix.column_title,
                            .rows = {},
                            .columns = {},
                            .counts = {}};
  for (const size_t row : kept) {
    part.rows.push_back(matrix.rows[row]);
    part.columns.push_back(matrix.columns[row]);
    auto& counts = part.counts.emplace_back();
    for (const size_t column : kept) counts.push_back(matrix.counts[row][column]);
  }
  return part;
}

std::vector<report::Sample> wrong_samples(const train::ScoreTable& table, const data::ImageSet& set,
                                          const data::Labels& classes,
                                          const experiment::ImageClassificationOptions& own,
                                          int64_t most) {
  std::vector<report::Sample> samples;
  samples.emplace_back(matrix_of_classes(table, set, classes));
  for (const int64_t i : worst_of(table, set.size(), most)) {
    samples.emplace_back(wrong_picture(i, table, set, classes, own));
  }
  return samples;
}

}  // namespace stretto::tasks
