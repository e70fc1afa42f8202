#include "families/image_classification/image_sizes.h"

#include <charconv>
#include <optional>
#include <set>
#include <string_view>

#include "base/text.h"

namespace stretto::experiment {
namespace {

constexpr int64_t kMostPixels = 16384;

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size() || number < 0) return {};
  return number;
}

std::optional<TrainSize> read_entry(std::string_view given) {
  const std::string text = trim(given);
  const size_t space = text.find(' ');
  if (space == std::string::npos) return std::nullopt;
  const auto epoch = whole_number(text.substr(0, space));
  const auto size = whole_number(trim(text.substr(space)));
  if (!epoch || !size || *size < 1 || *size > kMostPixels) return std::nullopt;
  return TrainSize{.epoch = *epoch, .size = *size};
}

}  // namespace

TrainSizes read_train_sizes(const std::vector<std::string>& texts) {
  TrainSizes sizes;
  for (const auto& text : texts) {
    const auto entry = read_entry(text);
    if (!entry) {
      if (sizes.problem.empty()) {
        sizes.problem = "\"" + printable(text, 60) + "\" is no epoch and size";
      }
      continue;
    }
    if (!sizes.entries.empty() && entry->epoch <= sizes.entries.back().epoch &&
        sizes.problem.empty()) {
      sizes.problem = "epoch " + std::to_string(entry->epoch) + " stands behind epoch " +
                      std::to_string(sizes.entries.back().epoch);
    }
    sizes.entries.push_back(*entry);
  }
  return sizes;
}

int64_t image_size_of(const ImageClassificationOptions& options) {
  if (options.augment.image_size > 0) return options.augment.image_size;
  return models::usual_image_of(options.model);
}

int64_t test_size_of(const ImageClassificationOptions& options) {
  return options.augment.test_size > 0 ? options.augment.test_size : image_size_of(options);
}

int64_t train_size_of(const ImageClassificationOptions& options, int64_t epoch) {
  int64_t size = image_size_of(options);
  for (const auto& entry : read_train_sizes(options.augment.train_sizes).entries) {
    if (entry.epoch <= epoch) size = entry.size;
  }
  return size;
}

std::vector<int64_t> train_sizes_of(const ImageClassificationOptions& options) {
  const auto entries = read_train_sizes(options.augment.train_sizes).entries;
  std::set<int64_t> sizes;
  if (entries.empty() || entries.front().epoch > 0) sizes.insert(image_size_of(options));
  for (const auto& entry : entries) sizes.insert(entry.size);
  return {sizes.begin(), sizes.end()};
}

}  // namespace stretto::experiment
