#include "data/images/image_table.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/system_info.h"
#include "base/text.h"
#include "data/class_folders.h"
#include "data/images/archive_images.h"
#include "data/images/image_inputs.h"
#include "data/images/media_images.h"
#include "data/images/pixel_images.h"

namespace stretto::data {
namespace {

/// Folders of the sources of one root.
struct RootFolders {
  std::set<std::string> holding;  ///< that pictures lie in
  std::set<std::string> all;
  size_t shared = 0;  ///< leading ones that are no classes
};

std::map<std::string, RootFolders> folders_by_root(
    const std::vector<std::shared_ptr<const ImageSource>>& sources) {
  std::map<std::string, RootFolders> roots;
  for (const auto& source : sources) {
    if (source->folders() == nullptr) continue;
    auto& root = roots[source->folders()->root];
    for (int64_t i = 0; i < source->size(); ++i) root.holding.insert(source->label(i));
    root.all.insert(source->folders()->folders.begin(), source->folders()->folders.end());
  }
  for (auto& [name, root] : roots) {
    root.all.insert(root.holding.begin(), root.holding.end());
    root.shared = shared_folders(root.holding, root.all);
  }
  return roots;
}

/// The classes that the folders of a root are, with and without pictures.
std::set<std::string> classes_of(const RootFolders& root) {
  std::set<std::string> classes;
  for (const auto& folder : root.all) {
    if (const auto name = folder_at(folder, root.shared); !name.empty()) classes.emplace(name);
  }
  return classes;
}

std::shared_ptr<const ImageSource> open_input(const ImageInput& input,
                                              const ImageDataOptions& options,
                                              const std::string& key, int64_t threads,
                                              bool uses_cache) {
  const BadSampleRule rule = bad_sample_rule(options);
  const auto media = [&](DataFile source, const MediaColumns& columns) {
    return open_media_images({.source = std::move(source),
                              .columns = columns,
                              .bad_samples = rule,
                              .cache_dir = options.cache_dir,
                              .threads = threads,
                              .uses_cache = uses_cache});
  };
  const auto archive = [&](ArchiveKind kind) {
    return open_archive({.path = input.path,
                         .kind = kind,
                         .label = options.label,
                         .bad_samples = rule,
                         .cache_dir = options.cache_dir,
                         .threads = threads,
                         .uses_cache = uses_cache});
  };
  switch (input.format) {
    case ImageFormat::kFolder:
      return media({.key = key, .path = input.path, .kind = DataKind::kTree}, {});
    case ImageFormat::kManifest: {
      const MediaColumns columns = manifest_columns(options);
      return media(media_manifest(key, input.path, columns, rule), columns);
    }
    case ImageFormat::kTar:
      return archive(ArchiveKind::kTar);
    case ImageFormat::kWebDataset:
      return archive(ArchiveKind::kShard);
    case ImageFormat::kIdx:
      return open_idx(input.path, input.beside);
    case ImageFormat::kCifar10:
      return open_cifar(input.path, CifarKind::kCifar10, input.beside, rule);
    case ImageFormat::kCifar100:
      return open_cifar(input.path, CifarKind::kCifar100, input.beside, rule);
  }
  return nullptr;
}

void tell_of_equal_images(const ImageTable& table, const std::string& key) {
  const EqualImages equal = equal_images(table);
  if (equal.copies > 0) {
    log::info(key + ": pictures with the bytes of another one: " + with_thousands(equal.copies) +
              " of " + with_thousands(table.size()));
  }
  if (equal.contradictions > 0) {
    log::warn(key + ": pictures with the bytes of one in another class: " +
              with_thousands(equal.contradictions) + ", such as " + table.place(equal.first) +
              " (`" + printable(table.class_name(equal.first)) + "`) and " +
              table.place(equal.second) + " (`" + printable(table.class_name(equal.second)) + "`)");
  }
}

}  // namespace

ImageTable::ImageTable(std::vector<std::shared_ptr<const ImageSource>> sources,
                       const std::string& key, const BadSampleRule& rule)
    : sources_(std::move(sources)) {
  const auto roots = folders_by_root(sources_);
  std::set<std::string> folders;  // that are classes
  for (const auto& [name, root] : roots) {
    const auto classes = classes_of(root);
    require_no_sets(classes, name.empty() ? key : name);
    folders.insert(classes.begin(), classes.end());
  }
  std::map<std::string, int32_t> numbers;  // of classes as they come
  for (const auto& source : sources_) {
    const size_t shared =
        source->folders() == nullptr ? 0 : roots.at(source->folders()->root).shared;
    for (int64_t i = 0; i < source->size(); ++i) {
      std::string label = source->label(i);
      if (source->folders() != nullptr) label = std::string(folder_at(label, shared));
      const auto next = static_cast<int32_t>(numbers.size());
      classes_.push_back(numbers.emplace(std::move(label), next).first->second);
    }
    begins_.push_back(begins_.back() + source->size());
    left_out_.count += source->left_out().count;
    for (const auto& one : source->left_out().first) {
      if (left_out_.first.size() < kNamedBadSamples) left_out_.first.push_back(one);
    }
  }
  std::vector<int32_t> places(numbers.size());
  for (const auto& [name, number] : numbers) {
    places[static_cast<size_t>(number)] = static_cast<int32_t>(class_names_.size());
    class_names_.push_back(name);
  }
  for (auto& one : classes_) one = places[static_cast<size_t>(one)];
  for (const auto& folder : folders) {
    if (!numbers.contains(folder)) empty_classes_.push_back(folder);
  }
  require_within(rule, left_out_);
}

ImageTable::Found ImageTable::find(int64_t sample) const {
  const auto behind = std::upper_bound(begins_.begin(), begins_.end(), sample);
  const auto number = static_cast<size_t>(behind - begins_.begin()) - 1;
  return {.source = *sources_.at(number), .sample = sample - begins_[number]};
}

ImageFacts ImageTable::facts(int64_t sample) const {
  const auto [source, number] = find(sample);
  return source.facts(number);
}

std::string ImageTable::place(int64_t sample) const {
  const auto [source, number] = find(sample);
  return source.place(number);
}

bool ImageTable::is_raw(int64_t sample) const {
  return find(sample).source.is_raw();
}

std::string ImageTable::read(int64_t sample) const {
  const auto [source, number] = find(sample);
  return source.read(number);
}

image::Image ImageTable::load(int64_t sample, const image::DecodeOptions& options) const {
  const auto [source, number] = find(sample);
  return source.load(number, options);
}

uint64_t ImageTable::hash() const {
  Xxh3Stream all;
  for (const auto& name : class_names_) {
    all.update(name.data(), name.size());
    all.update("\n", 1);
  }
  for (int64_t i = 0; i < size(); ++i) {
    const uint64_t content = facts(i).hash;
    all.update(&content, sizeof content);
    all.update(&classes_[static_cast<size_t>(i)], sizeof(int32_t));
  }
  return all.digest();
}

std::string ImageTable::refusal() const {
  for (const auto& source : sources_) {
    if (auto refusal = source->refusal(); !refusal.empty()) return refusal;
  }
  return "";
}

EqualImages equal_images(const ImageTable& table) {
  std::vector<std::pair<uint64_t, int64_t>> hashes;
  hashes.reserve(static_cast<size_t>(table.size()));
  for (int64_t i = 0; i < table.size(); ++i) hashes.emplace_back(table.facts(i).hash, i);
  std::sort(hashes.begin(), hashes.end());
  const auto class_of = [&](size_t i) {
    return table.classes()[static_cast<size_t>(hashes[i].second)];
  };
  EqualImages equal;
  size_t begin = 0;  // of those that are equal
  for (size_t i = 1; i < hashes.size(); ++i) {
    if (hashes[i].first != hashes[begin].first) {
      begin = i;
      continue;
    }
    ++equal.copies;
    if (class_of(i) == class_of(begin)) continue;
    const std::pair both{hashes[begin].second, hashes[i].second};
    if (equal.contradictions++ == 0 || both < std::pair{equal.first, equal.second}) {
      std::tie(equal.first, equal.second) = both;
    }
  }
  return equal;
}

SharedImages shared_images(const ImageTable& training, const ImageTable& other) {
  std::vector<std::pair<uint64_t, int64_t>> hashes;
  hashes.reserve(static_cast<size_t>(training.size()));
  for (int64_t i = 0; i < training.size(); ++i) hashes.emplace_back(training.facts(i).hash, i);
  std::sort(hashes.begin(), hashes.end());
  SharedImages shared;
  for (int64_t i = 0; i < other.size(); ++i) {
    const uint64_t hash = other.facts(i).hash;
    const auto found = std::lower_bound(hashes.begin(), hashes.end(), std::pair{hash, int64_t{0}});
    if (found == hashes.end() || found->first != hash) continue;
    if (shared.count++ > 0) continue;
    shared.first = i;
    shared.first_in_training = found->second;
  }
  return shared;
}

std::string shared_images_text(const ImageTable& training, const ImageTable& other) {
  const SharedImages shared = shared_images(training, other);
  if (shared.count == 0) return "";
  return "pictures with the bytes of one for training: " + with_thousands(shared.count) + " of " +
         with_thousands(other.size()) + ", such as " + other.place(shared.first) + ", as " +
         training.place(shared.first_in_training);
}

std::shared_ptr<const ImageTable> open_images(const ImageDataOptions& options,
                                              const std::string& key,
                                              const std::vector<std::string>& paths, CacheUse use) {
  const int64_t threads = options.threads > 0 ? options.threads : usable_cores();
  std::vector<std::shared_ptr<const ImageSource>> sources;
  for (const auto& input : image_inputs(options, key, paths)) {
    sources.push_back(open_input(input, options, key, threads, use == CacheUse::kKeeps));
  }
  auto table =
      std::make_shared<const ImageTable>(std::move(sources), key, bad_sample_rule(options));
  if (table->size() == 0) {
    throw Error(
        ExitCode::kBadData,
        key + ": there is no picture in " +
            (paths.empty() ? "it" : printable(paths.front(), 4096)) +
            (table->left_out().count > 0 ? "; " + table->left_out().text() : ""),
        "a folder of pictures has a folder for each class; an archive has these folders, or "
        "KEY.jpg and KEY.cls");
  }
  tell_of_equal_images(*table, key);
  return table;
}

}  // namespace stretto::data
