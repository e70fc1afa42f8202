#include "data/images/image_set.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <utility>

#include "base/error.h"
#include "base/first_names.h"
#include "base/log.h"
#include "base/text.h"

namespace stretto::data {
namespace {

constexpr size_t kMostClassesNamed = 10, kMostClassBytes = 60;

std::string class_list(std::span<const std::string> names) {
  return first_names(names, kMostClassesNamed, kMostClassBytes);
}

void require_names(const std::vector<std::string>& names) {
  for (const auto& name : names) {
    const bool is_text = is_valid_utf8(name);
    if (is_text && is_one_line(name)) continue;
    throw Error(ExitCode::kBadData,
                "class `" + printable(name, kMostClassBytes) + "` " +
                    (is_text ? "has a tab or a line end" : "has a name that is not UTF-8"),
                is_text ? "classes are written one a line: give it another name"
                        : "give its folder, or its line in a file of names, a name in UTF-8");
  }
}

void warn_of_unused(const std::vector<std::string>& listed, const ImageTable& training) {
  std::vector<std::string> unused;
  for (const auto& name : listed) {
    const auto& known = training.class_names();
    if (!std::binary_search(known.begin(), known.end(), name)) unused.push_back(name);
  }
  if (unused.empty()) return;
  log::warn("data.classes has " + counted(std::ssize(unused), "class") +
            " without any training picture: " + class_list(unused));
}

[[noreturn]] void throw_unknown(const ImageTable& table, std::span<const size_t> unknown,
                                const Labels& classes) {
  const auto& names = table.class_names();
  const std::string& name = names[unknown.front()];
  const auto first = std::find(table.classes().begin(), table.classes().end(),
                               static_cast<int32_t>(unknown.front()));
  std::vector<std::string> others;
  for (const size_t number : unknown.subspan(1)) others.push_back(names[number]);
  const std::string near = closest(name, classes.names());
  throw Error(ExitCode::kBadData,
              table.place(first - table.classes().begin()) + ": is of class `" +
                  printable(name, kMostClassBytes) + "`, which the run does not know" +
                  (others.empty() ? "" : "; nor does it know " + class_list(others)),
              (near.empty() ? "" : "did you mean `" + printable(near, kMostClassBytes) + "`? ") +
                  "known: " + class_list(classes.names()));
}

}  // namespace

Labels image_classes(const ImageDataOptions& options, const ImageTable& training) {
  if (!training.empty_classes().empty()) {
    throw Error(ExitCode::kBadData,
                "data.train: no picture is in the folder of " +
                    std::string(training.empty_classes().size() > 1 ? "classes " : "class ") +
                    class_list(training.empty_classes()),
                "put pictures there, or remove the folder");
  }
  const auto& names = options.classes.empty() ? training.class_names() : options.classes;
  require_names(names);
  if (names.size() < 2) {
    throw Error(ExitCode::kUsage,
                "the pictures for training have one class" +
                    (names.empty() ? "" : ", `" + printable(names.front(), kMostClassBytes) + "`"),
                "a classifier needs two: data.train names the folder that has a folder of pictures "
                "for each class");
  }
  if (!options.classes.empty()) warn_of_unused(options.classes, training);
  return Labels::given(names);
}

ImageSet::ImageSet(std::shared_ptr<const ImageTable> table, const Labels& classes,
                   const BadSampleRule& rule)
    : table_(std::move(table)), faults_(rule, table_->left_out()) {
  std::vector<int32_t> numbers;  // of the run, of the table's classes
  std::vector<size_t> unknown;
  for (const auto& name : table_->class_names()) {
    const auto number = classes.find(name);
    if (!number) unknown.push_back(numbers.size());
    numbers.push_back(static_cast<int32_t>(number.value_or(0)));
  }
  if (!unknown.empty()) throw_unknown(*table_, unknown, classes);
  labels_.reserve(static_cast<size_t>(table_->size()));
  for (const int32_t one : table_->classes()) labels_.push_back(numbers[static_cast<size_t>(one)]);
}

std::optional<image::Image> ImageSet::load(int64_t sample,
                                           const image::DecodeOptions& options) const {
  std::optional<image::Image> image;
  try {
    image = table_->load(sample, options);
  } catch (const Error& error) {
    if (error.code() != ExitCode::kBadData) throw;
    // The place is made here, and not for each picture.
    const auto failure = std::current_exception();
    faults_.take(sample, table_->place(sample), [&] { std::rethrow_exception(failure); });
  }
  return image;
}

}  // namespace stretto::data
