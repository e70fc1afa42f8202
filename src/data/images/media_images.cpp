#include "data/images/media_images.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "data/archives/member_names.h"
#include "data/media/media_table.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

class MediaImages final : public ImageSource {
 public:
  MediaImages(const MediaImagesInput& input, std::shared_ptr<const MediaTable> table)
      : root_(input.source.path),
        prefix_((fs::path(root_) / "").native().size()),
        is_tree_(input.source.kind == DataKind::kTree),
        table_(std::move(table)),
        left_out_(table_->left_out()) {
    if (is_tree_) {
      folders_ = {.root = root_, .folders = folders_below(root_)};
    } else {
      drop_unlabelled(input.bad_samples);
    }
  }

  int64_t size() const override { return is_tree_ ? table_->size() : std::ssize(rows_); }
  std::string label(int64_t sample) const override {
    if (!is_tree_) return std::string(table_->text(row(sample)));
    const std::string path = table_->path(sample);
    return std::string(folder_of_path(std::string_view(path).substr(prefix_)));
  }
  const ClassFolders* folders() const override { return is_tree_ ? &folders_ : nullptr; }
  ImageFacts facts(int64_t sample) const override {
    const MediaFacts& facts = table_->facts(row(sample));
    return {.bytes = facts.bytes, .hash = facts.hash, .height = facts.height, .width = facts.width};
  }
  std::string place(int64_t sample) const override { return table_->place(row(sample)); }
  std::string read(int64_t sample) const override { return table_->read(row(sample)); }
  image::Image load(int64_t sample, const image::DecodeOptions& options) const override {
    const int64_t at = row(sample);
    return image::decode_image(table_->read(at), table_->path(at), options);
  }
  const LeftOut& left_out() const override { return left_out_; }
  std::string refusal() const override { return table_->refusal(); }

 private:
  int64_t row(int64_t sample) const {
    return is_tree_ ? sample : rows_[static_cast<size_t>(sample)];
  }

  /// Keeps the rows of a manifest that name a class.
  void drop_unlabelled(const BadSampleRule& rule) {
    BadSamples bad(rule);
    for (int64_t i = 0; i < table_->size(); ++i) {
      if (!table_->text(i).empty()) {
        rows_.push_back(i);
        continue;
      }
      const std::string place = table_->place(i);
      bad.add({root_, place.substr(std::min(root_.size(), place.size())) + ": names no class",
               "each row has the path of a picture and the name of its class"});
    }
    bad.end_file();
    left_out_.count += bad.left_out().count;
    for (const auto& one : bad.left_out().first) {
      if (left_out_.first.size() < kNamedBadSamples) left_out_.first.push_back(one);
    }
  }

  std::string root_;
  size_t prefix_;  ///< bytes of a path in front of its name below the root
  bool is_tree_;
  std::shared_ptr<const MediaTable> table_;
  LeftOut left_out_;
  ClassFolders folders_;
  std::vector<int64_t> rows_;  ///< of the table, of a manifest
};

}  // namespace

std::shared_ptr<const ImageSource> open_media_images(const MediaImagesInput& input) {
  MediaInput media{.kind = MediaKind::kPicture,
                   .sources = {input.source},
                   .columns = input.columns,
                   .bad_samples = input.bad_samples};
  auto table = open_media(
      media, {.dir = input.cache_dir, .threads = input.threads, .is_used = input.uses_cache});
  return std::make_shared<MediaImages>(input, std::move(table));
}

std::vector<std::string> folders_below(const std::string& folder) {
  std::vector<std::string> folders;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (const fs::recursive_directory_iterator end; !error && entry != end; entry.increment(error)) {
    if (!entry->is_directory(error) || entry->is_symlink(error)) continue;
    if (entry->path().filename().native().starts_with('.')) {
      entry.disable_recursion_pending();
      continue;
    }
    folders.push_back(entry->path().lexically_relative(folder).string());
  }
  if (error) throw_io_error("cannot read", folder, error.value());
  std::sort(folders.begin(), folders.end());
  return folders;
}

}  // namespace stretto::data
